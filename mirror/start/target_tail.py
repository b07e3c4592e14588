"""Reads the last batches of targets that others write to as well: where a partition goes on."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from mirror.clusters.log_ends import LogEnds
from mirror.map.map_log import MapLog
from mirror.state.partition import MirroredPartition
from offset_translation.map_records import Reached
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.tail import (
    SEQUENCES,
    Tail,
    TailGarbled,
    place_if_expected,
    sure_place,
)
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.errors import RequestRefused
from wire.net.operations import read_partition
from wire.net.side_by_side import ask_each, or_refusal
from wire.record_batch import BatchHeader, CorruptBatch
from wire.topic_partition import TopicPartition

AT_ONCE: Final = 8
Tails: TypeAlias = dict[TopicPartition, Tail | TailGarbled | RequestRefused]
"""The tails that were read; a broker's refusal concerns its partition alone."""


async def read_tails(
    cluster: Cluster,
    partitions: Iterable[MirroredPartition],
    target: Mapping[TopicPartition, LogEnds | ErrorCode],
    map_log: MapLog,
) -> Tails:
    """Read the batches behind the last place that the map tells; raises NetworkFault.

    A partition of which nothing was ever announced has no tail yet.
    """
    asked = {
        partition.topic_partition: (partition, ends)
        for partition in partitions
        if isinstance(ends := target[partition.topic_partition], LogEnds)
        and len(partition.offset_map)
        and ends.end
    }

    async def read(topic_partition: TopicPartition) -> Tail | TailGarbled:
        known = map_log.state.reached.get(topic_partition)
        return await _read(cluster, *asked[topic_partition], known, map_log.producer.producer_id)

    return await ask_each(asked, or_refusal(read), at_once=AT_ONCE)


def sequence_fault(offset_map: OffsetMap, header: BatchHeader) -> str | None:
    """Return the fault that a batch of ours shows by its sequence, None if it shows none."""
    at, sequence = header.base_offset, header.base_sequence
    _, begin = _first(offset_map)
    # A run that begins behind the batch says where the next records lie, not where this one does.
    place, target = offset_map.runs.last_before(at)
    if at < begin or (place + at - target) % SEQUENCES == sequence:
        return None
    return (
        f"the mirror's batch at target offset {at} has sequence {sequence}: "
        "somebody else has written before it"
    )


async def _read(
    cluster: Cluster,
    partition: MirroredPartition,
    ends: LogEnds,
    reached: Reached | None,
    producer_id: int,
) -> Tail | TailGarbled:
    """Return the partition's tail, or what is wrong with it."""
    # Until the tail is read, that end would have others' records count as mirrored.
    offset_map, where = partition.offset_map.copy(), (partition.target_topic, partition.index)
    offset_map.advance(ends.end)
    begin = begin_at(offset_map, reached, ends.end)
    tail = Tail(offset_map, begin.place)
    last = max(ends.start, ends.end - 1)
    try:
        async for header, _ in read_partition(cluster, *where, last, ends.end):
            if header.producer_id == producer_id and not header.is_control:
                place = place_if_expected(offset_map, header.base_offset, header.base_sequence)
                if place is not None and place >= begin.place:
                    count = header.last_offset_delta + 1
                    tail.place = place
                    tail.take(header.base_offset, header.base_sequence, count)
                    return tail
        start = max(begin.target_end, ends.start)
        async for header, _ in read_partition(cluster, *where, start, ends.end):
            is_ours = header.producer_id == producer_id and not header.is_control
            if is_ours and header.base_offset >= begin.target_end:
                tail.take(header.base_offset, header.base_sequence, header.last_offset_delta + 1)
        if not tail.has_seen and ends.start > begin.target_end:
            tail.untold = (
                f"the target begins at {ends.start}: what was mirrored to offset "
                f"{begin.target_end} and behind cannot be told any more"
            )
    except TailGarbled as garbled:
        return garbled
    except CorruptBatch as fault:
        return TailGarbled(f"a batch near the target's end is damaged: {fault}")
    return tail


def begin_at(offset_map: OffsetMap, reached: Reached | None, log_end: int) -> Reached:
    """Return the last place that the map is sure of, of those that the log still has."""
    place, target = sure_place(offset_map, log_end)
    sealed_at = offset_map.sealed_at
    if sealed_at is not None and sealed_at >= target:
        place, target = offset_map.place_end, sealed_at
    if reached is not None and reached.place >= place and reached.target_end <= log_end:
        return reached
    return Reached(place=place, target_end=target)


def _first(offset_map: OffsetMap) -> tuple[Place, int]:
    """Return where the oldest piece begins, on a target that had no records of its own before."""
    place = offset_map.first_place
    return place, offset_map.runs.start_of(place)
