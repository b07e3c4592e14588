"""How windows are looked into: whole, or, where very much may wait or be gone, at one edge. Pure.

A mirror that is far behind leaves a source's end, and retention that is far ahead a log's
beginning, that the other log has nothing of. What lies there is counted by its ranges and not read,
if what both logs do have beside it is equal.

    source  |=====|---=====|=====|=====|     the target's end cuts a range in two
    target  |=====|---|
    near          '--------'  rest is in flight
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spark_audit.compare.explain import NOT_YET, TAKEN_ON_SOURCE, TAKEN_ON_TARGET
from spark_audit.scan.digests import DigestRange
from spark_audit.scan.windows import LOG_START, Window
from spark_audit.snapshot.side import Side

LONG_RECORDS: Final = 100_000
"""Windows of more records are looked into at one edge first."""
MOST_PARTS: Final = 100
"""So many runs of records are named of what is missing at a source's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Records in a row on one side that are not read."""

    side: Side
    is_end: bool
    """They lie at the end, and are in flight; else at the beginning, and retention took them."""
    first_offset: int
    records: int
    oldest_ms: int | None
    parts: tuple[tuple[int, int], ...]
    """First offsets and numbers of records, which add up to `records`: see `waiting_parts`."""

    @property
    def reason(self) -> str:
        """Return why the other side does not have them."""
        if self.is_end:
            return NOT_YET
        return TAKEN_ON_TARGET if self.side is Side.SOURCE else TAKEN_ON_SOURCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """The offsets to read of each side, and what is then left."""

    source: tuple[int, int]
    target: tuple[int, int]
    rest: Rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A window, and the edge that may be enough."""

    window: Window
    near: Near | None = None


@dataclass(frozen=True, slots=True)
class TimedRange:
    """A range, the time of its first record, and the parts that holes leave of it."""

    range: DigestRange
    first_ms: int | None
    runs: bytes | None = None

    def parts(self) -> Sequence[tuple[int, int]]:
        """Return first offset and number of records of each part."""
        if self.runs is None:
            return [(self.range.start_offset, self.range.records)]
        numbers = array("q", self.runs)
        return list(zip(numbers[::2], numbers[1::2], strict=True))


def within(ranges: Sequence[TimedRange], start: int, stop: int) -> Sequence[TimedRange]:
    """Return the ranges, of many in order, that begin between two offsets."""
    first = bisect_left(ranges, start, key=_start)
    return ranges[first : bisect_left(ranges, stop, lo=first, key=_start)]


def _start(one: TimedRange) -> int:
    return one.range.start_offset


def waiting_parts(
    ranges: Sequence[TimedRange], promised_end: int | None
) -> tuple[tuple[int, int], ...]:
    """Return first offset and number of records of what waits, in parts.

    What the mirror had brought lies before `promised_end`, and each part of it is a run of records
    without holes: those are missing, and are named. Behind `MOST_PARTS` the last one is the rest of
    them, and the very last part is what may wait.
    """
    before: list[tuple[int, int]] = []
    waiting: list[tuple[int, int]] = []
    for first, records in (part for one in ranges for part in one.parts()):
        promised = 0 if promised_end is None else max(0, min(records, promised_end - first))
        if promised and before and (len(before) == MOST_PARTS or sum(before[-1]) == first):
            before[-1] = before[-1][0], before[-1][1] + promised
        elif promised:
            before.append((first, promised))
        if records > promised:
            waiting.append((first + promised, records - promised))
    rest = [(waiting[0][0], sum(records for _, records in waiting))] if waiting else []
    return (*before, *rest)


def look_into(
    window: Window,
    source: Sequence[TimedRange],
    target: Sequence[TimedRange],
    *,
    may_wait: bool,
    promised_end: int | None = None,
    longest: int = LONG_RECORDS,
) -> Look:
    """Return how to look into a window; `source` and `target` are its ranges in order."""
    surplus = window.source_records - window.target_records
    if may_wait and window.target_records and surplus > longest:
        near = _beginning(window, source, window.target_records, promised_end)
        return Look(window=window, near=near)
    begins_logs = window.source_start == window.target_start == LOG_START
    if begins_logs and not window.is_last and abs(surplus) > longest:
        return Look(window=window, near=_ending(window, source, target))
    return Look(window=window)


def _beginning(
    window: Window, source: Sequence[TimedRange], records: int, promised_end: int | None
) -> Near | None:
    """Return the window without the ranges that lie behind as many records as the target has."""
    so_far = number = 0
    while so_far < records:
        so_far += source[number].range.records
        number += 1
    rest = _rest(Side.SOURCE, source[number:], is_end=True, promised_end=promised_end)
    if rest is None:
        return None
    return Near(
        source=(window.source_start, rest.first_offset),
        target=(window.target_start, window.target_stop),
        rest=rest,
    )


def _ending(
    window: Window, source: Sequence[TimedRange], target: Sequence[TimedRange]
) -> Near | None:
    """Return the window without ranges that lie before as many records as the shorter log has."""
    is_source_longer = window.source_records > window.target_records
    side, ranges, records = (
        (Side.SOURCE, source, window.target_records)
        if is_source_longer
        else (Side.TARGET, target, window.source_records)
    )
    number, so_far = len(ranges), 0
    while number and so_far < records:
        number -= 1
        so_far += ranges[number].range.records
    rest = _rest(side, ranges[:number], is_end=False)
    if rest is None:
        return None
    stop = window.source_stop if is_source_longer else window.target_stop
    start = ranges[number].range.start_offset if number < len(ranges) else stop
    of_source, of_target = (
        (window.source_start, window.source_stop),
        (window.target_start, window.target_stop),
    )
    if is_source_longer:
        return Near(source=(start, window.source_stop), target=of_target, rest=rest)
    return Near(source=of_source, target=(start, window.target_stop), rest=rest)


def _rest(
    side: Side, ranges: Sequence[TimedRange], *, is_end: bool, promised_end: int | None = None
) -> Rest | None:
    if not ranges:
        return None
    times = [one.first_ms for one in ranges if one.first_ms is not None]
    return Rest(
        side=side,
        is_end=is_end,
        first_offset=ranges[0].range.start_offset,
        records=sum(one.range.records for one in ranges),
        oldest_ms=min(times, default=None),
        parts=waiting_parts(ranges, promised_end),
    )
