"""Check that the source still holds the last record that was mirrored.

A log that was cut and has grown again looks at its ends as if nothing had happened: after an
unclean election, on a broker that lost its disk, in a backup that was restored. New records at
offsets that were mirrored would never be read, and the target keeps records that the source lost.
One record on each side tells. It is looked at whenever the source's leader may be another.

The same comparison tells whether the end of a target is what was mirrored, whoever wrote it. A
topic that was made again, or one in which somebody else has written, looks by its end as if as
many records had been mirrored. A last record of another producer must be the source's record.

Behind a failback the source holds arrivals, too, and the partition goes on behind them. So the last
one is compared with the record that it came from: what was written where arrivals lay would be
passed over. Where both sites are written to at once (`active_active`) nothing is compared.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from mirror.clusters.links import Links
from mirror.clusters.log_ends import Ends, LogEnds
from mirror.start.start_position import Stop
from mirror.start.target_tail import sequence_fault
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.reverse_flow import ReverseFlow
from offset_translation.map_records import MirrorProducer
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.target_scan import Mixed
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.errors import RequestRefused
from wire.net.operations import read_partition
from wire.net.side_by_side import ask_each, or_refusal
from wire.record_batch import (
    BatchHeader,
    CorruptBatch,
    Record,
    crc_is_valid,
    is_same_record,
    iterate_records,
)
from wire.topic_partition import TopicPartition

AT_ONCE: Final = 64
"""From afar each takes a round trip or two, and thousands may be due together."""
ONE_BATCH_BYTES: Final = 1
"""A broker sends one whole batch at the least."""
UNTOLD: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.CORRUPT_MESSAGE,
    }
)
"""Refusals that stay: we may not read there, it was deleted meanwhile, it is damaged. After any
other the same question may have an answer, and nothing may be mirrored before it has."""


class Anchor(NamedTuple):
    """Where the last mirrored record lies on both sides."""

    source_offset: int
    target_offset: int


class WriterRegistries(NamedTuple):
    """The writers of the logs that are looked at."""

    producer: MirrorProducer
    """The mirror's own."""
    reverse: ReverseFlow
    """The other direction, which has brought arrivals into the source."""


class Held(NamedTuple):
    """The content of a log at an offset: a record, or None for a marker."""

    header: BatchHeader
    record: Record | None


def anchor_of(offset_map: OffsetMap, source: LogEnds, target: LogEnds) -> Anchor | None:
    """Return the last mirrored record of what both logs still hold, None if there is none.

    The map knows the target's end.
    """
    place = Place(offset_map.place_end - 1)
    if not len(offset_map) or place < offset_map.first_place:
        return None
    at_source, at_target = offset_map.source_of_place(place), offset_map.runs.start_of(place)
    if at_source is None or not source.start <= at_source < source.end:
        return None
    return Anchor(at_source, at_target) if target.start <= at_target < target.end else None


def is_another(mirrored: Held, held: Held) -> bool:
    """Whether the source's record is not the one that was mirrored."""
    ours, theirs = mirrored.record, held.record
    if ours is None or theirs is None:
        return ours is not theirs
    is_stamped = mirrored.header.is_log_append_time or held.header.is_log_append_time
    return not is_same_record(ours, theirs, is_stamped=is_stamped)


async def find_rewritten(
    links: Links,
    partitions: Iterable[MirroredPartition],
    source: Ends,
    target: Ends,
    writers: WriterRegistries,
    mixed: Mapping[TopicPartition, Mixed] = MappingProxyType({}),
) -> Mapping[TopicPartition, Stop | RequestRefused]:
    """Return why to stop where the source holds another record; raises NetworkFault.

    Where foreign records lie on the target, `mixed` tells how far it is mirrored.

    ``partitions`` are written by mirrors alone. A record that cannot be compared is not wrong: it
    was compacted, or we may not read it. A record that a broker has
    refused for now is to be looked at again before the partition goes on.
    """
    compared: dict[TopicPartition, _Compared] = {}
    for partition in partitions:
        key = partition.topic_partition
        source_ends, target_ends = source[key], target[key]
        if isinstance(source_ends, LogEnds) and isinstance(target_ends, LogEnds):
            scanned = mixed.get(key)
            if scanned is None:
                offset_map = partition.offset_map.copy()
                offset_map.advance(target_ends.end)
            else:
                offset_map = scanned.applied_to(partition.offset_map, target_ends.end)
            anchor = anchor_of(offset_map, source_ends, target_ends)
            arrival = _last_arrival(partition, writers.reverse, source_ends, target_ends)
            if anchor is not None or arrival is not None:
                compared[key] = _Compared(partition, offset_map, anchor, arrival)

    async def compare(topic_partition: TopicPartition) -> Stop | None:
        one = compared[topic_partition]
        found = None
        if one.anchor is not None:
            found = await _compare(links, one.partition, one.offset_map, one.anchor, writers)
        if found is None and one.arrival is not None:
            found = await _compare_arrival(links, one.partition, one.arrival, writers.reverse)
        return found

    answers = await ask_each(compared, or_refusal(compare), at_once=AT_ONCE)
    return {
        topic_partition: answer for topic_partition, answer in answers.items() if answer is not None
    }


