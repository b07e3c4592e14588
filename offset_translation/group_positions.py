"""Decide what to commit for a group on the target, given what is known of both sides.

The rules: forward only, unless the source was really rewound; a null position (-1, as some clients
write) is as good as none; an empty partition is 0; never beyond the mirrored end of the target. A
group that has members there is left alone by the broker, which refuses the commit.
"""

from enum import Enum
from typing import NamedTuple

from offset_translation.both_ways import translate_both_ways
from offset_translation.offset_map import OffsetMap
from offset_translation.translation import Position


class Leave(Enum):
    """The reasons for which no position is committed."""

    GROUP_IS_ACTIVE = "the group has members on the target"
    """The broker has refused the commit."""
    NOTHING_MIRRORED = "the partition has not been mirrored yet"
    ALREADY_THERE = "the target already holds this position"
    TARGET_IS_AHEAD = "the group has moved further on the target by itself"


class GroupPosition(NamedTuple):
    """One partition of one group, as seen on both sides; None or negative means no position."""

    source_offset: int
    applied_source_offset: int | None
    """The source side of what the mirror committed last; tells a rewind from a run ahead."""
    target_offset: int | None


def decide_commit(
    offset_map: OffsetMap,
    position: GroupPosition,
    *,
    backward: OffsetMap | None = None,
    target_log_start: int = 0,
) -> Position | Leave:
    """Return the position to commit on the target, or why none is.

    See `where_to` for the maps.
    """
    wanted = where_to(
        offset_map, position.source_offset, backward=backward, target_log_start=target_log_start
    )
    if wanted is None:
        return Leave.NOTHING_MIRRORED
    current = position.target_offset
    decision = forward_only(wanted, current)
    if decision is not Leave.TARGET_IS_AHEAD or not _was_rewound(position, wanted):
        return decision
    assert current is not None, "nothing is ahead of no position"
    is_echo = _is_echo(offset_map, backward, position.source_offset, current)
    return decision if is_echo else wanted


def where_to(
    offset_map: OffsetMap,
    source_offset: int,
    *,
    backward: OffsetMap | None = None,
    target_log_start: int = 0,
) -> Position | None:
    """Return where on the target a position of the source is; None if nothing was mirrored.

    ``backward`` maps what came into the source from the target, if anything did. A position before
    ``target_log_start`` would be out of range there: the group goes on at the first record left.
    """
    wanted = translate_both_ways(offset_map, backward, max(source_offset, 0))
    if wanted is not None and wanted.target_offset < target_log_start:
        return wanted._replace(target_offset=target_log_start, is_exact=False)
    return wanted


def forward_only(wanted: Position, current: int | None) -> Position | Leave:
    """Return what to commit for a group that stands at ``current``, if it has never gone back."""
    if current is None or current < wanted.target_offset:
        return wanted
    return Leave.ALREADY_THERE if wanted.target_offset == current else Leave.TARGET_IS_AHEAD


def _was_rewound(position: GroupPosition, wanted: Position) -> bool:
    """Whether the source group went back behind what was committed for it here.

    That is never behind the oldest piece, however long before it the group stands still.
    """
    applied = position.applied_source_offset
    return applied is not None and max(position.source_offset, wanted.source_offset) < applied


def _is_echo(
    offset_map: OffsetMap, backward: OffsetMap | None, source_offset: int, current: int
) -> bool:
    """Whether the source's position may be the copy of the target's, by the flow back.

    Where records of both sites interleave otherwise on either, a position that went there and back
    lies before where it was. Taken for a rewind it would be carried to and fro down to offset 0.
    """
    if backward is None:
        return False
    copied = translate_both_ways(backward, offset_map, current)
    return copied is not None and copied.target_offset <= source_offset
