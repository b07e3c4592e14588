"""Who reads a flow's partitions sees each change, and can make none."""

from typing import Any
from uuid import UUID

import pytest

from mirror.state.flow_partitions import FlowPartitions
from mirror.state.partition import MirroredPartition
from offset_translation.offset_map import OffsetMap


def a_partition(topic: str, index: int) -> MirroredPartition:
    return MirroredPartition(topic, index, topic_id=UUID(int=1), offset_map=OffsetMap(), now_ms=0)


def test_our_own_and_our_peers_partitions_are_known_and_ours_count_where_both_are() -> None:
    partitions = FlowPartitions()
    own, known = partitions.own, partitions.known
    ours, theirs, again = a_partition("t", 0), a_partition("t", 1), a_partition("t", 0)
    partitions.take(ours)
    assert own == known == {("t", 0): ours}, "whoever has looked before sees it"
    partitions.meet_peer(theirs)
    partitions.meet_peer(again)
    assert dict(partitions.known) == {("t", 0): ours, ("t", 1): theirs}
    assert partitions.let_go(ours.topic_partition) is ours
    assert partitions.let_go(ours.topic_partition) is None
    assert dict(partitions.known) == {("t", 0): again, ("t", 1): theirs}
    assert partitions.forget_peer(again.topic_partition) is again
    assert (partitions.of_topic("t"), dict(partitions.peers)) == ([], {("t", 1): theirs})


def test_a_reader_cannot_change_them() -> None:
    view: Any = FlowPartitions().own
    with pytest.raises(TypeError):
        view["t", 0] = a_partition("t", 0)
