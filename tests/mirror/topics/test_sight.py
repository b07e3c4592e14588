"""A topic that a cluster hides from us is not one that it lacks."""

import pytest

from mirror.map.map_log import MapLog
from mirror.state.batches import Cursor
from mirror.state.orders import How, Restart, Scope
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.topics.discovery import NO_RIGHT_ON_TARGET, Discovery
from mirror.topics.gone_topics import DELETED
from mirror.topics.missing import NO_RIGHT
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster
from tests.mirror.topics.discovering import discovery, note_changes, tell_settings
from wire.messages.create_topics import CreateTopicsRequest
from wire.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)


async def streaming(
    looking: Discovery, dc1: FakeCluster, dc2: FakeCluster, map_log: MapLog
) -> MirroredPartition:
    """Return a partition that both sides have, and that streams."""
    for fake in (dc1, dc2):
        tell_settings(fake, {})
        map_log.state.topic_ids["orders"] = fake.create_topic("orders", 0).topic_id
    dc2.create_topic("dc1.offset-map.internal", 0)
    looking._parts.share.take(frozenset({ORDERS}))
    await looking.discover()
    partition = looking._parts.partitions.own[ORDERS]
    partition.move(PartitionState.POSITIONING, 0)
    partition.go_on(Cursor(0, Place(0), 0), 0)
    return partition


@pytest.mark.parametrize("leads", [True, False])
async def test_a_copy_that_may_not_be_seen_any_more_stops_its_partition_and_leaves_its_map_true(
    *, leads: bool
) -> None:
    async with discovery(leads=leads) as (looking, dc1, dc2, map_log):
        partition = await streaming(looking, dc1, dc2, map_log)
        asked = note_requests(dc2)
        dc2.hidden.add("orders")
        await looking.discover()
        assert partition.state is PartitionState.NOT_AUTHORISED
        assert partition.status.reason == NO_RIGHT_ON_TARGET
        assert partition.has_true_map
        assert not partition.target.is_new
        assert not asked, "nothing is made or changed that may be there"
        partition.retry("its time has come", 1)
        await looking.discover()
        assert partition.status.state.value == "not authorised"
        dc2.hidden.clear()
        partition.retry("its time has come", 2)
        await looking.discover()
        assert partition.status.state.value == "waiting"
        assert partition.leaders.target == 0


def note_requests(fake: FakeCluster) -> list[str]:
    """Return what the cluster will be asked to change."""
    asked = note_changes(fake)

    async def create(_: object, request: CreateTopicsRequest) -> object:
        asked.extend(one.name for one in request.topics)
        raise AssertionError(asked)

    fake.brokers[0].scripts[CreateTopicsRequest.API_KEY] = create
    fake.versions |= {CreateTopicsRequest.API_KEY: CreateTopicsRequest.VERSIONS}
    return asked


async def test_a_paused_partition_whose_copy_is_hidden_stays_paused() -> None:
    async with discovery() as (looking, dc1, dc2, map_log):
        partition = await streaming(looking, dc1, dc2, map_log)
        partition.pause("by me", 0)
        dc2.hidden.add("orders")
        await looking.discover()
        assert partition.state is PartitionState.PAUSED


async def test_what_was_mirrored_and_is_hidden_on_the_source_is_shown_behind_a_start() -> None:
    """Left out it would be missing from every report, and a promotion would not close it."""
    async with discovery() as (looking, dc1, dc2, map_log):
        for fake in (dc1, dc2):
            tell_settings(fake, {})
            fake.create_topic("orders", 0)
        dc2.create_topic("dc1.offset-map.internal", 0)
        orders = dc1.topics["orders"]
        map_log.state.topic_ids["orders"] = orders.topic_id
        map_log.state.target_ids[ORDERS] = dc2.topics["orders"].topic_id
        looking._parts.share.take(frozenset({ORDERS}))
        dc1.hidden.add("orders")
        await looking.discover()
        assert ORDERS in looking._parts.share.seen
        partition = looking._parts.partitions.own[ORDERS]
        assert partition.state is PartitionState.NOT_AUTHORISED
        assert partition.status.reason == NO_RIGHT
        dc1.hidden.clear()
        partition.retry("its time has come", 1)
        await looking.discover()
        assert partition.status.state.value == "waiting"
        assert partition.leaders.source == 0


async def test_a_worker_that_sees_the_copy_no_more_does_not_call_it_deleted() -> None:
    async with discovery(leads=False) as (looking, dc1, dc2, map_log):
        partition = await streaming(looking, dc1, dc2, map_log)
        partition.stop(PartitionState.SOURCE_GONE, "gone", 1)
        del dc1.topics["orders"]
        dc2.hidden.add("orders")
        await looking.discover()
        assert partition.status.reason != DELETED


@pytest.mark.parametrize("hides", ["source", "target"])
async def test_an_order_about_a_topic_that_a_site_hides_waits(hides: str) -> None:
    async with discovery() as (looking, dc1, dc2, map_log):
        for fake in (dc1, dc2):
            tell_settings(fake, {})
            map_log.state.topic_ids["other"] = fake.create_topic("other", 0).topic_id
        dc2.create_topic("orders", 0)
        if hides == "source":
            dc1.create_topic("orders", 0)
        (dc1 if hides == "source" else dc2).hidden.add("orders")
        order = Restart(scope=Scope.parse("orders"), how=How.QUARANTINE, by="me", at_ms=1)
        orders = looking._parts.orders
        assert not orders.is_known(order, ())
        await looking.discover()
        assert orders.unknown == {order}
        assert not map_log.state.maps, "nothing is sealed of what may have records"
