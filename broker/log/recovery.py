"""Recovery after an unclean stop: which batches of a segment are sound, and everything rebuilt.

Kafka's rule: from the recovery point on every batch is checked, the first bad one and all that
follows is cut, indexes and producer state are built anew. The checksum leaves out a batch's offset,
so offsets are checked against their neighbours:

    0-9  10-19  20-29  ...     each begins where the one before ends
    0-9  ..     25-34  35-44   a hole: compaction took something; the next batch confirms it
    0-9  ..     90-99  20-29   no hole: the second batch's offset is damaged, cut there
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from broker.log.batch_walk import FileWindow, Placed, placed_at, walk
from broker.log.open_file import OpenFile
from broker.log.results import StorageError
from broker.log.segment import Segment
from broker.log.sparse_index import SparseIndex
from wire.record_batch import (
    HEADER_BYTES,
    MAX_BATCH_BYTES,
    BatchHeader,
    CorruptBatch,
    parse_header,
)
from wire.record_batch.checksum import crc32c

_AT_ONCE: Final = 1024 * 1024
_CRC_STARTS_AT: Final = 21
_INT_MAX: Final = 2**31 - 1


class Damage(NamedTuple):
    """From which byte on a segment is not sound, and why."""

    position: int
    reason: str


class SegmentCheck:
    """Iterates over the sound batches of a segment's file; afterwards `damage` tells the rest.

    next_base        where the next segment begins, None for the last one
    trusts_holes     whether a hole before the very last batch may be (a compacted log)
    """

    def __init__(
        self, file: OpenFile, base_offset: int, *, next_base: int | None, trusts_holes: bool
    ) -> None:
        self._file = file
        self._base_offset = base_offset
        self._next_base = next_base
        self._trusts_holes = trusts_holes
        self.damage: Damage | None = None

    def __iter__(self) -> Iterator[Placed]:
        expected = before_hole = self._base_offset
        held: Placed | None = None  # a batch behind a hole, until the next one confirms the hole
        for placed in self._sound():
            header = placed.header
            if header.base_offset < expected:
                if held is not None and header.base_offset == _without_hole(held, before_hole):
                    self._blame(held, before_hole)
                    return
                if held is not None:
                    yield held
                self._blame(placed, expected)
                return
            if held is not None:
                yield held
                held = None
            if header.base_offset > expected:
                held, before_hole = placed, expected
            else:
                yield placed
            expected = header.next_offset
        if held is None:
            return
        if self._confirms(held):
            yield held
        else:
            self._blame(held, before_hole)

    def _confirms(self, held: Placed) -> bool:
        if self.damage is None and self._next_base is not None:
            return held.header.next_offset <= self._next_base
        return self._trusts_holes

    def _blame(self, placed: Placed, expected: int) -> None:
        self.damage = Damage(
            placed.position, f"base offset {placed.header.base_offset}, expected {expected}"
        )

    def _sound(self) -> Iterator[Placed]:
        """Yield batches as long as header, length and checksum hold."""
        end = os.fstat(self._file.fileno()).st_size
        window = FileWindow(self._file, end, _AT_ONCE)
        position = 0
        while position < end:
            try:
                header = parse_header(window.view(position, HEADER_BYTES))
            except CorruptBatch as fault:
                self.damage = Damage(position, fault.reason)
                return
            reason = self._fault(window, position, header, end)
            if reason is not None:
                self.damage = Damage(position, reason)
                return
            yield placed_at(window, position, header)
            position += header.batch_bytes

    def _fault(
        self, window: FileWindow, position: int, header: BatchHeader, end: int
    ) -> str | None:
        stop = position + header.batch_bytes
        if stop > end:
            return f"{end - position} of the batch's {header.batch_bytes} bytes are there"
        if header.batch_bytes > MAX_BATCH_BYTES:
            return f"a batch cannot have {header.batch_bytes} bytes"
        if header.last_offset - self._base_offset > _INT_MAX:
            return f"offset {header.last_offset} is too far from the segment's {self._base_offset}"
        crc = 0
        for start in range(position + _CRC_STARTS_AT, stop, _AT_ONCE):
            crc = crc32c(window.view(start, min(_AT_ONCE, stop - start)), crc)
        return None if crc == header.crc else f"checksum {crc} where {header.crc} is stored"


def _without_hole(held: Placed, before_hole: int) -> int:
    """Return where the batch behind `held` begins if `held` should have begun before the hole."""
    return before_hole + held.header.last_offset_delta + 1


def rebuild(segment: Segment, check: SegmentCheck, *, interval_bytes: int) -> Iterator[Placed]:
    """Build the segment's size and indexes anew from its sound batches; yield these.

    To be run to its end: then the file has been cut behind the last sound batch. The index of
    aborted transactions is emptied; who knows the producers fills it.
    """
    segment.reset_indexes()
    segment.transactions.delete()
    for placed in check:
        segment.note(placed, interval_bytes=interval_bytes)
        yield placed
    if check.damage is not None:
        os.ftruncate(segment.file.fileno(), segment.size)
    segment.seal()


def index_fault(segment: Segment) -> str | None:
    """Return what is wrong with the indexes of a segment that should be sound, None if nothing."""
    if segment.size == 0:
        return "entries without records" if len(segment.index) else None
    for index in (segment.index, segment.time_index):
        if not index.exists:
            return f"{index.path.name} is missing"
        if index.torn:
            return f"{index.path.name} ends inside an entry"
        if not _grows(index):
            return f"{index.path.name} is not in order"
    fault = segment.transactions.fault(segment.base_offset)
    if fault is not None:
        return f"{segment.transactions.path.name} {fault}"
    return _last_entry_fault(segment)


def _grows(index: SparseIndex) -> bool:
    first, second = -1, -1
    for entry in index:
        if entry[0] <= first or entry[1] < second:
            return False
        first, second = entry
    return True


def _last_entry_fault(segment: Segment) -> str | None:
    offset, position = segment.index.last or (0, 0)
    if position >= segment.size:
        return f"{segment.index.path.name} points behind the end"
    try:
        placed = next(walk(segment.file, position, segment.size))
        end = segment.next_offset()
    except StorageError as fault:
        return f"{segment.index.path.name}: {fault.reason}"
    if segment.index.last and placed.header.last_offset - segment.base_offset != offset:
        return f"{segment.index.path.name} points to another batch"
    if segment.time_index.last and segment.base_offset + segment.time_index.last[1] >= end:
        return f"{segment.time_index.path.name} points behind the end"
    return None


def segment_bases(folder: Path) -> list[int]:
    """Return the base offsets of the segments in a folder, in order."""
    return sorted(int(path.stem) for path in folder.glob("*.log") if path.stem.isdecimal())
