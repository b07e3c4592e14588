"""What discovery does to the target's topics, and what it leaves alone."""

from contextlib import suppress
from itertools import count
from uuid import UUID

import pytest
import trio

from mirror.state.batches import Cursor
from mirror.state.orders import POLICY, How, Orders, Pause, Restart, Scope
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.topics import discovery as topics
from mirror.topics.discovery import HAS_OWN, MADE_AGAIN, Discovery
from offset_translation.map_records import MirrorProducer, piece_start, seal
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from runtime.process.clock import now_ms
from tests.doubles.fake_cluster import FakeCluster, FakeTopic
from tests.mirror.topics.discovering import (
    discovery,
    note_changes,
    note_deletions,
    positioning_beside,
    tell_settings,
)
from wire.errors import ErrorCode
from wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.net.errors import UnsupportedApi
from wire.topic_partition import TopicPartition


@pytest.mark.parametrize("is_another", [False, True], ids=["the same", "made again"])
async def test_the_copy_of_a_topic_that_was_made_again_keeps_its_settings(
    monkeypatch: pytest.MonkeyPatch, *, is_another: bool
) -> None:
    monkeypatch.setattr(topics, "CONFIG_INTERVAL_MS", 0)
    async with discovery() as (looking, dc1, dc2, map_log):
        changed = note_changes(dc2)
        tell_settings(dc2, {"retention.ms": "-1"})
        tell_settings(dc1, {"retention.ms": "-1"})
        dc2.create_topic("orders", 0)
        dc1.create_topic("orders", 0)
        map_log.state.topic_ids["orders"] = dc1.topics["orders"].topic_id
        await looking.discover()
        dc1.create_topic("orders", 0, 0).topic_id = UUID(int=8 if is_another else 1)
        tell_settings(dc1, {"cleanup.policy": "compact"})
        await looking.discover()
    changes = ["retention.ms=None", "2 partitions", "cleanup.policy=compact"]
    assert changed == ([] if is_another else changes)


@pytest.mark.parametrize("source_answers", [False, True])
async def test_a_target_with_records_of_its_own_is_not_deleted_before_the_source_is_heard_of(
    caplog: pytest.LogCaptureFixture, *, source_answers: bool
) -> None:
    async with discovery() as (looking, dc1, dc2, map_log):
        flow = looking._parts
        deleted = note_deletions(dc2)
        tell_settings(dc1, {})
        tell_settings(dc2, {})
        dc2.create_topic("orders", 0).partitions[0].end = 8
        orders = dc1.create_topic("orders", 0 if source_answers else -1)
        orders.partitions[0].end = 8
        flow.partitions.take(
            MirroredPartition(
                "orders", 0, topic_id=orders.topic_id, offset_map=OffsetMap(), now_ms=0
            )
        )
        flow.share.see({TopicPartition("orders", 0)})
        flow.share.take(frozenset(flow.share.seen))
        map_log.state.topic_ids["orders"] = orders.topic_id
        flow.reverse.arrived.replay(*piece_start("orders", 0, source_start=0, place=Place(0)))
        flow.reverse.arrived.replay(*seal("orders", 0, source_end=8, target_end=8))
        flow.orders.want_anew({"orders"})
        await looking.discover()
        assert deleted == []
        assert (HAS_OWN in caplog.text) == source_answers
        assert flow.orders.to_begin_anew == (set() if source_answers else {"orders"})


async def test_a_restart_does_not_mirror_a_topic_that_was_made_again_as_the_old_one() -> None:
    async with discovery() as (looking, dc1, dc2, map_log):
        flow = looking._parts
        dc2.create_topic("orders", 0).partitions[0].end = 8
        orders = dc1.create_topic("orders", 0)
        orders.partitions[0].end = 20
        tell_settings(dc1, {})
        tell_settings(dc2, {})
        flow.share.take(frozenset({TopicPartition("orders", 0)}))
        map_log.state.topic_ids["orders"] = orders.topic_id
        positioning = positioning_beside(looking)
        await looking.discover()
        assert [len(together) for together in positioning._due()] == [1]
        orders.topic_id = UUID(int=8)
        await looking.discover()
        partition = flow.partitions.own[TopicPartition("orders", 0)]
        assert partition.state is PartitionState.TOPIC_RECREATED
        partition.retry("a command", 0)
        assert not list(positioning._due())
        map_log.state.topic_ids["orders"] = orders.topic_id
        assert [len(together) for together in positioning._due()] == [1]


