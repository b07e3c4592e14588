"""Translate positions: "the next record not yet read", from source to target and back."""

from enum import Enum
from typing import NamedTuple

from offset_translation.offset_map import OffsetMap


class NotYet(Enum):
    """The reasons for which a position has no exact counterpart."""

    UNMIRRORED = "the position lies beyond what has been mirrored"
    FORGOTTEN = "the position lies before the oldest piece still held"


class Position(NamedTuple):
    """A place that both logs share: everything before it is on both sides.

    ``is_exact`` is False if the position asked for lies elsewhere and this is the nearest place
    from which nothing unread is skipped.
    """

    source_offset: int
    target_offset: int
    is_exact: bool


def translate(offset_map: OffsetMap, source_offset: int) -> int | NotYet:
    """Return the target offset of the next record that a reader at ``source_offset`` has not read.

        source  |--aaaa--..--bbbbb--|      .. a hole: a marker, or compacted away
        target  |--aaaabbbbb--|            pieces: (2, 2) (10, 6)

    A position in a hole means "after aaaa", which is where bbbbb begins. The mirrored end
    translates to the target's mirrored end; what lies beyond is not there yet. Where the target has
    records of its own in between, the answer is where those begin, because nothing says that they
    were read; ``both_ways`` knows more.

    >>> offset_map = OffsetMap.from_starts([(2, 2), (10, 6)], target_end=11)
    >>> translate(offset_map, 4), translate(offset_map, 7), translate(offset_map, 15)
    (4, 6, 11)
    >>> translate(offset_map, 16).name, translate(offset_map, 1).name
    ('UNMIRRORED', 'FORGOTTEN')
    """
    place = offset_map.place_of_source(source_offset)
    if place is None:
        start = offset_map.mirrored_source_start
        is_forgotten = start is not None and source_offset < start
        return NotYet.FORGOTTEN if is_forgotten else NotYet.UNMIRRORED
    if place == offset_map.first_place:
        start = offset_map.mirrored_source_start
        if start is None:
            return NotYet.UNMIRRORED
        if source_offset < start:
            return NotYet.FORGOTTEN
    return offset_map.runs.end_of(place)


def translate_clamped(offset_map: OffsetMap, source_offset: int) -> Position | None:
    """Return where a reader may go on without skipping anything, exact where it can be.

    Beyond the mirrored end that is the mirrored end: every mirrored record has been read. Before
    the oldest piece it is that piece's start. None if nothing was ever announced.

    >>> offset_map = OffsetMap.from_starts([(2, 2), (10, 6)], target_end=11)
    >>> translate_clamped(offset_map, 900)
    Position(source_offset=15, target_offset=11, is_exact=False)
    """
    found = translate(offset_map, source_offset)
    if not isinstance(found, NotYet):
        return Position(source_offset, found, is_exact=True)
    first_source = offset_map.mirrored_source_start
    source_end = offset_map.mirrored_source_end
    target_end = offset_map.mirrored_target_end
    if first_source is None or source_end is None or target_end is None:
        return None
    if found is NotYet.UNMIRRORED:
        return Position(source_end, target_end, is_exact=False)
    oldest = offset_map.runs.end_of(offset_map.first_place)
    return Position(first_source, oldest, is_exact=False)


def translate_back(offset_map: OffsetMap, target_offset: int) -> int | NotYet:
    """Return the source offset of the next record that a reader of the target has not read.

    Among the target's own records, and beyond the mirrored end, there is none: UNMIRRORED.

    >>> offset_map = OffsetMap.from_starts([(2, 2), (10, 6)], target_end=11)
    >>> translate_back(offset_map, 5), translate_back(offset_map, 6), translate_back(offset_map, 11)
    (5, 10, 15)
    """
    runs = offset_map.runs
    if offset_map.mirrored_source_end is None:
        return NotYet.UNMIRRORED
    if target_offset < runs.end_of(offset_map.first_place):
        return NotYet.FORGOTTEN
    place = offset_map.place_of_target(target_offset)
    if target_offset not in {runs.end_of(place), runs.start_of(place)}:
        return NotYet.UNMIRRORED
    found = offset_map.source_of_place(place)
    return NotYet.UNMIRRORED if found is None else found
