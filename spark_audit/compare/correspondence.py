"""Which target offset holds which source record, by content alone. Pure.

    source  |=aaaa=..=bbbb=|--?--|=cc=|       equal ranges, in parts that holes leave
    target  |=aaaabbbb=|-?-|=cc=|

Equal ranges hold the same records in the same order, so the offsets of their parts say where each
record lies on both sides. Nothing that the mirror wrote is asked: positions and the map are held
against this.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spark_audit.compare.looks import TimedRange
from spark_audit.scan.alignment import Match


class MatchedStretch(NamedTuple):
    """Records that lie one behind the other on both sides."""

    source_start: int
    target_start: int
    records: int


class Correspondence:
    """The segments of one partition, in order: 25 bytes each."""

    def __init__(
        self, source: Sequence[TimedRange], target: Sequence[TimedRange], equal: Sequence[Match]
    ) -> None:
        self._source = array("q")
        self._target = array("q")
        self._before = array("q", [0])
        """How many records lie in the segments before each, and in all of them."""
        self._follows = bytearray()
        """Whether each segment follows the one before it, or the logs' begin, with nothing between
        them that differs."""
        before = Match(-1, -1)
        for pair in equal:
            is_next = pair == Match(before.source + 1, before.target + 1)
            for segment in _segments(source[pair.source].parts(), target[pair.target].parts()):
                self._append(segment, follows=is_next)
                is_next = True
            before = pair
        self._rest = (_parts(source[before.source + 1 :]), _parts(target[before.target + 1 :]))
        self.is_rest_of_source = not self._rest[1]
        """Behind the last segment the target has nothing: what the source has there may wait."""

    def take_end_as_equal(self, *, in_flight: int, may_be_cleaned: bool) -> None:
        """Pair what the target has behind the last segment with the source's first records there.

        For logs that differ there only by so many records in flight, as a second reading has told:
        the target's end cuts a range in two. What cleaners or retention took between the readings
        is in these ranges still, and then nothing is paired. Cleaners may have taken as many
        records of both logs, and others, so where there `may_be` some the gaps have to be alike.

            source  |=====|a-b--c-|dd       the source's cleaner has yet to take a and b, as the
            target  |=====|---x-c-|         target's has, and the target's to take x
        """
        source, target = self._rest
        if _records(source) != _records(target) + in_flight:
            return
        if may_be_cleaned and not _has_same_gaps(source, target):
            return
        for segment in _segments(*self._rest):
            self._append(segment, follows=True)
        self._rest = ([], [])
        self.is_rest_of_source = True

    def _append(self, segment: MatchedStretch, *, follows: bool) -> None:
        last = len(self._source) - 1
        if follows and last >= 0:
            records = self._before[-1] - self._before[-2]
            is_one = (self._source[last] + records, self._target[last] + records) == segment[:2]
            if is_one:
                self._before[-1] += segment.records
                return
        self._source.append(segment.source_start)
        self._target.append(segment.target_start)
        self._before.append(self._before[-1] + segment.records)
        self._follows.append(follows)

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self._source)

    def segments(self) -> Iterator[MatchedStretch]:
        """Yield the segments in order."""
        for index, (source, target) in enumerate(zip(self._source, self._target, strict=True)):
            yield MatchedStretch(source, target, self._before[index + 1] - self._before[index])

    def of_record(self, source_offset: int) -> int | None:
        """Return the target offset of the record at this source offset; None if it has none here.

        The record may be in a hole, in what differs, or behind the mirrored end.
        """
        index = bisect_right(self._source, source_offset) - 1
        if index < 0:
            return None
        step = source_offset - self._source[index]
        is_inside = step < self._before[index + 1] - self._before[index]
        return self._target[index] + step if is_inside else None

    def next_unread(self, source_offset: int) -> int | None:
        """Return the target offset of the first record at or behind this source offset.

        None if nobody can tell, because what lies there differs, or if there is none.
        """
        found = self.of_record(source_offset)
        if found is not None:
            return found
        following = bisect_right(self._source, source_offset)
        if following < len(self._source) and self._follows[following]:
            return self._target[following]
        return None

    def is_behind_all(self, source_offset: int) -> bool:
        """Return whether all records in segments lie before this source offset."""
        index = len(self._source) - 1
        return index < 0 or source_offset >= self._source[index] + (
            self._before[index + 1] - self._before[index]
        )

    def records_before(self, target_offset: int) -> int:
        """Return how many records of the segments lie before a target offset."""
        index = bisect_right(self._target, target_offset) - 1
        if index < 0:
            return 0
        step = target_offset - self._target[index]
        return min(self._before[index] + step, self._before[index + 1])


def _records(parts: Sequence[tuple[int, int]]) -> int:
    return sum(records for _, records in parts)


def _has_same_gaps(source: Sequence[tuple[int, int]], target: Sequence[tuple[int, int]]) -> bool:
    """Return whether the parts of the target begin and end as the source's first do."""
    cuts = list(_segments(source, target))
    shifts = {segment.source_start - segment.target_start for segment in cuts}
    return len(cuts) == len(target) and len(shifts) <= 1


def _parts(ranges: Sequence[TimedRange]) -> list[tuple[int, int]]:
    return [part for one in ranges for part in one.parts()]


def _segments(
    source: Sequence[tuple[int, int]], target: Sequence[tuple[int, int]]
) -> Iterator[MatchedStretch]:
    """Yield the parts of two equal ranges, cut where either has a hole."""
    source_number = target_number = source_done = target_done = 0
    while source_number < len(source) and target_number < len(target):
        source_start, source_records = source[source_number]
        target_start, target_records = target[target_number]
        records = min(source_records - source_done, target_records - target_done)
        yield MatchedStretch(source_start + source_done, target_start + target_done, records)
        source_done, target_done = source_done + records, target_done + records
        if source_done == source_records:
            source_number, source_done = source_number + 1, 0
        if target_done == target_records:
            target_number, target_done = target_number + 1, 0
