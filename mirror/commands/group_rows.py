"""The position at which a group would go on at the target, by partition, and its cost. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum

from offset_translation.both_ways import cost_of_going_on, translate_both_ways
from offset_translation.checkpoint import Checkpoint
from offset_translation.offset_map import OffsetMap
from offset_translation.translation import NotYet, translate, translate_clamped
from wire.topic_partition import TopicPartition
from wire.values import frozen


class Exactness(Enum):
    """The relation of a group's position on the source to the records on the target."""

    EXACT = "exact"
    AMONG_READ = "written to at both sites: it has read some records behind it"
    AHEAD = "waiting for data"
    FORGOTTEN = "before the oldest mirrored record"
    UNMAPPED = "not mirrored"
    CUT = "before the target's log start"


@frozen
class GroupsSeen:
    """The findings of a look at both clusters; a site that did not answer has none."""

    maps: Mapping[TopicPartition, OffsetMap]
    """Advanced to the target's log ends."""
    source_ends: Mapping[TopicPartition, int]
    target_starts: Mapping[TopicPartition, int]
    backward: Mapping[TopicPartition, OffsetMap] = field(default_factory=dict)
    """The map of records that came into the source from the target, if known to its end."""


@frozen
class KnownCheckpoint:
    """The position that the mirror applied last for one partition of a group, and its time."""

    checkpoint: Checkpoint
    written_ms: int


@frozen
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
    gone: int = 0
    """Offsets from the position's own place on the target to the log start, where it goes on."""


def group_rows(
    group: str,
    *,
    source: Mapping[TopicPartition, int] | None,
    target: Mapping[TopicPartition, int],
    checkpoints: Mapping[TopicPartition, KnownCheckpoint],
    sight: GroupsSeen,
) -> list[GroupRow]:
    """Return a row for each partition that the group has a position on.

    ``source`` is None when the source does not answer: then the checkpoints' side of it counts.
    """
    if source is None:
        source = {
            topic_partition: known.checkpoint.upstream_offset
            for topic_partition, known in checkpoints.items()
        }
        is_last_known = True
    else:
        is_last_known = False
    rows = []
    for topic_partition, offset in sorted(source.items()):
        source_end, known = sight.source_ends.get(topic_partition), checkpoints.get(topic_partition)
        translated, exactness = (
            _last_placed(sight, topic_partition, known, offset)
            if is_last_known
            else _placed(sight, topic_partition, offset)
        )
        start, gone = sight.target_starts.get(topic_partition), 0
        if translated is not None and start is not None and translated < start:
            translated, exactness, gone = start, Exactness.CUT, start - translated
        begins_at = target.get(topic_partition, start)
        if begins_at is not None and start is not None:
            begins_at = max(begins_at, start)
        reread, skipped = _cost(sight, topic_partition, offset, translated, begins_at)
        rows.append(
            GroupRow(
                group=group,
                topic=topic_partition[0],
                partition=topic_partition[1],
                source_offset=offset,
                is_last_known=is_last_known,
                source_lag=None if source_end is None else max(0, source_end - offset),
                target_offset=target.get(topic_partition),
                translated=translated,
                exactness=exactness,
                reread=reread,
                skipped=skipped,
                applied_ms=None if known is None else known.written_ms,
                gone=gone,
            )
        )
    return rows


def _placed(
    sight: GroupsSeen, topic_partition: TopicPartition, source_offset: int
) -> tuple[int | None, Exactness]:
    return where_it_belongs(
        sight.maps.get(topic_partition), sight.backward.get(topic_partition), source_offset
    )


def _last_placed(
    sight: GroupsSeen,
    topic_partition: TopicPartition,
    known: KnownCheckpoint | None,
    source_offset: int,
) -> tuple[int | None, Exactness]:
    """Return a position's place while the source, and with it the way back's map, is away.

    Everything before a checkpoint had been read when it was written.
    """
    translated, exactness = _placed(sight, topic_partition, source_offset)
    applied = None if known is None else known.checkpoint.downstream_offset
    if translated is None or applied is None or not translated < applied:
        return translated, exactness
    return min(applied, sight.maps[topic_partition].target_end), Exactness.EXACT


def _cost(
    sight: GroupsSeen,
    topic_partition: TopicPartition,
    source_offset: int,
    translated: int | None,
    begins_at: int | None,
) -> tuple[int | None, int | None]:
    """Return how many records would be read again, and passed over, from ``begins_at`` on."""
    if translated is None or begins_at is None:
        return None, None
    if topic_partition in sight.backward:
        cost = cost_of_going_on(
            sight.maps[topic_partition], sight.backward[topic_partition], source_offset, begins_at
        )
        return cost.again, cost.passed_over
    return max(0, translated - begins_at), max(0, begins_at - translated)


def where_it_belongs(
    forward: OffsetMap | None, backward: OffsetMap | None, source_offset: int
) -> tuple[int | None, Exactness]:
    """Return the target position for a source position, and how exact that is.

    ``backward`` maps what came into the source from the target, None if that is not known.
    """
    if forward is not None and backward is not None:
        return _between_both(forward, backward, source_offset)
    clamped = None if forward is None else translate_clamped(forward, source_offset)
    if forward is None or clamped is None:
        return None, Exactness.UNMAPPED
    match translate(forward, source_offset):
        case NotYet.UNMIRRORED:
            return clamped.target_offset, Exactness.AHEAD
        case NotYet.FORGOTTEN:
            return clamped.target_offset, Exactness.FORGOTTEN
        case int(target_offset):
            return target_offset, Exactness.EXACT


def _between_both(
    forward: OffsetMap, backward: OffsetMap, source_offset: int
) -> tuple[int | None, Exactness]:
    position = translate_both_ways(forward, backward, source_offset)
    if position is None:
        return None, Exactness.UNMAPPED
    oldest = backward.runs.start_of(backward.first_place)
    if forward.mirrored_source_start is not None:
        oldest = min(oldest, forward.mirrored_source_start)
    if not position.is_exact:
        exactness = Exactness.AHEAD
    elif source_offset < oldest:
        exactness = Exactness.FORGOTTEN
    elif cost_of_going_on(forward, backward, source_offset, position.target_offset).again:
        exactness = Exactness.AMONG_READ
    else:
        exactness = Exactness.EXACT
    return position.target_offset, exactness


def summary(rows: Iterable[GroupRow]) -> str:
    """Return one line about the cost of a switch for the group now."""
    found = list(rows)
    reread = [row.reread for row in found]
    skipped = sum(row.skipped or 0 for row in found)
    unknown = reread.count(None)
    again = sum(count for count in reread if count is not None)
    words = [f"{len(found)} partitions", f"{again} records would be read again"]
    if skipped:
        words.append(f"{skipped} passed over (the group is further on the target)")
    gone = sum(row.gone for row in found)
    if gone:
        words.append(f"{gone} offsets before the target's log start are gone there")
    if unknown:
        words.append(f"unknown for {unknown} partitions")
    return ", ".join(words)
