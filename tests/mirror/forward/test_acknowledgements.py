"""What many answers say of a partition is taken over at once, as if one by one."""

from itertools import pairwise
from typing import TypeAlias
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from mirror.forward.acknowledgements import Settling
from mirror.state.batches import Cursor, Forward
from mirror.state.flow_state import FlowState
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.offset_map import OffsetMap
from tests.mirror.building import flow_with

NOW_MS = 10_000

Told: TypeAlias = tuple[list[int], tuple[object, ...], list[tuple[object, ...]]]
"""Partitions that have begun, what is known of the flow, and of each partition."""


def flowing(index: int, end: int) -> MirroredPartition:
    """A partition that is fetched from offset 0 on."""
    offset_map = OffsetMap.from_starts([(0, 0)], 0)
    partition = MirroredPartition("t", index, topic_id=UUID(int=1), offset_map=offset_map, now_ms=0)
    partition.move(PartitionState.POSITIONING, 0)
    partition.go_on(Cursor(0, 0, 0), 0)
    partition.heard(source_end=end, readable_end=end, now_ms=0)
    return partition


def settled(counts: list[tuple[int, int]], groups: list[int]) -> Told:
    """Send batches of so many records to (partition, count), and settle them in such groups."""
    flow, _ = flow_with()
    ends = [sum(count for index, count in counts if index == one) for one in range(2)]
    partitions = [flowing(index, end) for index, end in enumerate(ends)]
    settling = Settling(flow)
    sent: list[tuple[MirroredPartition, Forward]] = []
    places = [0, 0]
    for number, (index, count) in enumerate(counts):
        place = places[index]
        places[index] += count
        forward = Forward(
            place, count, place + count, NOW_MS - number, 100 * count, (b"",), 1, number // 3
        )
        partition = partitions[index]
        with flow.accounting(partition):
            partition.enqueue([forward])
        partition.queue.popleft()
        partition.sent_count += 1
        sent.append((partition, forward))
    begun: list[int] = []
    for size in groups:
        for partition, forward in sent[:size]:
            settling.batches[partition].append(forward)
        del sent[:size]
        begun += [partition.index for partition in settling.take_over(NOW_MS)]
    assert not sent
    return sorted(begun), told(flow), [told_of(partition) for partition in partitions]


def told(flow: FlowState) -> tuple[object, ...]:
    counted = flow.measurements
    latencies = counted.forward, counted.record_age
    return (
        flow.in_flight_bytes,
        counted.records,
        counted.bytes,
        counted.batches,
        [(latency.counts, latency.total_ms) for latency in latencies],
    )


def told_of(partition: MirroredPartition) -> tuple[object, ...]:
    return (
        partition.state,
        partition.in_flight_bytes,
        partition.sent_count,
        partition.mirrored_bytes,
        partition.offset_map.mirrored_source_end,
        partition.lag_records(NOW_MS),
        partition.level_ms,
        partition.is_taken,
    )


@given(st.data(), st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9)), max_size=20))
def test_in_whatever_groups_answers_come_the_same_is_known_afterwards(
    data: st.DataObject, counts: list[tuple[int, int]]
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(counts)))) | {0, len(counts)})
    groups = [later - earlier for earlier, later in pairwise(cuts)]
    assert settled(counts, groups) == settled(counts, [1] * len(counts))


def test_a_partition_begins_with_its_first_batch_and_is_level_with_its_last() -> None:
    begun, flow, partitions = settled([(0, 3), (0, 2), (0, 1)], [1, 2])
    assert begun == [0]
    assert flow == (0, 6, 600, 3, flow[-1])
    streaming = (PartitionState.STREAMING, 0, 0, 600, 6, 0, 0, True)
    assert partitions == [streaming, partitions[1]]
