"""A topic's copy is deleted while the assignment changes."""

from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest
import trio

from mirror.clusters.log_ends import Ends, LogEnds
from mirror.flow.flow_state import FlowState
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.topics import discovery as topics
from mirror.topics.discovery import Discovery, TopicsSeen
from mirror.topics.given_up import told_given_up
from offset_translation.map_records import piece_start
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.mirror.building import CONFIG, flow_with
from wire.errors import ErrorCode
from wire.net.metadata import ClusterView, PartitionView, TopicView

LED = PartitionView(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
TOPIC = TopicView(name="t", topic_id=UUID(int=1), partitions={0: LED})
TARGET = ClusterView(cluster_id="c", controller_id=1, brokers={}, topics={"t": TOPIC})


OLD_ID = UUID(int=9)
LOST = ": dc1 has lost its offsets 12 to 14, and this was their copy"


class Map:
    """A map log that knows of a topic by this name which is not on the source any more."""

    def __init__(self) -> None:
        self.state = MapState()
        self.state.topic_ids["t"] = OLD_ID

    async def forget_topic(self, topic: str) -> None:
        await trio.lowlevel.checkpoint()
        del self.state.topic_ids[topic]


def discovery_of(flow: FlowState, known: Map) -> Discovery:
    """Return that of a worker which has the topic whole and is to begin it anew."""
    flow.share.take(frozenset(flow.partitions.own))
    flow.share.see(flow.partitions.own)
    flow.orders.want_anew({"t"})
    discovery = Discovery(flow.for_discovery, cast("Any", Links), cast("Any", known))
    discovery._seen = TopicsSeen({"t": TOPIC}, (), TARGET)
    return discovery


async def no_ends(*_: object) -> Ends:
    """Return that nothing is told."""
    await trio.lowlevel.checkpoint()
    return {}


@pytest.mark.parametrize(
    ("ends", "source_end", "mirrored", "told"),
    [
        (LogEnds(start=2, end=9), 20, 15, ["dc2 t-0 is given up from offset 2 to 8"]),
        (
            LogEnds(start=2, end=9),
            12,
            15,
            [f"dc2 t-0 is given up from offset 2 to 8{LOST}"],
        ),
        (
            LogEnds(start=2, end=9),
            None,
            15,
            ["dc2 t-0 is given up from offset 2 to 8; whether dc1 has all of it is not known"],
        ),
        (LogEnds(start=9, end=9), 12, 15, []),
        (
            ErrorCode.LEADER_NOT_AVAILABLE,
            12,
            15,
            ["dc2 t-0 is given up, and where it ends is not told (LEADER_NOT_AVAILABLE)"],
        ),
    ],
    ids=["all is there", "the source lost some", "no source end", "empty", "no leader"],
)
def test_what_is_given_up_with_a_copy_is_listed_by_offset(
    ends: LogEnds | ErrorCode, source_end: int | None, mirrored: int, told: list[str]
) -> None:
    partition = MirroredPartition(
        "t", 0, topic_id=TOPIC.topic_id, offset_map=OffsetMap.from_starts([(0, 0)], 0), now_ms=0
    )
    partition.offset_map.advance(mirrored)
    if source_end is not None:
        partition.heard(source_end=source_end, readable_end=source_end, now_ms=0)
    assert list(told_given_up(CONFIG, [partition], {partition.topic_partition: ends})) == told


async def test_the_copy_of_a_former_topic_is_listed_as_that(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flow, partition = flow_with()
    known = Map()
    known.state.topic_ids["t"] = TOPIC.topic_id
    discovery = discovery_of(flow, known)
    partition.target.keep_copy_of(UUID(int=77))

    async def delete(*_: object) -> None:
        await trio.lowlevel.checkpoint()

    async def two(*_: object) -> Ends:
        await trio.lowlevel.checkpoint()
        return {partition.topic_partition: LogEnds(start=0, end=2)}

    monkeypatch.setattr(topics, "delete_topic", delete)
    monkeypatch.setattr(topics, "read_target_ends", two)
    await discovery._begin_anew()
    assert "t-0 is given up from offset 0 to 1: the copy of a former topic" in caplog.text


async def test_a_partition_gets_no_leader_of_the_copy_that_is_being_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow, partition = flow_with()
    known = Map()
    known.state.topic_ids["t"] = TOPIC.topic_id
    discovery = discovery_of(flow, known)
    discovery.take_share()
    assert partition.leaders.target == 1

    async def delete(*_: object) -> None:
        discovery.take_share()  # a new version of the assignment is confirmed meanwhile
        assert partition.leaders.target == -1

    monkeypatch.setattr(topics, "delete_topic", delete)
    monkeypatch.setattr(topics, "read_target_ends", no_ends)
    await discovery._begin_anew()
    assert flow.orders.begun_anew == {"t"}


async def test_a_topic_begun_anew_is_not_called_recreated_whoever_has_made_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow, partition = flow_with()
    discovery = discovery_of(flow, Map())
    discovery.take_share()
    states = [partition.state]

    async def delete(*_: object) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(topics, "delete_topic", delete)
    monkeypatch.setattr(topics, "read_target_ends", no_ends)
    await discovery._begin_anew()
    discovery._seen = TopicsSeen(
        {"t": TOPIC}, (), TARGET
    )  # a consumer had the target make it at once
    discovery.take_share()
    states.append(partition.state)
    assert states == [PartitionState.TOPIC_RECREATED, PartitionState.WAITING]


async def test_a_copy_that_may_hold_records_of_its_own_is_not_deleted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody who is believed says what the source has got of it: it would not be sent back."""
    flow, _ = flow_with()
    discovery = discovery_of(flow, Map())
    key, _ = piece_start("t", 0, source_start=0, place=Place(0))
    flow.reverse.unbelieved.note(key)

    async def delete(*_: object) -> None:
        pytest.fail("the copy was deleted")

    monkeypatch.setattr(topics, "delete_topic", delete)
    await discovery._begin_anew()
    assert not flow.orders.to_begin_anew
    assert "so it may hold records of its own; see `failover recover --believe-maps`" in caplog.text


async def test_a_copy_of_a_former_name_that_has_come_back_is_not_mirrored_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What came from there is not sent on, and the new copy would lack it."""
    flow, partition = flow_with()
    known = Map()
    known.state.topic_ids["t"] = TOPIC.topic_id
    discovery = discovery_of(flow, known)
    former = replace(TARGET, topics={"old": replace(TOPIC, name="old")})
    discovery._renamed.look(former, {partition.topic_partition: TOPIC.topic_id})
    flow.reverse.note_former(["old"])

    async def delete(*_: object) -> None:
        pytest.fail("a topic of the new name was deleted")

    monkeypatch.setattr(topics, "delete_topic", delete)
    await discovery._begin_anew()
    assert not flow.orders.to_begin_anew
    assert "the source has records of it that came from old" in caplog.text


class Links:
    """Not asked."""

    target_admin = source_admin = None
