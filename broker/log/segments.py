"""The segments of one log, oldest first: finding places in them, growing and shrinking."""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from broker.log.batch_walk import Placed, walk
from broker.log.markers import AbortedTransaction
from broker.log.open_file import OpenFile
from broker.log.results import NOTHING, FileSlice
from broker.log.retention import SegmentFacts
from broker.log.segment import NumberedBatch, RunBatch, Segment

SegmentPosition = tuple[Segment, int]

_HINTS: Final = 32
"""Places remembered per log: enough for its consumers to go on without a search."""


class SegmentList:
    """At least one segment; the last one is written to. Raises OSError where the disk does.

    Readers mostly go on where they, or the last append, ended. The list remembers those positions,
    so that only a reader that jumps pays for a search through the index.
    """

    __slots__ = ("_folder", "_hints", "_segments")

    def __init__(self, folder: Path, segments: Sequence[Segment]) -> None:
        self._folder = folder
        self._segments = list(segments)
        self._hints: dict[int, SegmentPosition] = {}

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def above(self, offset: int) -> list[Segment]:
        """Return the segments that hold something at or above `offset`, oldest first."""
        return self._segments[self._slot(offset) :]

    def files_between(self, offset: int, stop_offset: int) -> list[OpenFile]:
        """Return what must be on the platter for that range, as of now.

        Records, indexes of aborted transactions (which cannot be told from one segment), and the
        folder if a segment in the range is new in it.
        """
        segments = [s for s in self.above(offset) if s.size and s.base_offset < stop_offset]
        aborted = (segment.transactions.file() for segment in segments)
        files = [*(segment.file for segment in segments), *(f for f in aborted if f is not None)]
        if any(segment.base_offset >= offset for segment in segments):
            files.append(OpenFile(self._folder, os.O_RDONLY | os.O_DIRECTORY))
        return files

    def facts(self, log_end_offset: int) -> list[SegmentFacts]:
        """Return what retention decides by."""
        ends = [segment.base_offset for segment in self._segments[1:]] + [log_end_offset]
        return [
            SegmentFacts(end, segment.size, segment.newest_ms())
            for end, segment in zip(ends, self._segments, strict=True)
        ]

    # -- growing and shrinking ----------------------------------------------------------------

    def append(self, batches: Sequence[NumberedBatch], *, interval_bytes: int) -> None:
        """Write the batches to the active segment, all or none."""
        segment, position = self.active, self.active.size
        segment.append(batches, interval_bytes=interval_bytes)
        for batch in batches:
            self._remember(batch.header.base_offset, segment, position)
            position += batch.header.batch_bytes

    def append_run(self, run: Sequence[RunBatch], *, interval_bytes: int) -> None:
        """Write the batches to the active segment, all or none; the first is remembered."""
        segment, position = self.active, self.active.size
        segment.append_run(run, interval_bytes=interval_bytes)
        self._remember(run[0].base_offset, segment, position)

    def roll(self, base_offset: int, now_ms: int) -> None:
        """Close the active segment's indexes and begin a new segment."""
        if self.active.size == 0:
            self._segments.pop().delete()
        else:
            self.active.seal()
        self._segments.append(new_segment(self._folder, base_offset, now_ms))

    def truncate(self, offset: int) -> int:
        """Drop the batches that end at or behind `offset`; return the new end.

        The last segments go first, so that a crash on the way leaves no hole. At least the first
        segment remains, be it empty.
        """
        self._hints.clear()
        while len(self._segments) > 1 and self.active.base_offset >= offset:
            self._segments.pop().delete()
        placed = self.active.find(offset)
        if placed is not None:
            self.active.truncate(placed.position)
        return self.active.next_offset()

    def restart_at(self, offset: int, now_ms: int) -> list[Path]:
        """Drop everything and begin a new segment at `offset`; return the files that are left."""
        self._hints.clear()
        left = [self._segments.pop().retire() for _ in range(len(self._segments))]
        self._segments.append(new_segment(self._folder, offset, now_ms))
        return left

    def retire_oldest(self, count: int) -> list[Path]:
        """Take that many segments from the old end, oldest first; never the active one.

        Return the files that are left of them.
        """
        assert count < len(self._segments)
        self._hints.clear()
        return [self._segments.pop(0).retire() for _ in range(count)]

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Put one segment in the place of neighbours that begin where it does."""
        self._hints.clear()
        slot = self._segments.index(old[0])
        self._segments[slot : slot + len(old)] = [new]

    # -- finding ------------------------------------------------------------------------------

    def locate(
        self, offset: int, max_bytes: int, *, minimum_one_batch: bool, stop_offset: int
    ) -> FileSlice:
        """Return whole batches of one segment from the one that holds `offset` on."""
        located = self._locate(offset)
        if located is None:
            return NOTHING
        segment, position = located
        stop = self._stop(segment, stop_offset)
        end, following = segment.boundary(position, min(position + max_bytes, stop))
        if end <= position:
            if not minimum_one_batch or following is None or following.end > stop:
                return NOTHING
            end = following.end
        elif following is not None:
            self._remember(following.header.base_offset, segment, end)
        end_offset = self._following(segment, stop_offset)
        if following is not None and end == following.position:
            end_offset = following.header.base_offset
        return FileSlice(segment.file, position, end - position, end_offset)

    def _following(self, segment: Segment, stop_offset: int) -> int:
        """Return where the segment behind `segment` begins, `stop_offset` if that is earlier."""
        slot = bisect_right(self._segments, segment.base_offset, key=lambda one: one.base_offset)
        if slot == len(self._segments):
            return stop_offset
        return min(stop_offset, self._segments[slot].base_offset)

    def aborted_transactions(self, start_offset: int, stop_offset: int) -> list[AbortedTransaction]:
        """Return those that overlap the range; their markers may lie in any later segment."""
        aborted: list[AbortedTransaction] = []
        for segment in self.above(start_offset):
            found = segment.transactions.find(start_offset, stop_offset)
            aborted += found.transactions
            if found.is_complete:
                break
        return aborted

    def _stop(self, segment: Segment, stop_offset: int) -> int:
        """Return the byte of `segment` at which the batches at or above `stop_offset` begin."""
        located = self._locate(stop_offset)
        if located is None or located[0].base_offset > segment.base_offset:
            return segment.size
        return located[1] if located[0] is segment else 0

    def _locate(self, offset: int) -> SegmentPosition | None:
        """Return where the first batch begins that ends at or behind `offset`; None at the end."""
        located = self._hints.get(offset)
        if located is not None:
            return located
        for slot in range(self._slot(offset), len(self._segments)):
            segment = self._segments[slot]
            placed = segment.find(offset)
            if placed is not None:
                return segment, placed.position
        return None

    def _slot(self, offset: int) -> int:
        slot = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1
        return max(slot, 0)

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        self._hints[offset] = (segment, position)
        if len(self._hints) > _HINTS:
            del self._hints[next(iter(self._hints))]

    def batches_from_time(self, timestamp_ms: int, offset: int) -> Iterator[FileSlice]:
        """Yield, in order, each batch from `offset` on that may hold a record as young as that."""
        for segment in self._segments[self._slot(offset) :]:
            if segment.max_timestamp < timestamp_ms:
                continue
            hint = segment.timestamp_hint(timestamp_ms)
            if offset > segment.base_offset:
                start = segment.find(offset)
                hint = segment.size if start is None else max(hint, start.position)
            for placed in walk(segment.file, hint, segment.size):
                if placed.header.max_timestamp >= timestamp_ms:
                    yield FileSlice(segment.file, placed.position, placed.header.batch_bytes)

    def walk_from(self, offset: int) -> Iterator[Placed]:
        """Yield every batch that ends at or behind `offset`; headers only."""
        for slot in range(self._slot(offset), len(self._segments)):
            segment = self._segments[slot]
            start = segment.find(offset) if offset > segment.base_offset else None
            if start is None and offset > segment.base_offset:
                continue
            yield from walk(segment.file, start.position if start else 0, segment.size)

    def tail(self, size_bytes: int) -> Iterator[Placed]:
        """Yield the batches in about the last `size_bytes`; headers only."""
        for segment in self._segments[-2:]:
            behind = self.active.size if segment is not self.active else 0
            start = max(0, segment.size - max(0, size_bytes - behind))
            entry = segment.index.floor(1, start)
            position = entry[1] if entry else 0
            if segment.size > start:
                yield from walk(segment.file, position, segment.size)


def new_segment(folder: Path, base_offset: int, now_ms: int) -> Segment:
    """Make an empty segment, with its index files."""
    segment = Segment(folder, base_offset, now_ms)
    segment.seal()
    return segment