class _Compared(NamedTuple):
    partition: MirroredPartition
    offset_map: OffsetMap
    anchor: Anchor | None
    arrival: Anchor | None
    """The last arrival, which went from the target to the source."""


def _last_arrival(
    partition: MirroredPartition, reverse: ReverseFlow, source: LogEnds, target: LogEnds
) -> Anchor | None:
    """Return where the last arrival lies: its own source is our target, and the other way round."""
    arrived = reverse.map_of(partition.topic_partition, source.end)
    return None if arrived is None else anchor_of(arrived, target, source)


async def _compare(
    links: Links,
    partition: MirroredPartition,
    offset_map: OffsetMap,
    anchor: Anchor,
    writers: WriterRegistries,
) -> Stop | None:
    """Return what is wrong, None if nothing is or nobody can tell."""
    mirrored = await _held_on_target(links, partition, anchor.target_offset)
    if mirrored is None:
        return None
    is_ours = mirrored.header.producer_id == writers.producer.producer_id
    displaced = sequence_fault(offset_map, mirrored.header) if is_ours else None
    if displaced is not None:
        return Stop(state=PartitionState.TARGET_DIVERGED, reason=displaced)
    held = await _held_on_source(links, partition, anchor.source_offset)
    if held is None or not is_another(mirrored, held):
        return None
    if not is_ours:
        target = partition.target_partition
        return Stop(
            state=PartitionState.TARGET_DIVERGED,
            reason=f"target offset {anchor.target_offset} holds another record than source offset "
            f"{anchor.source_offset}, by producer {mirrored.header.producer_id}, which is not the "
            f"mirror's: somebody else has written to {target}, or the topic was made again",
        )
    return Stop(
        state=PartitionState.SOURCE_WENT_BACK,
        reason=f"source offset {anchor.source_offset} holds another record than was mirrored to "
        f"target offset {anchor.target_offset}: the source's log was cut, and has grown again",
    )


async def _compare_arrival(
    links: Links, partition: MirroredPartition, arrival: Anchor, reverse: ReverseFlow
) -> Stop | None:
    """Return what is wrong with the last record that came from the target, None as above."""
    there, here = arrival
    original = await _held_on_target(links, partition, there)
    copy = await _held_on_source(links, partition, here)
    if original is None or copy is None or not is_another(original, copy):
        return None
    if copy.header.producer_id in reverse.loop_ids:
        return Stop(
            state=PartitionState.TARGET_DIVERGED,
            reason=f"target offset {there} holds another record than came from there to source "
            f"offset {here}: the target's log was cut, and has grown again",
        )
    return Stop(
        state=PartitionState.SOURCE_WENT_BACK,
        reason=f"source offset {here} holds another record than came there from target offset "
        f"{there}: the source's log was cut, and has grown again",
    )


async def _held_on_source(links: Links, partition: MirroredPartition, offset: int) -> Held | None:
    where = partition.topic_partition
    return await held_at(links.source_admin, links.source_data, where, offset)


async def _held_on_target(links: Links, partition: MirroredPartition, offset: int) -> Held | None:
    where = partition.target_partition
    return await held_at(links.target_admin, links.target_data, where, offset)


async def held_at(
    admin: Cluster, data: Cluster, topic_partition: TopicPartition, offset: int
) -> Held | None:
    """Return what a log holds there, None if it was compacted, is damaged, or may not be read.

    Raises NetworkFault, of which RequestRefused is one.
    """
    return await _held(data, topic_partition, offset, await _leader_epoch(admin, topic_partition))


async def first_held(
    admin: Cluster, data: Cluster, topic_partition: TopicPartition, start: int, end: int
) -> Held | None:
    """Return the first record of [start, end) that a log holds; otherwise as `held_at`."""
    epoch = await _leader_epoch(admin, topic_partition)
    return await _held(data, topic_partition, start, epoch, end)


async def _leader_epoch(cluster: Cluster, topic_partition: TopicPartition) -> int:
    """Return that of the leader that discovery has found; raises NetworkFault.

    A leader that is one no more serves on as a follower, and may not have cut its log yet.
    """
    return (await cluster.metadata((topic_partition[0],))).partition(*topic_partition).leader_epoch


async def _held(
    cluster: Cluster,
    topic_partition: TopicPartition,
    offset: int,
    epoch: int,
    end: int | None = None,
) -> Held | None:
    """Return what lies there, None if it was compacted, is damaged, or may not be read.

    With an `end`, the first record before it is returned that is left. Raises NetworkFault, of
    which RequestRefused is one.
    """
    reader = read_partition(cluster, *topic_partition, offset, end or offset + 1)
    reader.leader_epoch = epoch
    reader.fetch_bytes = ONE_BATCH_BYTES
    try:
        async for header, batch in reader:
            if not crc_is_valid(batch):
                return None
            if header.is_control:
                if end is not None:
                    continue
                return Held(header, None)
            for record in iterate_records(batch):
                if record.offset == offset or (end is not None and record.offset > offset):
                    return Held(header, record)
    except CorruptBatch:
        return None
    except RequestRefused as refused:
        if refused.code not in UNTOLD:
            raise
    return None
