"""Find targets at whose end others have written.

    source  |--aaaaaaaabb--|     bb is not mirrored yet
    target  |--aaaaaaaaxx--|     xx others have written: as many, so nothing seems to be missing

Where the mirror alone writes to the target, the end of the target's log tells how far it is
mirrored. The last batch tells whether that is so: a batch of the mirror carries its producer id,
and its place as sequence. A batch that MirrorMaker wrote before is compared with the source
instead.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from failover.sites.map_follower import MapFollower
from failover.sites.site import Site, SiteUnclear
from offset_translation.runs import Place
from offset_translation.tail import place_if_expected
from runtime.set_option import set_option
from wire.net.operations import read_partition
from wire.net.side_by_side import ask_each
from wire.record_batch import BatchHeader, CorruptBatch, Record, iterate_records
from wire.topic_partition import TopicPartition

AT_ONCE: Final = 64
"""From afar each takes a round trip, the source is closed meanwhile, and there may be thousands."""


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
    reasons = await ask_each(written, partial(_foreign_writer, source, follower), at_once=AT_ONCE)
    return {
        partition: (
            f"{target.name} {partition}: {reason}, so its end does not tell what of"
            f" {source.name} is there; {_advice(source, follower, partition)}"
        )
        for partition, reason in sorted(reasons.items())
        if reason is not None
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


async def _foreign_writer(
    source: Site, follower: MapFollower, partition: TopicPartition
) -> str | None:
    """Return what the last batch of a target's log tells of others, None if nothing."""
    target, offset_map = follower.target, follower.maps[partition]
    end = follower.target_ends[partition]
    last = await last_batch(target, partition, end)
    _, begin = offset_map.runs.last_before(end)
    if last is None or last[0].base_offset < begin:
        return None  # compacted away, or nothing was mirrored behind what others had written before
    header, batch = last
    at = header.base_offset
    if header.producer_id in follower.producer_ids and not header.is_control:
        is_placed = place_if_expected(offset_map, at, header.base_sequence) is not None
        if is_placed or header.producer_id != follower.producer_id:
            return None
        return f"others have written before the mirror's batch at offset {at}"
    mirrored = None if header.is_control else record_at(target, partition, batch, end - 1)
    beside = offset_map.source_of_place(Place(offset_map.place_end - 1))
    if mirrored is not None and beside is not None:
        last_at_source = await last_batch(source, partition, beside + 1)
        if last_at_source is not None and not last_at_source[0].is_control:
            held = record_at(source, partition, last_at_source[1], beside)
            if held is not None and held[2:] == mirrored[2:]:
                return None
    return f"the batch at offset {at} is no mirror's"


async def last_batch(
    site: Site, partition: TopicPartition, end: int
) -> tuple[BatchHeader, memoryview] | None:
    """Return the batch with the last offset before `end`; None if there is none."""
    try:
        async for batch in read_partition(site.cluster, *partition, end - 1, end):
            return batch
    except CorruptBatch as corrupt:
        raise SiteUnclear(f"{site.name} {partition}: {corrupt}") from corrupt
    return None


def record_at(
    site: Site, partition: TopicPartition, batch: memoryview, offset: int
) -> Record | None:
    """Return the record of this offset; raises SiteUnclear."""
    try:
        return next((record for record in iterate_records(batch) if record.offset == offset), None)
    except CorruptBatch as corrupt:
        raise SiteUnclear(f"{site.name} {partition}: {corrupt}") from corrupt
