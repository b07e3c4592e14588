"""One segment: a stretch of the log in one file, with its indexes."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from broker.log.batch_walk import Placed, walk
from broker.log.config import LogConfig
from broker.log.markers import Marker, read_marker
from broker.log.open_file import OpenFile
from broker.log.results import StorageError
from broker.log.sparse_index import offset_index, time_index
from broker.log.transaction_index import TransactionIndex
from wire.record_batch import BatchHeader, Buffer

LOG: Final = logging.getLogger(__name__)

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
RETIRED: Final = ".deleted"
"""Behind the name of a file that is no part of the log any more: opening the log removes it."""

_INT_MAX: Final = 2**31 - 1
_REPAIR_INTERVAL_BYTES: Final = 4096
"""index.interval.bytes of an index made anew in passing."""
_INDEX_ROOM_BYTES: Final = 16
_TIME_INDEX_ROOM_BYTES: Final = 32
"""For an entry and what `must_roll` leaves free behind the last one."""
_MAX_PARTS: Final = 1024
"""Buffers that one pwritev may take (IOV_MAX on Linux)."""


class NumberedBatch(NamedTuple):
    """A batch ready to be written: header bytes with its offsets, and its untouched records."""

    head: Buffer
    records: Buffer
    header: BatchHeader

    def marker(self) -> Marker | None:
        """Return how it says that a transaction ended, None if it says nothing of one."""
        if not self.header.is_control:
            return None
        return read_marker(b"".join((self.head, self.records)))


class RunBatch(NamedTuple):
    """A whole batch ready to be written, which was numbered in the buffer that it came in."""

    data: memoryview
    base_offset: int
    last_offset: int
    max_timestamp: int


class Segment:
    """Records from `base_offset` on, in a file named after it. Raises OSError where the disk does.

    size            bytes of whole batches; what may lie behind them in the file is never read
    max_timestamp   the largest of the batches' timestamps, -1 for none
    created_ms      when this process opened or made it

    The file is opened when it is needed and closed by `rest`; an idle segment holds no descriptor.
    """

    __slots__ = (
        "_file",
        "_first_timestamp",
        "_max_timestamp_offset",
        "_was_used",
        "base_offset",
        "created_ms",
        "index",
        "max_timestamp",
        "path",
        "size",
        "time_index",
        "transactions",
    )

    def __init__(self, folder: Path, base_offset: int, now_ms: int, *, suffix: str = "") -> None:
        """Open the segment that begins at that offset; made if it is not there.

        `suffix` marks the names of files that are not yet part of the log.
        """
        self.path = folder / file_name(base_offset, LOG_SUFFIX + suffix)
        self.base_offset = base_offset
        self.created_ms = now_ms
        self.index = offset_index(folder / file_name(base_offset, INDEX_SUFFIX + suffix))
        self.time_index = time_index(folder / file_name(base_offset, TIME_INDEX_SUFFIX + suffix))
        self.transactions = TransactionIndex(
            folder / file_name(base_offset, TRANSACTION_INDEX_SUFFIX + suffix)
        )
        self._file: OpenFile | None = None
        self._was_used = False
        self._first_timestamp: int | None = None
        self.max_timestamp = -1
        self._max_timestamp_offset = base_offset
        self.size = os.fstat(self.file.fileno()).st_size

    @property
    def file(self) -> OpenFile:
        """The open file, opened if need be."""
        self._was_used = True
        if self._file is None:
            self._file = OpenFile(self.path, os.O_RDWR | os.O_CREAT)
        return self._file

    @property
    def first_timestamp(self) -> int:
        """The first batch's timestamp, by which the segment's age is told; -1 for none."""
        if self._first_timestamp is None:
            first = next(walk(self.file, 0, self.size), None)
            if first is None:
                return -1
            self._first_timestamp = first.header.max_timestamp
        return self._first_timestamp

    def spill(self) -> None:
        """Write buffered index entries."""
        self.index.spill()
        self.time_index.spill()

    def rest(self) -> None:
        """Write buffered index entries; close the file if nobody used it since the last call."""
        self.spill()
        if not self._was_used:
            self.close()
        self._was_used = False

    def close(self) -> None:
        """Close the file until somebody needs it again."""
        self._file = None
        self.transactions.rest()

    # -- writing ------------------------------------------------------------------------------

    def append(self, batches: Sequence[NumberedBatch], *, interval_bytes: int) -> None:
        """Write the batches at the end, in one system call.

        When the disk refuses, the file is cut back to what it was: `size` never covers half a
        batch, and whoever opens the file later finds none.
        """
        self._write([part for batch in batches for part in (batch.head, batch.records)])
        for batch in batches:
            self.note(Placed(self.size, batch.header), interval_bytes=interval_bytes)

    def _write(self, parts: list[Buffer]) -> None:
        descriptor = self.file.fileno()
        if len(parts) > _MAX_PARTS:
            parts = [b"".join(parts)]
        length = sum(map(len, parts))
        try:
            written = os.pwritev(descriptor, parts, self.size)
            while written < length:
                rest = memoryview(b"".join(parts))[written:]
                written += os.pwrite(descriptor, rest, self.size + written)
        except OSError:
            os.ftruncate(descriptor, self.size)
            raise

    def append_run(self, run: Sequence[RunBatch], *, interval_bytes: int) -> None:
        """Do as `append` does for batches that were numbered where they lie."""
        self._write([batch.data for batch in run])
        for batch in run:
            self._note(
                self.size, len(batch.data), batch.last_offset, batch.max_timestamp, interval_bytes
            )

    def note(self, placed: Placed, *, interval_bytes: int) -> None:
        """Take a batch that lies at the end into size, indexes and timestamps."""
        header = placed.header
        self._note(
            placed.position,
            header.batch_bytes,
            header.last_offset,
            header.max_timestamp,
            interval_bytes,
        )

    def _note(
        self,
        position: int,
        size: int,
        last_offset: int,
        max_timestamp: int,
        interval_bytes: int,
    ) -> None:
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if position == 0:
            self._first_timestamp = max_timestamp
        indexed = self.index.last[1] if self.index.last else 0
        if position - indexed > interval_bytes:
            self.index.append((last_offset - self.base_offset, position))
            self._note_timestamp()
        self.size = position + size

    def _note_timestamp(self) -> None:
        noted = self.time_index.last[0] if self.time_index.last else -1
        if self.max_timestamp > noted:
            offset = self._max_timestamp_offset - self.base_offset
            self.time_index.append((self.max_timestamp, offset))

    def seal(self) -> None:
        """Complete the indexes, as when the segment is rolled or closed."""
        self._note_timestamp()
        self.spill()

    def load_timestamps(self) -> None:
        """Learn the largest timestamp of a sealed segment from its time index."""
        if self.time_index.last is not None:
            self.max_timestamp, offset = self.time_index.last
            self._max_timestamp_offset = self.base_offset + offset
        else:
            self._scan_timestamps(0)

    def _scan_timestamps(self, position: int) -> None:
        for placed in walk(self.file, position, self.size):
            if placed.header.max_timestamp > self.max_timestamp:
                self.max_timestamp = placed.header.max_timestamp
                self._max_timestamp_offset = placed.header.last_offset

    def truncate(self, position: int) -> None:
        """Cut everything from byte `position`, where a batch begins, on."""
        os.ftruncate(self.file.fileno(), position)
        self.size = position
        self.index.keep_below(1, position)
        end = 0 if position == 0 else self.next_offset() - self.base_offset
        self.time_index.keep_below(1, end)
        self.max_timestamp, self._max_timestamp_offset = -1, self.base_offset
        if self.time_index.last is not None:
            self.max_timestamp, offset = self.time_index.last
            self._max_timestamp_offset = self.base_offset + offset
        self.transactions.truncate(self.base_offset + end)
        # The last time entry is never older than the last offset entry: they are made together.
        self._scan_timestamps(self.index.last[1] if self.index.last else 0)
        if position == 0:
            self._first_timestamp = None

    def reset_indexes(self) -> None:
        """Forget the two sparse indexes and the size, to be built anew with `note`."""
        self.index.delete()
        self.time_index.delete()
        self.size = 0
        self.max_timestamp, self._max_timestamp_offset = -1, self.base_offset
        self._first_timestamp = None

    def delete(self) -> None:
        """Remove the files; who still reads from one keeps it open."""
        self._file = None
        self.path.unlink(missing_ok=True)
        self.index.delete()
        self.time_index.delete()
        self.transactions.delete()

    def retire(self) -> Path:
        """Take the segment out of the log; return the file that is left, to be removed beside."""
        left = self.path.with_name(self.path.name + RETIRED)
        with suppress(FileNotFoundError):  # somebody has removed it
            self.path.rename(left)
        self.delete()
        return left

    # -- reading ------------------------------------------------------------------------------

    def find(self, offset: int) -> Placed | None:
        """Return the first batch that ends at or behind `offset`, None if there is none."""
        for placed in self._walk_near(0, offset - self.base_offset):
            if placed.header.last_offset >= offset:
                return placed
        return None

    def boundary(self, start: int, limit: int) -> tuple[int, Placed | None]:
        """Return the last byte up to `limit` where a batch ends, and the batch that begins there.

        `start`, a byte where a batch begins, if the one there is already too long. No batch begins
        at the segment's end.
        """
        if limit >= self.size:
            return self.size, None
        for placed in self._walk_near(1, limit):
            if placed.position >= start and placed.end > limit:
                return placed.position, placed
        return self.size, None

    def _walk_near(self, column: int, target: int) -> Iterator[Placed]:
        """Walk from the last index entry whose `column` is at most `target`.

        An entry that does not fit the batch it points to would hide records: then the index is
        made anew.
        """
        entry = self.index.floor(column, target)
        if entry is not None and not self._fits(entry):
            LOG.warning("%s: wrong entry %s, the index is made anew", self.index.path, entry)
            self._repair_indexes()
            entry = self.index.floor(column, target)
        return walk(self.file, entry[1] if entry else 0, self.size)

    def _fits(self, entry: tuple[int, int]) -> bool:
        try:
            placed = next(walk(self.file, entry[1], self.size), None)
        except StorageError:
            return False
        return placed is not None and placed.header.last_offset - self.base_offset == entry[0]

    def _repair_indexes(self) -> None:
        size = self.size
        self.reset_indexes()
        try:
            for placed in walk(self.file, 0, size):
                self.note(placed, interval_bytes=_REPAIR_INTERVAL_BYTES)
        finally:
            self.size = size

    def next_offset(self) -> int:
        """Return the offset behind the last batch; the base offset if there is none."""
        last: Placed | None = None
        for placed in walk(self.file, self.index.last[1] if self.index.last else 0, self.size):
            last = placed
        return last.header.next_offset if last else self.base_offset

    def timestamp_hint(self, timestamp_ms: int) -> int:
        """Return a byte before which no record is as young as that."""
        entry = self.time_index.floor(0, timestamp_ms)
        if entry is None:
            return 0
        place = self.index.floor(0, entry[1])
        return place[1] if place else 0

    def must_roll(self, config: LogConfig, added: int, header: BatchHeader, now_ms: int) -> bool:
        """Say whether `added` bytes that end with the batch `header` belong in a new segment.

        Kafka's rule: by size, by age (told by the records' timestamps if they have any), by a
        full index, or because the offset does not fit into an index entry.
        """
        if self.size == 0:
            return header.last_offset - self.base_offset > _INT_MAX
        if self.size + added > config.segment_bytes:
            return True
        if header.last_offset - self.base_offset > _INT_MAX:
            return True
        if self.index.size_bytes > config.segment_index_bytes - 8:
            return True
        if self.time_index.size_bytes > config.segment_index_bytes - 24:
            return True
        return self._age_ms(header.max_timestamp, now_ms) > config.segment_ms

    def has_room_for(
        self, config: LogConfig, size: int, batches: int, last_offset: int, newest_ms: int
    ) -> bool:
        """Say whether none of so many batches, of `size` bytes together, would have it rolled.

        `newest_ms` is the largest of their timestamps, of which each has one. An empty segment
        says no, as its first batch's timestamp decides about the others, and so does one close to
        a limit or just opened: such batches are looked at one by one.
        """
        index_bytes = config.segment_index_bytes
        return (
            0 < self.size <= config.segment_bytes - size
            and last_offset - self.base_offset <= _INT_MAX
            and self.index.size_bytes + batches * _INDEX_ROOM_BYTES <= index_bytes
            and self.time_index.size_bytes + batches * _TIME_INDEX_ROOM_BYTES <= index_bytes
            and self._first_timestamp is not None
            and self._first_timestamp >= 0
            and newest_ms - self._first_timestamp <= config.segment_ms
        )

    def _age_ms(self, timestamp_ms: int, now_ms: int) -> int:
        first = self.first_timestamp
        if first >= 0 and timestamp_ms >= 0:
            return timestamp_ms - first
        return now_ms - self.created_ms

    def newest_ms(self) -> int:
        """Return the time that retention goes by: the largest timestamp, else the file's."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return int(self.path.stat().st_mtime * 1000)


def file_name(offset: int, suffix: str) -> str:
    """Return Kafka's file name for what begins at `offset`."""
    return f"{offset:020d}{suffix}"
