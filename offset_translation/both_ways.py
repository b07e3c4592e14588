"""Positions where records flow both ways: each log holds its own records and those of the other.

    dc1   a0 a1 b0 a2 b1        a: written on dc1, b: written on dc2
    dc2   a0 b0 b1 a1 a2        each in the order in which its mirror has brought them

One map joins dc1's own records to their copies on dc2, the other dc2's own to their copies on dc1.
A reader that has read one log up to a position may go on in the other before the first record that
it has not read, whichever site has written it. The records of one site stand in the same order in
both logs, so there are two candidates, and the smaller one is safe:

    the copy of the first record of this side that the reader has not read
    the first record of the other side whose copy it has not read, or that has no copy yet

Once a reader has read everything, that is the other log's end. While the two orders differ, records
that the reader has read may lie behind the position; an unread record never lies before it.
"""

from typing import NamedTuple

from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.translation import Position, translate_clamped


def translate_both_ways(
    forward: OffsetMap, backward: OffsetMap | None, source_offset: int
) -> Position | None:
    """Return where a reader of the source goes on at the target, exact where it can be.

    ``forward`` maps the source to the target, ``backward`` the target to the source; each knows the
    end of the log that it maps into. Without a way back the target's own records do not count. The
    answer is None if nothing was ever announced. In this example dc1's 0..9 are on dc2, which has
    then written three of its own, of which two are on dc1 by now:

    >>> forward = OffsetMap.from_starts([(0, 0)], target_end=10)
    >>> forward.seal(source_end=10, target_end=10)
    >>> forward.advance(13)
    >>> backward = OffsetMap.from_starts([(10, 0)], target_end=0)
    >>> backward.begin_run(0, 10)
    >>> backward.advance(12)
    >>> [translate_both_ways(forward, backward, at).target_offset for at in (4, 10, 11, 12)]
    [4, 10, 11, 12]
    """
    if backward is None or backward.mirrored_source_end is None:
        return translate_clamped(forward, source_offset)
    own = _copy_of_next(forward, source_offset)
    theirs = _next_without_copy(forward, backward, source_offset)
    end = forward.mirrored_source_end
    if end is not None:
        # What lies behind it and came from the target needs no way there.
        end = backward.mirrored_until(end)
    is_ahead = end is not None and source_offset > end
    return Position(
        source_offset=min(source_offset, end) if end is not None else source_offset,
        target_offset=theirs if own is None else min(own, theirs),
        is_exact=not is_ahead,
    )


class Cost(NamedTuple):
    """The records that a reader would get a second time, and those that it would never get."""

    again: int
    passed_over: int


def cost_of_going_on(
    forward: OffsetMap, backward: OffsetMap | None, source_offset: int, target_offset: int
) -> Cost:
    """Return what it costs a reader of the source to go on at this offset of the target.

    Exact as far as the maps reach; of the target's own records without a copy, offsets are counted.

    >>> forward = OffsetMap.from_starts([(0, 0)], target_end=10)
    >>> cost_of_going_on(forward, None, source_offset=8, target_offset=5)
    Cost(again=3, passed_over=0)
    """
    begun = forward.place_of_target(target_offset)
    own = _place_or_end(forward, source_offset) - begun
    theirs, end = 0, forward.mirrored_target_end or 0
    if backward is not None and backward.mirrored_source_end is not None:
        end = backward.mirrored_source_end
        read = backward.place_of_target(source_offset)
        theirs = read - _place_or_end(backward, target_offset)
    uncopied = 0
    if target_offset > end:
        uncopied = max(0, target_offset - end - (begun - forward.place_of_target(end)))
    return Cost(
        again=max(0, own) + max(0, theirs), passed_over=max(0, -own) + max(0, -theirs) + uncopied
    )


def _place_or_end(offset_map: OffsetMap, source_offset: int) -> Place:
    """Return the place of the first record from here on; that of the end if there is none."""
    place = offset_map.place_of_source(source_offset)
    return offset_map.place_end if place is None else place


def _copy_of_next(forward: OffsetMap, source_offset: int) -> int | None:
    """Return where the copy of the first of the source's records from here on lies, if it does."""
    place = forward.place_of_source(source_offset)
    if place is None or place >= forward.place_end:
        return None
    return forward.runs.start_of(place)


def _next_without_copy(forward: OffsetMap, backward: OffsetMap, source_offset: int) -> int:
    """Return the target offset of the first of its own records with no copy before here."""
    place = backward.place_of_target(source_offset)
    found = backward.source_of_place(place)
    assert found is not None, "a map with an end has a record or an end for each of its places"
    # What lies there may have come from the source itself: not one of the target's own.
    return forward.mirrored_until(found)


def first_own_record(log_start: int, arrived: OffsetMap | None) -> int:
    """Return where the first record may lie in a log that no mirror has brought there.

    ``arrived`` maps into this log. Everything before the answer came from the other site.
    """
    return log_start if arrived is None else arrived.mirrored_until(log_start)
