"""What the leading worker writes down of its source: what it heard, and whether that was all."""

from typing import Any
from uuid import UUID

import pytest

import mirror.flow.known_ends as module
from mirror.flow.flow_state import FlowState
from mirror.flow.known_ends import (
    ANSWERS_OF_BEFORE_MS,
    ASLEEP_S,
    SILENT_MS,
    KnownEndsNode,
    Wakefulness,
    has_fallen_silent,
    known_ends,
)
from mirror.state.partition import MirroredPartition
from offset_translation.offset_map import OffsetMap
from runtime.coordination.known_ends import KnownEnd, KnownEnds
from runtime.coordination.long_nodes import read_document, write_parts
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper, open_zookeeper
from tests.mirror.building import flow_with
from wire.topic_partition import TopicPartition

PATHS = WitnessPaths(root="/known")
OWN = TopicPartition("t", 0)
PEERS = TopicPartition("t", 1)


def test_what_was_never_heard_of_is_left_out_and_other_workers_partitions_are_in() -> None:
    flow, own = flow_with()
    assert known_ends(flow.partitions, 0, 1_000).ends == {}
    peer = MirroredPartition(
        *PEERS, topic_id=UUID(int=0), offset_map=OffsetMap.from_starts([(0, 0)], 40), now_ms=0
    )
    flow.partitions.meet_peer(peer)
    peer.target.vouch(is_vouched=True)
    peer.heard(source_end=40, readable_end=40, now_ms=2_000)
    own.heard(source_end=7, readable_end=7, now_ms=3_000)
    assert known_ends(flow.partitions, 0, 3_500) == KnownEnds(
        at_ms=3_500,
        ends={
            OWN: KnownEnd(end=7, heard_ms=3_000, level_ms=None),
            PEERS: KnownEnd(end=40, heard_ms=2_000, level_ms=2_000),
        },
    )


def test_silence_is_the_sources_last_word_only_for_who_was_awake() -> None:
    flow, own = flow_with()
    own.heard(source_end=7, readable_end=7, now_ms=9_000)
    late, woken_ms = 9_000 + SILENT_MS, 9_000 - ANSWERS_OF_BEFORE_MS
    assert not known_ends(flow.partitions, woken_ms, late - 1).ends[OWN].is_last_word
    assert known_ends(flow.partitions, woken_ms, late).ends[OWN].is_last_word
    # What it heard may have been sent before it slept.
    assert not known_ends(flow.partitions, woken_ms + 1, late).ends[OWN].is_last_word


def test_a_source_is_silent_when_nothing_is_heard_of_any_partition() -> None:
    flow, own = flow_with()
    assert not has_fallen_silent(flow.partitions, 99_000)
    own.heard(source_end=7, readable_end=7, now_ms=9_000)
    assert not has_fallen_silent(flow.partitions, 9_000 + SILENT_MS - 1)
    assert has_fallen_silent(flow.partitions, 9_000 + SILENT_MS)
    peer = MirroredPartition(*PEERS, topic_id=UUID(int=0), offset_map=OffsetMap(), now_ms=0)
    flow.partitions.meet_peer(peer)
    peer.heard(source_end=1, readable_end=1, now_ms=9_001)
    assert not has_fallen_silent(flow.partitions, 9_000 + SILENT_MS)


def test_a_process_that_did_nothing_for_a_while_has_slept() -> None:
    awake = Wakefulness(1_000, 0.0)
    awake.tick(2_000, 1.0)
    awake.tick(2_000 + 1_000, 1.0 + ASLEEP_S)
    assert awake.since_ms == 1_000
    awake.tick(9_000, 1.1 + 2 * ASLEEP_S)
    assert awake.since_ms == 9_000
    awake.tick(8_000, 1.2 + 2 * ASLEEP_S)  # the clock was set back: what was heard when is unclear
    assert awake.since_ms == 8_000


def node_of(zookeeper: ZooKeeper, flow: FlowState) -> KnownEndsNode:
    return KnownEndsNode(zookeeper, PATHS, flow.config, flow.partitions, flow.share)


async def known(zookeeper: ZooKeeper) -> KnownEnds:
    node = await read_document(
        zookeeper, PATHS.known_ends("dc1", "dc2"), PATHS.known_ends_parts("dc1", "dc2")
    )
    assert node is not None
    return KnownEnds.decode(node.data)


@pytest.mark.integration
async def test_a_new_leader_keeps_what_its_predecessor_knew_until_it_hears_itself(
    empty_zookeeper: str,
) -> None:
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=4_000) as zookeeper:
        flow, _ = flow_with()
        flow.share.see({OWN})
        for topic in range(2_000):
            where = TopicPartition(f"topic-{topic}", 0)
            peer = MirroredPartition(*where, topic_id=UUID(int=0), offset_map=OffsetMap(), now_ms=0)
            flow.partitions.meet_peer(peer)
            peer.heard(source_end=topic, readable_end=topic, now_ms=1_000)
        assert await node_of(zookeeper, flow).publish(0, 1_500) == 2.0
        before = await known(zookeeper)
        assert len(before.ends) == 2_000

        flow, own = flow_with()
        await node_of(zookeeper, flow).publish(2_000, 9_000)
        assert await known(zookeeper) == KnownEnds(at_ms=9_000, ends=before.ends)

        flow.share.see({OWN})
        own.heard(source_end=7, readable_end=7, now_ms=9_500)
        await node_of(zookeeper, flow).publish(2_000, 9_900)
        assert (await known(zookeeper)).ends.keys() == {OWN}
        assert await zookeeper.children(PATHS.known_ends_parts("dc1", "dc2")) == []

        await zookeeper.set(PATHS.known_ends("dc1", "dc2"), b"garbage")
        await node_of(zookeeper, flow).publish(2_000, 9_900)
        assert (await known(zookeeper)).ends.keys() == {OWN}


@pytest.mark.integration
async def test_what_is_written_first_is_whole_from_the_first_moment_on(
    empty_zookeeper: str,
) -> None:
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=4_000) as zookeeper:
        flow, own = flow_with()
        own.heard(source_end=7, readable_end=7, now_ms=1_000)
        await node_of(zookeeper, flow).publish(0, 1_500)
        node = await zookeeper.get(PATHS.known_ends("dc1", "dc2"))
        assert node is not None
        assert node.version == 0  # whoever reads between two steps would read an empty document


@pytest.mark.integration
@pytest.mark.parametrize("already_written", [False, True])
async def test_a_late_leader_writes_nothing_over_what_its_successor_wrote(
    empty_zookeeper: str, already_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=4_000) as zookeeper:
        late, own = flow_with()
        own.heard(source_end=7, readable_end=7, now_ms=1_000)
        if already_written:
            await node_of(zookeeper, late).publish(0, 1_500)
        successor, own = flow_with()
        own.heard(source_end=9, readable_end=9, now_ms=2_000)

        async def while_it_was_late(*arguments: Any) -> None:
            monkeypatch.undo()
            await node_of(zookeeper, successor).publish(0, 2_500)
            await write_parts(*arguments)

        monkeypatch.setattr(module, "write_parts", while_it_was_late)
        await node_of(zookeeper, late).publish(0, 2_600)
        assert (await known(zookeeper)).ends[OWN].end == 9
