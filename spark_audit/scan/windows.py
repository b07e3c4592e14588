"""Windows between equal ranges, in which two logs of one partition differ. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from spark_audit.scan.alignment import Match, common_subsequence
from spark_audit.scan.digests import DigestRange

LOG_START: Final = 0
LOG_STOP: Final = (1 << 63) - 1
"""Edges of a window that no equal range bounds; a reader takes the snapshot's bounds instead."""


class Window(NamedTuple):
    """Offsets [start, stop) of both logs between two equal ranges, at least one not empty.

    source  |=====|--a--b-----|=====|       ===  ranges equal on both sides
    target  |=====|--b----|=====|           ---  the window
    """

    source_start: int
    source_stop: int
    target_start: int
    target_stop: int
    source_records: int
    target_records: int
    is_last: bool
    """No equal range follows: the end of the source's log lies in it."""


def equal_ranges(source: Sequence[DigestRange], target: Sequence[DigestRange]) -> list[Match]:
    """Return the ranges that are in their place on both sides, in order, by their numbers.

    They are chosen such that as many records as can be are in them.
    """
    pairs = common_subsequence(
        [digest_range.digest for digest_range in source],
        [digest_range.digest for digest_range in target],
        [digest_range.records for digest_range in source],
    )
    return _firm(pairs, Match(len(source), len(target)))


def windows_between(
    source: Sequence[DigestRange],
    target: Sequence[DigestRange],
    equal: Sequence[Match] | None = None,
) -> list[Window]:
    """Return the windows in which the logs differ, in order; none when they are equal.

    They lie between the ranges that are `equal`, as `equal_ranges` has them.
    """
    pairs = equal_ranges(source, target) if equal is None else equal
    windows: list[Window] = []
    source_index = target_index = 0
    source_start = target_start = LOG_START
    for pair in [*pairs, None]:
        source_next = len(source) if pair is None else pair.source
        target_next = len(target) if pair is None else pair.target
        if source_next > source_index or target_next > target_index:
            windows.append(
                Window(
                    source_start=source_start,
                    source_stop=LOG_STOP if pair is None else source[pair.source].start_offset,
                    target_start=target_start,
                    target_stop=LOG_STOP if pair is None else target[pair.target].start_offset,
                    source_records=_records(source[source_index:source_next]),
                    target_records=_records(target[target_index:target_next]),
                    is_last=pair is None,
                )
            )
        if pair is not None:
            source_index, target_index = pair.source + 1, pair.target + 1
            source_start = source[pair.source].stop_offset
            target_start = target[pair.target].stop_offset
    return windows


def _firm(pairs: list[Match], end: Match) -> list[Match]:
    """Return the pairs without a first or a last one that may be equal by chance.

    Where a log begins and ends it cuts a range short, to one record maybe, and a copy of that may
    be the other log's first or last range. Such a pair counts only beside another one.

        source  |=====|-b-c-|=b=|      two records wait at the end, and nothing is lost before it:
        target  |=====|=b=|            this b is the first of the source's
    """
    if pairs and not _is_beside(pairs[-2] if pairs[1:] else Match(-1, -1), pairs[-1]):
        pairs = pairs[:-1]
    if pairs and not _is_beside(pairs[0], pairs[1] if pairs[1:] else end):
        pairs = pairs[1:]
    return pairs


def _is_beside(pair: Match, following: Match) -> bool:
    return following == Match(pair.source + 1, pair.target + 1)


def _records(ranges: Sequence[DigestRange]) -> int:
    return sum(digest_range.records for digest_range in ranges)
