"""What many answers say of a partition is taken over at once, as if one by one."""

from itertools import pairwise
from typing import TypeAlias
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from mirror.flow.flow_state import FlowState
from mirror.forward.acknowledgements import Acknowledgements
from mirror.state.batches import Cursor, Forward
from mirror.state.in_flight import InFlightBudget
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.mirror.building import flow_with

NOW_MS = 10_000

Told: TypeAlias = tuple[list[int], tuple[object, ...], list[tuple[object, ...]]]
"""Partitions that have begun, what is known of the flow, and of each partition."""


def flowing(index: int, end: int, budget: InFlightBudget) -> MirroredPartition:
    """A partition that is fetched from offset 0 on."""
    offset_map = OffsetMap.from_starts([(0, 0)], 0)
    partition = MirroredPartition(
        "t", index, topic_id=UUID(int=1), offset_map=offset_map, now_ms=0, budget=budget
    )
    partition.move(PartitionState.POSITIONING, 0)
    partition.go_on(Cursor(0, Place(0), 0), 0)
    partition.heard(source_end=end, readable_end=end, now_ms=0)
    return partition


def settled(counts: list[tuple[int, int]], groups: list[int]) -> Told:
    """Send batches of so many records to (partition, count), and settle them in such groups.

    The first of a partition is settled by itself, as nothing is sent behind it before.
    """
    flow, _ = flow_with()
    ends = [sum(count for index, count in counts if index == one) for one in range(2)]
    partitions = [flowing(index, end, flow.budget) for index, end in enumerate(ends)]
    acknowledged = Acknowledgements(flow.measurements, flow.progress)
    queued: list[tuple[MirroredPartition, Forward]] = []
    places = [0, 0]
    for number, (index, count) in enumerate(counts):
        place = places[index]
        places[index] += count
        forward = Forward(
            Place(place), count, place + count, NOW_MS - number, 100 * count, (b"",), 1, number // 3
        )
        partition = partitions[index]
        partition.in_flight.enqueue([forward])
        queued.append((partition, forward))
    begun: list[int] = []
    for size in groups:
        for partition, forward in queued[:size]:
            sent = partition.in_flight.send_next(NOW_MS)
            if sent is None:
                begun += [one.index for one in acknowledged.take_over(NOW_MS)]
                sent = partition.in_flight.send_next(NOW_MS)
            assert sent is forward
            acknowledged.batches[partition].append(forward)
        del queued[:size]
        begun += [partition.index for partition in acknowledged.take_over(NOW_MS)]
    assert not queued
    moved_on = {partition.topic_partition for partition in partitions if ends[partition.index]}
    assert flow.progress.take() == moved_on
    return sorted(begun), told(flow), [told_of(partition) for partition in partitions]


def told(flow: FlowState) -> tuple[object, ...]:
    counted = flow.measurements
    latencies = counted.forward, counted.record_age
    return (
        flow.budget.total,
        counted.records,
        counted.bytes,
        counted.batches,
        [(latency.counts, latency.total_ms) for latency in latencies],
    )


def told_of(partition: MirroredPartition) -> tuple[object, ...]:
    return (
        partition.state,
        partition.in_flight.bytes,
        partition.in_flight.sent_count,
        partition.in_flight.mirrored_bytes,
        partition.offset_map.mirrored_source_end,
        partition.lag_records(NOW_MS),
        partition.source.level_ms,
        partition.in_flight.is_taken,
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
