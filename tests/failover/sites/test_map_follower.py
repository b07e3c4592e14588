"""What is sealed when a part of the target is away: nothing, rather than what is not known."""

from uuid import UUID

import pytest

from failover.journal.execute import StepFailed
from failover.moving.drain import SourceLogs, wait_drained
from failover.sites.map_follower import MapFollower
from failover.sites.site import LogUnavailable, SiteUnclear
from runtime.coordination.map_writers import MapGone
from tests.doubles.fake_cluster import FakePartition
from tests.doubles.map_writers import MemoryWriters
from tests.failover.maps import MAP, ORDERS, target_with_a_map
from tests.failover.standing import watch_of
from wire.record_batch import parse_header
from wire.topic_partition import TopicPartition

RECORDS_AT = 61
"""Where a batch's records begin."""


@pytest.mark.parametrize("topic", ["orders", MAP])
async def test_a_log_without_a_leader_is_not_taken_for_an_empty_one(topic: str) -> None:
    async with target_with_a_map(7) as (cluster, site):
        follower = MapFollower(site, "dc1", MemoryWriters())
        await follower.refresh([ORDERS])
        assert (follower.mirrored_end(ORDERS), follower.writing_end(ORDERS)) == (7, 7)
        cluster.topics[topic].partitions[0].leader = -1
        await site.cluster.metadata(refresh=True)
        for one in (follower, MapFollower(site, "dc1", MemoryWriters())):
            with pytest.raises(LogUnavailable, match=f"^dc2 {topic}-0: LEADER_NOT_AVAILABLE$"):
                await one.refresh([ORDERS])
        assert (follower.mirrored_end(ORDERS), follower.writing_end(ORDERS)) == (7, 7)


async def test_a_log_that_does_not_exist_is_empty() -> None:
    async with target_with_a_map(7) as (cluster, site):
        del cluster.topics["orders"]
        follower = MapFollower(site, "dc1", MemoryWriters())
        await follower.refresh([ORDERS])
        assert (follower.mirrored_end(ORDERS), follower.writing_end(ORDERS)) == (0, 0)


async def test_a_map_that_has_lost_what_was_read_is_not_believed_and_read_anew() -> None:
    async with target_with_a_map(7) as (cluster, site):
        follower = MapFollower(site, "dc1", MemoryWriters())
        await follower.refresh([ORDERS])
        assert follower.knows(ORDERS)
        del cluster.topics[MAP]
        with pytest.raises(SiteUnclear, match=r"ends at 0, and was read up to 1: it was deleted"):
            await follower.refresh([ORDERS])
        await follower.refresh([ORDERS])
        assert not follower.knows(ORDERS)


@pytest.mark.parametrize("is_empty", [False, True], ids=["no topic", "an empty topic"])
async def test_a_map_that_was_written_and_is_gone_is_no_map_that_never_was(
    *, is_empty: bool
) -> None:
    """Without it nobody knows which records of a site came from the other one."""
    async with target_with_a_map(7) as (cluster, site):
        writers = MemoryWriters(is_strict=True)
        await writers.register(9)
        await writers.note_end(1)
        del cluster.topics[MAP]
        if is_empty:
            cluster.create_topic(MAP, 0)
        follower = MapFollower(site, "dc1", writers)
        for _ in range(2):
            with pytest.raises(MapGone):
                await follower.refresh([ORDERS])
        await writers.forget_log()
        await follower.refresh([ORDERS])
        assert not follower.knows(ORDERS)


async def test_a_map_that_has_lost_its_beginning_is_not_gone_by() -> None:
    async with target_with_a_map(7) as (cluster, site):
        held = cluster.topics[MAP].partitions[0]
        held.start, held.end = 1, 2
        told = rf"^dc2 {MAP}: begins at offset 1: .* `mirror rebuild-map --write` finds"
        with pytest.raises(SiteUnclear, match=told):
            await MapFollower(site, "dc1", MemoryWriters()).refresh([ORDERS])


