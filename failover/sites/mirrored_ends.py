"""Find where the mirrored part of each target ends, behind a source that was lost.

    target  |--aaaaaaaa--|xx|--bbb--|xxx|      a, b: the mirror's batches     x: others' ("foreign")
                                    seal       behind it everything is the target's own

A log's end says nothing of who has written there, and the source cannot be compared any more. The
mirror's batches are known by their producer id, and their sequence is their place. So the seal lies
behind the last one, and what lies between them gets runs in the map, as if both sites had written.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import trio

from failover.journal.facts import Facts, JsonValue
from failover.sites.map_follower import MapFollower
from offset_translation.runs import Place
from offset_translation.tail import Tail, TailGarbled, place_if_expected, sure_place
from offset_translation.target_scan import (
    MirroredEnd,
    TargetScan,
    is_written_by,
    offsets_to_try,
)
from offset_translation.topic_identity import NO_ID, is_recreated
from wire.net.side_by_side import ask_each
from wire.record_batch import CorruptBatch
from wire.topic_partition import TopicPartition

AT_ONCE: Final = 64
"""From afar each takes a round trip, nobody may write meanwhile, and there may be thousands."""
SCANS_AT_ONCE: Final = 8
"""Each holds some megabytes; only logs that others have written to are scanned."""
ONE_BATCH_BYTES: Final = 1
"""A broker sends one whole batch at the least."""
LISTED_PARTS: Final = 500
"""So many foreign parts are named in the journal, which has a limit."""


async def find_mirrored_ends(
    follower: MapFollower, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, MirroredEnd]:
    """Return where each partition's mirrored part ends; `follower` has been refreshed.

    Raises NetworkFault.
    """
    wanted = tuple(partitions)
    starts = await follower.target.starts(wanted)
    topic_ids = await follower.target.topic_ids({topic for topic, _ in wanted})
    ends: dict[TopicPartition, MirroredEnd] = {}
    told_by_end: list[TopicPartition] = []
    for partition in wanted:
        made_for = follower.target_ids.get(partition, NO_ID)
        if not follower.knows(partition) or is_recreated(
            made_for, topic_ids.get(partition.topic, NO_ID)
        ):
            ends[partition] = _nothing_mirrored(follower, partition, starts[partition])
        elif follower.is_told_by_end(partition):
            told_by_end.append(partition)
        else:
            ends[partition] = _as_the_map_says(follower, partition)
    scans = trio.CapacityLimiter(SCANS_AT_ONCE)

    async def end_by_batches(partition: TopicPartition) -> MirroredEnd:
        return await _end_by_batches(follower, partition, starts[partition], scans)

    return ends | await ask_each(told_by_end, end_by_batches, at_once=AT_ONCE)


def _nothing_mirrored(follower: MapFollower, partition: TopicPartition, start: int) -> MirroredEnd:
    """Return the end of a log that no mirror has written to: all that it holds is its own."""
    end = follower.target_ends.get(partition, 0)
    return MirroredEnd(source_end=0, target_end=0, foreign=_part(start, end))


def _as_the_map_says(
    follower: MapFollower, partition: TopicPartition, untold: str = ""
) -> MirroredEnd:
    return MirroredEnd(
        source_end=follower.mirrored_end(partition) or 0,
        target_end=follower.writing_end(partition),
        untold=untold,
    )


async def _end_by_batches(
    follower: MapFollower, partition: TopicPartition, start: int, scans: trio.CapacityLimiter
) -> MirroredEnd:
    """Return the mirrored end that a log's batches tell, of a log whose end should tell it.

    Where its last batch is the mirror's and lies where the map expects it, nobody else has written.
    Nobody has either where a run begins at the log's end: what lies before it was accounted for
    when the mirror announced it, and the partition has been quiet since.
    """
    end = follower.target_ends.get(partition, 0)
    if start >= end or any(target == end for _, target in follower.maps[partition].runs):
        return _as_the_map_says(follower, partition)
    scan = TargetScan(follower.maps[partition], follower.producer_id, follower.producer_ids)
    try:
        if await _expected_at(follower, partition, end - 1) is not None:
            return _as_the_map_says(follower, partition)
        async with scans:
            first, begin = await _begin(follower, partition, start)
            tail = Tail(scan.offset_map, first)
            reader = follower.target.read(partition, begin, end)
            async for header, _ in reader:
                if header.next_offset > begin:
                    scan.take(tail, header)
    except TailGarbled as garbled:
        return _as_the_map_says(follower, partition, str(garbled))
    except CorruptBatch as fault:
        return _as_the_map_says(follower, partition, f"a batch near its end is damaged: {fault}")
    if not scan.has_seen_mirror:
        why = "it holds no batch of the mirror, and nobody can compare it with what was lost"
        return _as_the_map_says(follower, partition, why)
    return scan.mirrored_end(tail)


async def _begin(follower: MapFollower, partition: TopicPartition, start: int) -> tuple[Place, int]:
    """Return a place and its offset before which nobody but the mirror has written.

    Batches are tried near the end first, until one of the mirror's lies where the map expects it.
    """
    end = follower.target_ends[partition]
    place, sure = sure_place(follower.maps[partition], end)
    for offset in offsets_to_try(max(sure, start), end):
        expected = await _expected_at(follower, partition, offset)
        if expected is not None and expected[0] >= place:
            return expected
    return place, max(sure, start)


async def _expected_at(
    follower: MapFollower, partition: TopicPartition, offset: int
) -> tuple[Place, int] | None:
    """Return place and offset of the batch at an offset, if it is the mirror's and expected there.

    The answer is None if others have written it, or before it since the map's last run.
    """
    reader = follower.target.read(partition, offset, offset + 1)
    reader.fetch_bytes = ONE_BATCH_BYTES
    async for header, _ in reader:
        if not is_written_by(follower.producer_id, header):
            return None
        offset_map = follower.maps[partition]
        place = place_if_expected(offset_map, header.base_offset, header.base_sequence)
        return None if place is None else (place, header.base_offset)
    return None


def _part(start: int, stop: int) -> tuple[tuple[int, int], ...]:
    return ((start, stop),) if start < stop else ()


# --- the facts of the step, in the journal -------------------------------------------------------


def seal_facts(found: Mapping[TopicPartition, MirroredEnd]) -> Facts:
    """Return the foreign parts and the ends that no log told, as the journal holds them.

    The first LISTED_PARTS are named, the others counted: the report and `failover divergence` go by
    them.
    """
    foreign: list[JsonValue] = [
        {"topic": partition.topic, "partition": partition.partition, "start": start, "stop": stop}
        for partition, end in sorted(found.items())
        for start, stop in end.foreign
    ]
    untold = {str(partition): end.untold for partition, end in sorted(found.items()) if end.untold}
    named = dict(islice(untold.items(), LISTED_PARTS))
    return {
        "foreign": foreign[:LISTED_PARTS],
        "more_foreign": max(0, len(foreign) - LISTED_PARTS),
        "untold": named,
        "more_untold": len(untold) - len(named),
    }


def with_earlier(facts: Facts, earlier: Facts) -> Facts:
    """Return the facts of a seal with those of an earlier attempt, whose seal may hide them now."""
    parts: Any = facts["foreign"]
    known: Any = earlier.get("foreign", ())
    foreign = [*known, *(part for part in parts if part not in known)]
    untold: Any = {**_mapping(earlier.get("untold")), **_mapping(facts["untold"])}
    named = dict(islice(untold.items(), LISTED_PARTS))
    return {
        "foreign": foreign[:LISTED_PARTS],
        "more_foreign": max(_count(earlier, "more_foreign"), _count(facts, "more_foreign"))
        + max(0, len(foreign) - LISTED_PARTS),
        "untold": named,
        "more_untold": max(_count(earlier, "more_untold"), _count(facts, "more_untold"))
        + len(untold)
        - len(named),
    }


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, Mapping) else {}


def _count(facts: Facts, key: str) -> int:
    found = facts.get(key, 0)
    return found if isinstance(found, int) else 0


def foreign_stops(facts: Facts) -> dict[TopicPartition, set[int]]:
    """Return by partition where each foreign part that the journal names ends on the target."""
    parts: Any = facts.get("foreign", ())
    stops: defaultdict[TopicPartition, set[int]] = defaultdict(set)
    for part in parts:
        stops[TopicPartition(part["topic"], part["partition"])].add(part["stop"])
    return stops


def without_mirrored_away(
    found: Mapping[TopicPartition, MirroredEnd], away: Mapping[TopicPartition, int]
) -> dict[TopicPartition, MirroredEnd]:
    """Return the ends without what the target wrote while it was active, and the lost site has.

    `away` are the ends on the target of what was mirrored from there. Of a log to which a mirror
    has written since, the map tells.
    """
    return {
        partition: end
        if end.target_end
        else replace(end, foreign=_behind(end.foreign, away.get(partition, 0)))
        for partition, end in found.items()
    }


def _behind(parts: Iterable[tuple[int, int]], offset: int) -> tuple[tuple[int, int], ...]:
    return tuple((max(start, offset), stop) for start, stop in parts if stop > offset)