async def test_the_map_of_a_topic_that_the_target_lacks_is_not_gone_by() -> None:
    """A group's position by it would lie in the topic that is made next, where it may be beyond."""
    async with discovery() as (looking, dc1, dc2, map_log):
        for fake in (dc1, dc2):
            tell_settings(fake, {})
        orders = dc1.create_topic("orders", 0)
        map_log.state.topic_ids["orders"] = orders.topic_id
        partition = MirroredPartition(
            "orders", 0, topic_id=orders.topic_id, offset_map=OffsetMap(), now_ms=0
        )
        looking._parts.partitions.take(partition)
        partition.target.find_position()
        seen = [partition.has_true_map]
        with suppress(UnsupportedApi):  # as this cluster makes no topics
            await looking.discover()
        seen.append(partition.has_true_map)
        assert seen == [True, False]


async def test_a_target_that_had_only_just_started_has_a_place_found_anew_and_its_map_gone_by() -> (
    None
):
    """It knew no topics; the partition rests, so nothing else would ever interrupt it."""
    async with discovery() as (looking, dc1, dc2, map_log):
        for fake in (dc1, dc2):
            tell_settings(fake, {})
        map_log.state.topic_ids["orders"] = dc1.create_topic("orders", 0).topic_id
        dc2.create_topic("dc1.offset-map.internal", 0)
        copy = dc2.create_topic("orders", 0)
        looking._parts.share.take(frozenset({TopicPartition("orders", 0)}))

        async def create(_: object, __: CreateTopicsRequest) -> CreateTopicsResponse:
            dc2.topics["orders"] = copy
            known = CreatableTopicResult(name="orders", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)
            return CreateTopicsResponse(topics=(known,))

        dc2.brokers[0].scripts[CreateTopicsRequest.API_KEY] = create
        dc2.versions |= {CreateTopicsRequest.API_KEY: CreateTopicsRequest.VERSIONS}
        await looking.discover()
        partition = looking._parts.partitions.own[TopicPartition("orders", 0)]
        partition.move(PartitionState.POSITIONING, 0)
        partition.go_on(Cursor(0, Place(0), 0), 0)
        seen = [partition.has_true_map]
        del dc2.topics["orders"]
        await looking.discover()
        seen.append(partition.has_true_map)
        positioning = positioning_beside(looking)
        assert list(positioning._due()) == [[partition]]
        partition.move(PartitionState.POSITIONING, 0)
        partition.go_on(Cursor(0, Place(0), 0), 0)
        assert [*seen, partition.has_true_map] == [True, False, True]


