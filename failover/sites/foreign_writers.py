"""Find targets at whose end others have written.

    source  |--aaaaaaaabb--|     bb is not mirrored yet
    target  |--aaaaaaaaxx--|     xx others have written: as many, so nothing seems to be missing

Where the mirror alone writes to the target, the end of the target's log tells how far it is
mirrored. The last batch tells whether that is so: a batch of the mirror carries its producer id,
and its place as sequence. A batch that MirrorMaker wrote before is compared with the source
instead.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from failover.sites.map_follower import MapFollower
from failover.sites.site import Site, SiteUnclear
from offset_translation.runs import Place
from offset_translation.tail import place_if_expected
from runtime.set_option import set_option
from wire.net.held_batches import HeldBatch
from wire.net.side_by_side import ask_each
from wire.record_batch import BatchHeader, CorruptBatch, Record, iterate_records
from wire.topic_partition import TopicPartition

AT_ONCE: Final = 64
"""From afar each takes a round trip, the source is closed meanwhile, and there may be thousands."""
IN_MEMORY: Final = 512
"""Of so many partitions batches are held at a time: some kilobytes each, as a rule."""


async def find_foreign_writers(
    source: Site, follower: MapFollower, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, str]:
    """Return the partitions at whose target's end others have written, and what to do for each.

    `follower` has been refreshed. Raises NetworkFault.
    """
    target = follower.target
    told_by_end = [partition for partition in partitions if follower.is_told_by_end(partition)]
    starts = await target.starts(told_by_end)
    written = [
        partition
        for partition in told_by_end
        if starts[partition] < follower.target_ends[partition]
    ]
    reasons: dict[TopicPartition, str] = {}
    for some in portions(written):
        reasons |= await _foreign_batches(source, follower, some)
    return {
        partition: (
            f"{target.name} {partition}: {reason}, so its end does not tell what of"
            f" {source.name} is there; {_advice(source, follower, partition)}"
        )
        for partition, reason in sorted(reasons.items())
    }


def _advice(source: Site, follower: MapFollower, partition: TopicPartition) -> str:
    if follower.unbelieved is not None:
        return f"before anything is set aside: {follower.unbelieved}"
    of_set = set_option(follower.topic_set)
    return (
        f"`failover divergence{of_set}` lists what others wrote; set it aside with"
        f" `mirror restart {source.name}-{follower.target_name} {partition.topic} --quarantine"
        f"{of_set}`, or begin anew with --from-earliest, which deletes the copy on"
        f" {follower.target_name}"
    )


async def _foreign_batches(
    source: Site, follower: MapFollower, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, str]:
    """Return what the last batches of the target's logs tell of others."""
    target = follower.target
    last = await last_batches(target, {one: follower.target_ends[one] for one in partitions})
    found: dict[TopicPartition, str] = {}
    unknown: dict[TopicPartition, Record] = {}
    for where, held in last.items():
        why = None if held is None else _why_foreign(follower, where, held[0])
        if held is None or why is None:
            continue
        found[where] = why
        if held[0].is_control or held[0].producer_id in follower.producer_ids:
            continue
        record = record_at(target, where, held[1], follower.target_ends[where] - 1)
        if record is not None:
            unknown[where] = record
    for where in await _held_by_source(source, follower, unknown):
        del found[where]
    return found


def _why_foreign(follower: MapFollower, partition: TopicPartition, last: BatchHeader) -> str | None:
    """Return what the last batch of a target's log tells of others by itself, None if nothing."""
    offset_map, at = follower.maps[partition], last.base_offset
    _, begin = offset_map.runs.last_before(follower.target_ends[partition])
    if at < begin:
        return None  # nothing was mirrored behind what others had written before
    if last.producer_id in follower.producer_ids and not last.is_control:
        is_placed = place_if_expected(offset_map, at, last.base_sequence) is not None
        if is_placed or last.producer_id != follower.producer_id:
            return None
        return f"others have written before the mirror's batch at offset {at}"
    return f"the batch at offset {at} is no mirror's"


async def _held_by_source(
    source: Site, follower: MapFollower, unknown: Mapping[TopicPartition, Record]
) -> list[TopicPartition]:
    """Return the partitions whose last record at the target is the source's all the same."""
    beside = {
        where: at
        for where in unknown
        if (at := follower.maps[where].source_of_place(_last_place(follower, where))) is not None
    }
    last = await last_batches(source, {where: at + 1 for where, at in beside.items()})
    same: list[TopicPartition] = []
    for where, held in last.items():
        if held is None or held[0].is_control:
            continue
        record = record_at(source, where, held[1], beside[where])
        if record is not None and record[2:] == unknown[where][2:]:
            same.append(where)
    return same


def _last_place(follower: MapFollower, partition: TopicPartition) -> Place:
    return Place(follower.maps[partition].place_end - 1)


def portions(partitions: Sequence[TopicPartition]) -> Iterator[Sequence[TopicPartition]]:
    """Return the partitions by so many as have their batches in memory at a time."""
    for first in range(0, len(partitions), IN_MEMORY):
        yield partitions[first : first + IN_MEMORY]


async def last_batches(
    site: Site, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, HeldBatch | None]:
    """Return the batch with the last offset before each end; None where there is none.

    Raises NetworkFault; SiteUnclear for a damaged one.
    """
    held = await site.batches({where: end - 1 for where, end in ends.items()})

    async def last_batch(where: TopicPartition) -> HeldBatch | None:
        try:
            async for batch in site.read(where, ends[where] - 1, ends[where]):
                return batch
        except CorruptBatch as corrupt:
            raise SiteUnclear(f"{site.name} {where}: {corrupt}") from corrupt
        return None

    return held | await ask_each(ends.keys() - held.keys(), last_batch, at_once=AT_ONCE)


def record_at(
    site: Site, partition: TopicPartition, batch: memoryview, offset: int
) -> Record | None:
    """Return the record of this offset; raises SiteUnclear."""
    try:
        return next((record for record in iterate_records(batch) if record.offset == offset), None)
    except CorruptBatch as corrupt:
        raise SiteUnclear(f"{site.name} {partition}: {corrupt}") from corrupt
