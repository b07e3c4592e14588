"""Kafka's two sparse indexes of a segment: offset → position and timestamp → offset.

    .index       8 bytes an entry:  relative last offset of a batch (int32), its position (int32)
    .timeindex  12 bytes an entry:  largest timestamp so far (int64), relative offset (int32)

Both columns only grow, so either can be searched. Nothing of the file is kept in memory: new
entries wait in a small buffer, lookups read the few entries they need. Entries lost with the
process are no loss, since recovery builds the indexes of unflushed segments anew.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

IndexEntry = tuple[int, int]

_SPILL_BYTES: Final = 4096
"""Entries buffered before they are written; at one per 4 KiB, 2 MiB of records."""
_WINDOW: Final = 512
"""Entries read at once when a search has come this close."""


class SparseIndex:
    """One index file. Raises OSError from every method that touches the disk."""

    __slots__ = ("_layout", "_pending", "_stored", "exists", "last", "path", "torn")

    def __init__(self, path: Path, layout: Struct) -> None:
        self.path = path
        self._layout = layout
        self._pending = bytearray()
        self._stored = 0
        self.last: IndexEntry | None = None
        self.exists = False
        """Whether there is a file: a segment with records whose index has none needs it built."""
        self.torn = False
        """Whether the file ended inside an entry."""
        self._load()

    def _load(self) -> None:
        """Count what is there; Kafka leaves a preallocated tail of zeros after a crash."""
        size = self._layout.size
        try:
            present = self.path.stat().st_size
        except FileNotFoundError:
            return
        self.exists = True
        self.torn = present % size != 0
        count = present // size
        with self.path.open("rb", buffering=0) as file:
            if count and not any(_pread(file.fileno(), size, (count - 1) * size)):
                count = self._zeros_from(file.fileno(), count)
        if count * size != present:
            os.truncate(self.path, count * size)
        self._stored = count
        if count:
            self.last = self[count - 1]

    def _zeros_from(self, descriptor: int, count: int) -> int:
        """Return the first entry of the zero tail; entries grow, so none before it is all zero."""
        size = self._layout.size
        low, high = 0, count - 1
        while low < high:
            middle = (low + high) // 2
            if any(_pread(descriptor, size, middle * size)):
                low = middle + 1
            else:
                high = middle
        return low

    def __len__(self) -> int:
        return self._stored + len(self._pending) // self._layout.size

    def __getitem__(self, slot: int) -> IndexEntry:
        if slot >= self._stored:
            return self._unpack(self._pending, slot - self._stored)
        with self.path.open("rb", buffering=0) as file:
            size = self._layout.size
            return self._unpack(_pread(file.fileno(), size, slot * size), 0)

    def __iter__(self) -> Iterator[IndexEntry]:
        stored = self.path.read_bytes() if self._stored else b""
        yield from self._layout.iter_unpack(stored + self._pending)

    @property
    def size_bytes(self) -> int:
        return len(self) * self._layout.size

    def append(self, entry: IndexEntry) -> None:
        """Add an entry behind all others; the caller sees to it that both columns grow."""
        self._pending += self._layout.pack(*entry)
        self.last = entry
        if len(self._pending) >= _SPILL_BYTES:
            self.spill()

    def floor(self, column: int, target: int) -> IndexEntry | None:
        """Return the last entry whose `column` (0 or 1) is at most `target`."""
        slot = self._count_up_to(column, target)
        if slot == 0:
            return None
        return self.last if slot == len(self) else self[slot - 1]

    def _count_up_to(self, column: int, target: int) -> int:
        """Return how many entries have `column` at most `target`."""
        if self.last is None or self.last[column] <= target:
            return len(self)
        pending = len(self._pending) // self._layout.size
        if pending and self._unpack(self._pending, 0)[column] <= target:
            return self._stored + self._bisect(self._pending, pending, column, target)
        if not self._stored:
            return 0
        with self.path.open("rb", buffering=0) as file:
            return self._search_file(file.fileno(), column, target)

    def _search_file(self, descriptor: int, column: int, target: int) -> int:
        size = self._layout.size
        low, high = 0, self._stored
        while high - low > _WINDOW:
            middle = (low + high) // 2
            entry = self._unpack(_pread(descriptor, size, middle * size), 0)
            if entry[column] <= target:
                low = middle
            else:
                high = middle
        entries = _pread(descriptor, (high - low) * size, low * size)
        return low + self._bisect(entries, high - low, column, target)

    def _bisect(self, entries: bytes | bytearray, count: int, column: int, target: int) -> int:
        return bisect_right(
            range(count), target, key=lambda slot: self._unpack(entries, slot)[column]
        )

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries."""
        if count >= len(self):
            return
        if count >= self._stored:
            del self._pending[(count - self._stored) * self._layout.size :]
        else:
            self._pending.clear()
            os.truncate(self.path, count * self._layout.size)
            self._stored = count
        self.last = self[count - 1] if count else None

    def keep_below(self, column: int, target: int) -> None:
        """Drop every entry whose `column` is at least `target`."""
        self.truncate(self._count_up_to(column, target - 1))

    def spill(self) -> None:
        """Write what is buffered; the file exists afterwards, be it empty."""
        if not self._pending and self.exists:
            return
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _write(descriptor, self._pending, self._stored * self._layout.size)
        finally:
            os.close(descriptor)
        self._stored += len(self._pending) // self._layout.size
        self._pending.clear()
        self.exists = True

    def delete(self) -> None:
        """Remove the file and forget the entries. Raises OSError."""
        self.path.unlink(missing_ok=True)
        self.exists = self.torn = False
        self._pending.clear()
        self._stored = 0
        self.last = None

    def _unpack(self, entries: bytes | bytearray, slot: int) -> IndexEntry:
        first, second = self._layout.unpack_from(entries, slot * self._layout.size)
        return first, second


def offset_index(path: Path) -> SparseIndex:
    """Open a `.index`: (relative offset, position)."""
    return SparseIndex(path, Struct(">ii"))


def time_index(path: Path) -> SparseIndex:
    """Open a `.timeindex`: (timestamp in milliseconds, relative offset)."""
    return SparseIndex(path, Struct(">qi"))


def _pread(descriptor: int, length: int, position: int) -> bytes:
    entries = os.pread(descriptor, length, position)
    if len(entries) != length:
        raise OSError(f"index ends {length - len(entries)} bytes before an entry that was there")
    return entries


def _write(descriptor: int, data: bytearray, position: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, position)
        view, position = view[written:], position + written
    view.release()
