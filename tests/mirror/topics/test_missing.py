"""What is not on the source any more, and when that is believed."""

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

import pytest

from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.topics.gone_topics import UNSEEN_MS
from mirror.topics.missing import (
    FORGOTTEN_AFTER_MS,
    GONE_AFTER_MS,
    NO_PARTITION,
    NO_TOPIC,
    LeftBehind,
    MissingPartitions,
    missing_partitions,
)
from offset_translation.offset_map import OffsetMap
from tests.mirror.building import flow_with
from tests.mirror.topics.discovering import discovery, tell_settings
from wire.errors import ErrorCode
from wire.net.metadata import ClusterView, PartitionView, TopicView
from wire.topic_partition import TopicPartition

LED = PartitionView(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
TOPIC = TopicView(name="t", topic_id=UUID(int=1), partitions={0: LED})
SOURCE = ClusterView(cluster_id="c", controller_id=1, brokers={}, topics={"t": TOPIC})
NOTHING = replace(SOURCE, topics={})


def test_partitions_are_missing_by_themselves_or_with_their_topic() -> None:
    known = [
        TopicPartition("t", 0),
        TopicPartition("t", 1),
        TopicPartition("u", 0),
        TopicPartition("secret", 0),
    ]
    assert missing_partitions(known, SOURCE, {"secret"}) == {("t", 1), ("u", 0)}
    assert missing_partitions(known, NOTHING, {"secret"}) == {("t", 0), ("t", 1), ("u", 0)}


def test_of_a_topic_with_an_error_nothing_is_missing() -> None:
    failed = replace(TOPIC, partitions={}, error_code=ErrorCode.LEADER_NOT_AVAILABLE)
    assert not missing_partitions(
        [TopicPartition("t", 0)], replace(SOURCE, topics={"t": failed}), ()
    )


@pytest.mark.parametrize(("source", "reason"), [(NOTHING, NO_TOPIC), (SOURCE, NO_PARTITION)])
def test_what_is_missing_for_a_while_without_a_break_is_gone(
    source: ClusterView, reason: str
) -> None:
    flow, _ = flow_with()
    lost = MirroredPartition("t", 1, topic_id=UUID(int=1), offset_map=OffsetMap(), now_ms=0)
    flow.partitions.take(lost)
    grown = replace(TOPIC, partitions={0: LED, 1: LED})
    whole = replace(SOURCE, topics={"t": grown})
    looking = MissingPartitions(flow.partitions, flow.interruptions)
    states = []
    for seen, now in (
        (source, 0),
        (whole, GONE_AFTER_MS - 1),
        (source, GONE_AFTER_MS),
        (source, 2 * GONE_AFTER_MS - 1),
        (source, 2 * GONE_AFTER_MS),
    ):
        looking.stop_missing(seen, (), now)
        states.append(lost.state is PartitionState.SOURCE_GONE)
    assert states == [False, False, False, False, True]
    assert lost.status.reason == reason
    lost.retry("ordered", 2 * GONE_AFTER_MS + 1)
    looking.stop_missing(source, (), 2 * GONE_AFTER_MS + 1)
    assert lost.status.reason == reason
    assert (flow.partitions.own[TopicPartition("t", 0)].state is PartitionState.SOURCE_GONE) == (
        source is NOTHING
    )


async def test_a_topic_made_again_with_fewer_partitions_waits_for_none_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mirror.topics.missing.GONE_AFTER_MS", 0)
    async with discovery() as (looking, dc1, dc2, map_log):
        for fake in (dc1, dc2):
            tell_settings(fake, {})
            fake.create_topic("orders", 0, 0)
        map_log.state.topic_ids["orders"] = dc1.topics["orders"].topic_id
        places = frozenset({TopicPartition("orders", 0), TopicPartition("orders", 1)})
        looking._parts.share.take(places)
        await looking.discover()
        assert looking._parts.partitions.own.keys() == places
        held = dc1.topics["orders"].partitions.pop(1)
        dc1.topics["orders"].topic_id = UUID(int=8)
        await looking.discover()
        assert looking._parts.share.seen == places
        states = [looking._parts.partitions.own[place].state for place in sorted(places)]
        assert states == [PartitionState.TOPIC_RECREATED, PartitionState.SOURCE_GONE]
        dc1.topics["orders"].partitions[1] = held
        await looking.discover()
        assert (
            looking._parts.partitions.own[TopicPartition("orders", 1)].state
            is not PartitionState.SOURCE_GONE
        )


async def test_a_partition_that_is_gone_is_nobodys_once_the_copy_has_none_either() -> None:
    async with discovery() as (looking, dc1, dc2, map_log):
        for fake in (dc1, dc2):
            tell_settings(fake, {})
            fake.create_topic("orders", 0, 0)
        map_log.state.topic_ids["orders"] = dc1.topics["orders"].topic_id
        await looking.discover()
        both = looking._parts.share.seen.copy()
        seen: list[frozenset[TopicPartition]] = []
        del dc1.topics["orders"].partitions[1]
        dc1.topics["orders"].topic_id = UUID(int=8)
        for decide in (
            lambda: None,
            lambda: map_log.state.topic_ids.update(orders=UUID(int=8)),
            lambda: dc2.topics["orders"].partitions.pop(1),
        ):
            decide()
            dc2.topics["orders"].topic_id = UUID(int=9 + len(seen))
            await looking.discover()
            seen.append(looking._parts.share.seen.copy())
        assert both == {("orders", 0), ("orders", 1)}
        assert seen == [both, both, {("orders", 0)}]


def forgotten_at(*looks: tuple[ClusterView, ClusterView, Collection[str], int]) -> list[int]:
    """When a topic of two is none of the flow's any more; of each look source, target, hidden."""
    flow, _ = flow_with()
    flow.share.see(TopicPartition(*place) for place in (("t", 0), ("gone", 0), ("gone", 1)))
    looking, found = LeftBehind(flow.live_config, flow.share), []
    for source, target, hidden, now in looks:
        looking.forget_left_behind(source, hidden, target, {}, now)
        assert ("t", 0) in flow.share.seen
        if ("gone", 0) not in flow.share.seen:
            found.append(now)
    return found


def test_a_topic_that_neither_side_has_is_forgotten_after_a_while() -> None:
    steps = range(0, FORGOTTEN_AFTER_MS + 1, UNSEEN_MS)
    assert forgotten_at(*((SOURCE, SOURCE, (), at) for at in steps)) == [FORGOTTEN_AFTER_MS]


def test_a_topic_is_kept_that_one_side_has_or_may_have() -> None:
    there = replace(SOURCE, topics={"t": TOPIC, "gone": replace(TOPIC, name="gone")})
    steps = range(0, 2 * FORGOTTEN_AFTER_MS, UNSEEN_MS)
    assert not forgotten_at(*((there, SOURCE, (), at) for at in steps))
    assert not forgotten_at(*((SOURCE, there, (), at) for at in steps))
    assert not forgotten_at(*((SOURCE, SOURCE, {"gone"}, at) for at in steps))


def test_time_in_which_nobody_looked_forgets_no_topic() -> None:
    later = 2 * FORGOTTEN_AFTER_MS
    assert not forgotten_at((SOURCE, SOURCE, (), 0), (SOURCE, SOURCE, (), later))


async def test_discovery_forgets_a_topic_that_was_deleted_on_both_sides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mirror.topics.missing.FORGOTTEN_AFTER_MS", 0)
    async with discovery() as (looking, dc1, dc2, map_log):
        for fake in (dc1, dc2):
            tell_settings(fake, {})
            for name in ("orders", "gone"):
                map_log.state.topic_ids[name] = fake.create_topic(name, 0).topic_id
        await looking.discover()
        seen: list[frozenset[TopicPartition]] = [looking._parts.share.seen.copy()]
        for fake in (dc1, dc2):
            del fake.topics["gone"]
            await looking.discover()
            seen.append(looking._parts.share.seen.copy())
        both = {("orders", 0), ("gone", 0)}
        assert seen == [both, both, {("orders", 0)}]