async def test_a_map_that_was_made_again_is_not_gone_on_with_though_it_is_as_long() -> None:
    async with target_with_a_map(7) as (cluster, site):
        follower = MapFollower(site, "dc1", MemoryWriters())
        await follower.refresh([ORDERS])
        cluster.topics[MAP].topic_id = UUID(int=77)
        with pytest.raises(SiteUnclear, match=r"is another topic than was read up to 1"):
            await follower.refresh([ORDERS])
        assert not follower.knows(ORDERS)
        await follower.refresh([ORDERS])
        assert follower.mirrored_end(ORDERS) == 7


@pytest.mark.parametrize("byte", [RECORDS_AT, -2], ids=["framing", "a piece's start"])
async def test_a_damaged_map_is_named_and_nothing_is_taken_from_it(byte: int) -> None:
    async with target_with_a_map(7) as (cluster, site):
        [batch] = cluster.topics[MAP].partitions[0].batches
        damaged = bytearray(batch)
        damaged[byte] ^= 4
        cluster.topics[MAP].partitions[0].batches = [bytes(damaged)]
        follower = MapFollower(site, "dc1", MemoryWriters())
        told = f"^dc2 {MAP}-0: damaged batch at 0: "
        with pytest.raises(SiteUnclear, match=told):
            await follower.refresh([ORDERS])
        assert follower.partitions == ()
        cluster.topics[MAP].partitions[0].batches = [batch]
        await follower.refresh([ORDERS])
        assert follower.mirrored_end(ORDERS) == 7


async def test_a_drain_asks_a_log_that_cannot_tell_again_until_its_time_is_over() -> None:
    logs = SourceLogs(starts={ORDERS: 0}, ends={ORDERS: 7})
    async with target_with_a_map(7) as (cluster, site):
        # What this source says of its topics agrees with any map.
        orders = cluster.topics["orders"].partitions[0]
        orders.leader = -1
        follower = MapFollower(site, "dc1", MemoryWriters())
        with pytest.raises(StepFailed, match=r"^not all logs told .* \(dc2 orders-0: LEADER_"):
            await wait_drained(site, logs, follower, watch_of(), timeout_ms=400)
        orders.leader = 0
        assert await wait_drained(site, logs, follower, watch_of(), timeout_ms=5_000) == 0


@pytest.mark.parametrize("partition", [TopicPartition("new", 0), TopicPartition("orders", 1)])
async def test_a_drain_waits_until_the_target_has_every_partition(
    partition: TopicPartition,
) -> None:
    """An empty one that is missing drains by itself, but nobody could write to it."""
    logs = SourceLogs(starts={ORDERS: 0, partition: 0}, ends={ORDERS: 7, partition: 0})
    async with target_with_a_map(7) as (cluster, site):
        follower = MapFollower(site, "dc1", MemoryWriters())
        topic, index = partition
        with pytest.raises(StepFailed, match=f"^{topic}-{index} was not made on dc2 within 0.4 s"):
            await wait_drained(site, logs, follower, watch_of(), timeout_ms=400)
        made = cluster.topics.get(topic) or cluster.create_topic(topic)
        made.partitions[index] = FakePartition(0)
        assert await wait_drained(site, logs, follower, watch_of(), timeout_ms=5_000) == 0


async def test_a_promotion_believes_only_registered_writers_and_registers_itself() -> None:
    async with target_with_a_map(7) as (cluster, site):
        registry = MemoryWriters(is_strict=True)
        follower = MapFollower(site, "dc1", registry)
        await follower.refresh([ORDERS])
        assert (follower.maps, follower.unbelieved_records.count) == ({}, 1)
        await follower.seal({ORDERS: (9, 7)})
        sealed = parse_header(cluster.topics[MAP].partitions[0].batches[-1])
        assert set(registry.known.registered) == {sealed.producer_id}
        await follower.refresh([ORDERS])
        assert follower.maps[ORDERS].sealed_at == 7
        assert follower.unbelieved_records.count == 1