async def test_a_copy_that_was_made_for_the_new_topic_is_no_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who does not lead may see the new source topic before its copy, or before its id is noted."""
    clock = count(1_000, 3_000)
    monkeypatch.setattr(topics, "now_ms", clock.__next__)
    async with discovery(leads=False) as (looking, dc1, dc2, map_log):
        monkeypatch.setattr(map_log, "catch_up", trio.lowlevel.checkpoint)
        flow = looking._parts
        flow.share.take(frozenset({TopicPartition("orders", 0)}))
        for fake in (dc1, dc2):
            fake.create_topic("other", 0)
        dc2.create_topic("orders", 0)
        map_log.state.topic_ids["orders"] = dc1.create_topic("orders", 0).topic_id
        await looking.discover()
        for fake in (dc1, dc2):
            del fake.topics["orders"]
        for _ in range(4):
            await looking.discover()
        partition = flow.partitions.own[TopicPartition("orders", 0)]
        seen = [partition.state]
        dc1.create_topic("orders", 0).topic_id = new = UUID(int=99)
        await looking.discover()
        seen.append(partition.state)
        dc2.create_topic("orders", 0)
        for _ in range(2):
            await looking.discover()
            seen.append(partition.state)
        map_log.state.topic_ids["orders"] = new
        await looking.discover()
        seen.append(partition.state)
        assert seen == [
            PartitionState.SOURCE_GONE,
            PartitionState.WAITING,
            PartitionState.TOPIC_RECREATED,
            PartitionState.TOPIC_RECREATED,
            PartitionState.WAITING,
        ], "without a copy there is nothing to decide, nor with one of its own"
        assert [len(due) for due in positioning_beside(looking)._due()] == [1]


@pytest.mark.parametrize(
    ("by", "is_kept"), [(f"{POLICY}dc1->dc2", True), ("somebody", False)], ids=["policy", "person"]
)
async def test_a_pause_keeps_the_copy_from_a_policy_and_not_from_a_person(
    by: str, *, is_kept: bool
) -> None:
    pause = Pause(scope=Scope(topic="orders", partition=1), by="somebody", since_ms=1)
    anew = Restart(scope=Scope(topic="orders"), how=How.ANEW, by=by, at_ms=2)
    async with discovery() as (looking, dc1, dc2, map_log):
        flow = looking._parts
        deleted = note_deletions(dc2)
        for fake in (dc1, dc2):
            tell_settings(fake, {})
            orders = fake.create_topic("orders", 0, 0)
        dc2.create_topic("dc1.offset-map.internal", 0)
        map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
        map_log.state.topic_ids["orders"] = orders.topic_id
        flow.orders.follow(Orders(pauses=(pause,), restarts=(anew,)))
        flow.orders.want_anew({"orders"})
        flow.orders.note_marked("orders")
        flow.share.take(frozenset({TopicPartition("orders", 0), TopicPartition("orders", 1)}))
        with suppress(UnsupportedApi):  # as this cluster makes no topics again
            await looking.discover()
        assert deleted == ([] if is_kept else ["orders"])
        flow.orders.follow(flow.orders.current.resumed(pause.scope))
        with suppress(UnsupportedApi):
            await looking.discover()
        assert deleted == ["orders"]


async def one_partition(
    looking: Discovery, dc1: FakeCluster, dc2: FakeCluster
) -> tuple[FakeTopic, FakeTopic, MirroredPartition]:
    """Return a topic of one partition, on both sides, as it is known."""
    orders, copy = dc1.create_topic("orders", 0), dc2.create_topic("orders", 0)
    dc2.create_topic("dc1.offset-map.internal", 0)
    looking._parts.share.take(frozenset({TopicPartition("orders", 0)}))
    await looking.discover()
    return orders, copy, looking._parts.partitions.own[TopicPartition("orders", 0)]


@pytest.mark.parametrize(
    ("moved", "reason"),
    [("target", MADE_AGAIN), ("source", "the source leader moved"), ("neither", "")],
)
async def test_what_changes_while_a_place_is_found_has_it_found_again(
    moved: str, reason: str
) -> None:
    async with discovery(brokers=2, leads=False) as (looking, dc1, dc2, _map_log):
        orders, copy, partition = await one_partition(looking, dc1, dc2)
        partition.move(PartitionState.POSITIONING, 0)
        attempt = partition.attempt
        if moved == "target":
            copy.topic_id = UUID(int=8)
        elif moved == "source":
            orders.partitions[0].leader = 1
        await looking.discover()
        assert partition.status.reason == reason
        assert (partition.attempt == attempt) is (moved == "neither")
        assert partition.target.is_new is (moved == "target")
        due = positioning_beside(looking)._due()
        assert len(list(due)) == (moved != "neither")


@pytest.mark.parametrize("moved", ["source", "source epoch", "target", "neither"])
async def test_who_waits_for_a_leader_goes_on_once_there_is_another(moved: str) -> None:
    """Its pauses have become long while the broker that led was dead and nobody else led yet."""
    async with discovery(brokers=2, leads=False) as (looking, dc1, dc2, _map_log):
        orders, copy, partition = await one_partition(looking, dc1, dc2)
        for _ in range(10):
            partition.move(PartitionState.POSITIONING, now_ms())
            partition.postpone("its leader is away", now_ms())
        assert not list(positioning_beside(looking)._due())
        if moved == "source epoch":
            orders.partitions[0].leader_epoch += 1
        elif moved != "neither":
            (orders if moved == "source" else copy).partitions[0].leader = 1
        await looking.discover()
        due = list(positioning_beside(looking)._due())
        assert due == ([] if moved == "neither" else [[partition]])
