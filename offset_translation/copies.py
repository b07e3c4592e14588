"""Where the other site has one and the same record, by the offset map. Pure.

    source  |--aaaa--..--bbbbb--|      .. a hole: a marker, or compacted away
    target  |--aaaaxxbbbbb--|          x: the target's own

Positions translate at any offset (`translation`); a record has a copy, or it has none.
"""

from enum import Enum

from offset_translation.offset_map import OffsetMap


class NoCopy(Enum):
    """The reasons for which the map knows no counterpart of a record."""

    UNMIRRORED = "it lies beyond what has been mirrored"
    FORGOTTEN = "the map no longer reaches back so far: the records are gone on one side"
    HOLE = "the map has a hole there: a marker, an aborted record, or one that had come from there"
    OWN = "the site's own writers wrote it, not the mirror"


def copy_of(offset_map: OffsetMap, source_offset: int) -> int | NoCopy:
    """Return the target offset of the copy of the record at a source offset.

    >>> offset_map = OffsetMap.from_starts([(2, 2), (10, 6)], target_end=11)
    >>> [copy_of(offset_map, at) for at in (3, 10, 14)]
    [3, 6, 10]
    >>> [copy_of(offset_map, at).name for at in (1, 7, 15)]
    ['FORGOTTEN', 'HOLE', 'UNMIRRORED']
    """
    start = offset_map.mirrored_source_start
    if start is None:
        return NoCopy.UNMIRRORED
    if source_offset < start:
        return NoCopy.FORGOTTEN
    place = offset_map.place_of_source(source_offset)
    if place is None:
        return NoCopy.UNMIRRORED
    if place >= offset_map.place_end:
        end = offset_map.mirrored_source_end
        return NoCopy.HOLE if end is not None and source_offset < end else NoCopy.UNMIRRORED
    if offset_map.source_of_place(place) != source_offset:
        return NoCopy.HOLE
    return offset_map.runs.start_of(place)


def original_of(offset_map: OffsetMap, target_offset: int) -> int | NoCopy:
    """Return the source offset of the record whose copy lies at a target offset.

    >>> offset_map = OffsetMap.from_starts([(2, 2), (10, 6)], target_end=11)
    >>> [original_of(offset_map, at) for at in (3, 6, 10)]
    [3, 10, 14]
    >>> [original_of(offset_map, at).name for at in (1, 11)]
    ['FORGOTTEN', 'OWN']
    """
    if offset_map.mirrored_source_start is None:
        return NoCopy.UNMIRRORED
    runs = offset_map.runs
    if target_offset < runs.start_of(offset_map.first_place):
        return NoCopy.FORGOTTEN
    place = offset_map.place_of_target(target_offset)
    if place >= offset_map.place_end or runs.start_of(place) != target_offset:
        return NoCopy.OWN
    source = offset_map.source_of_place(place)
    return NoCopy.FORGOTTEN if source is None else source
