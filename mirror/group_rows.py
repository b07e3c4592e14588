"""Where a group would go on at the target, by partition, and what that would cost. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from offset_translation.checkpoint import Checkpoint
from offset_translation.map_records import TopicPartition
from offset_translation.offset_map import OffsetMap
from offset_translation.translation import NotYet, translate, translate_clamped


class Exactness(Enum):
    """How the group's position on the source relates to what is on the target."""

    EXACT = "exact"
    AHEAD = "waiting for data"
    FORGOTTEN = "before the oldest mirrored record"
    UNMAPPED = "not mirrored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a look at both clusters has found; a site that did not answer has nothing in it."""

    maps: Mapping[TopicPartition, OffsetMap]
    """Advanced to the target's log ends."""
    source_ends: Mapping[TopicPartition, int]
    target_starts: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCheckpoint:
    """What the mirror applied last for one partition of a group, and when."""

    checkpoint: Checkpoint
    written_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One partition of one group. None: not known, or there is none."""

    group: str
    topic: str
    partition: int
    source_offset: int
    is_last_known: bool
    """The source did not answer: its position is the one that was mirrored last."""
    source_lag: int | None
    target_offset: int | None
    """The group's own position on the target."""
    translated: int | None
    """Where the position belongs on the target; with exactness AHEAD, the mirrored end."""
    exactness: Exactness
    reread: int | None
    """Records that the group would read again if it went on at the target now."""
    skipped: int | None
    """Records that it would not read: it has moved on there by itself, or a commit is wrong."""
    applied_ms: int | None
    """When the mirror applied a position here last."""


def group_rows(
    group: str,
    *,
    source: Mapping[TopicPartition, int] | None,
    target: Mapping[TopicPartition, int],
    checkpoints: Mapping[TopicPartition, KnownCheckpoint],
    sight: Sight,
) -> list[GroupRow]:
    """Return a row for each partition that the group has a position on.

    ``source`` is None when the source does not answer: then the checkpoints' side of it counts.
    """
    if source is None:
        source = {place: known.checkpoint.upstream_offset for place, known in checkpoints.items()}
        is_last_known = True
    else:
        is_last_known = False
    rows = []
    for place, offset in sorted(source.items()):
        source_end, known = sight.source_ends.get(place), checkpoints.get(place)
        translated, exactness = where_it_belongs(sight.maps.get(place), offset)
        begins_at = target.get(place, sight.target_starts.get(place))
        distance = None if translated is None or begins_at is None else translated - begins_at
        rows.append(
            GroupRow(
                group=group,
                topic=place[0],
                partition=place[1],
                source_offset=offset,
                is_last_known=is_last_known,
                source_lag=None if source_end is None else max(0, source_end - offset),
                target_offset=target.get(place),
                translated=translated,
                exactness=exactness,
                reread=None if distance is None else max(0, distance),
                skipped=None if distance is None else max(0, -distance),
                applied_ms=None if known is None else known.written_ms,
            )
        )
    return rows


def where_it_belongs(
    offset_map: OffsetMap | None, source_offset: int
) -> tuple[int | None, Exactness]:
    """Return the target position for a source position, and how exact that is."""
    clamped = None if offset_map is None else translate_clamped(offset_map, source_offset)
    if offset_map is None or clamped is None:
        return None, Exactness.UNMAPPED
    match translate(offset_map, source_offset):
        case NotYet.UNMIRRORED:
            return clamped.target_offset, Exactness.AHEAD
        case NotYet.FORGOTTEN:
            return clamped.target_offset, Exactness.FORGOTTEN
        case int(target_offset):
            return target_offset, Exactness.EXACT


def summary(rows: Iterable[GroupRow]) -> str:
    """Return in one line what a switch would cost the group now."""
    found = list(rows)
    reread = [row.reread for row in found]
    skipped = sum(row.skipped or 0 for row in found)
    unknown = reread.count(None)
    again = sum(count for count in reread if count is not None)
    words = [f"{len(found)} partitions", f"{again} records would be read again"]
    if skipped:
        words.append(f"{skipped} passed over (the group is further on the target)")
    if unknown:
        words.append(f"unknown for {unknown} partitions")
    return ", ".join(words)
