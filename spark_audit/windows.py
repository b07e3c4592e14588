"""Where two logs of one partition differ: windows between ranges that are equal. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from spark_audit.alignment import common_subsequence
from spark_audit.digests import DigestRange

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


def windows_between(source: Sequence[DigestRange], target: Sequence[DigestRange]) -> list[Window]:
    """Return the windows in which the logs differ, in order; none when they are equal.

    Equal ranges are kept in order such that as many records as can be are outside the windows.
    """
    pairs = common_subsequence(
        [found.digest for found in source],
        [found.digest for found in target],
        [found.records for found in source],
    )
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


def _records(ranges: Sequence[DigestRange]) -> int:
    return sum(found.records for found in ranges)
