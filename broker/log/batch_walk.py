"""Walking over the batches of a segment file from one header to the next, in few reads."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from broker.log.markers import Marker, read_marker
from broker.log.open_file import OpenFile
from broker.log.results import StorageError
from wire.record_batch import HEADER_BYTES, BatchHeader, CorruptBatch, parse_header

HEADERS_AT_ONCE: Final = 4096
"""Bytes read ahead when only headers are wanted: an index entry is rarely farther away."""


class Placed(NamedTuple):
    """A batch and where it begins in its segment."""

    position: int
    header: BatchHeader
    marker: Marker | None = None
    """How a transaction ended, if the batch is a control batch that says so."""

    @property
    def end(self) -> int:
        return self.position + self.header.batch_bytes


class FileWindow:
    """A stretch of a file held in memory, moved forward as it is asked for."""

    __slots__ = ("_ahead", "_end", "_file", "_start", "_view")

    def __init__(self, file: OpenFile, end: int, ahead: int) -> None:
        """Show the file up to byte `end`, reading at least `ahead` bytes at once."""
        self._file = file
        self._end = end
        self._ahead = ahead
        self._start = 0
        self._view = memoryview(b"")

    def view(self, position: int, length: int) -> memoryview:
        """Return `length` bytes at `position`; fewer at the end. Raises OSError."""
        begin = position - self._start
        if begin < 0 or begin + length > len(self._view):
            wanted = min(max(length, self._ahead), self._end - position)
            self._view = memoryview(self._file.read(position, wanted))
            self._start, begin = position, 0
        return self._view[begin : begin + length]


def walk(file: OpenFile, position: int, end: int) -> Iterator[Placed]:
    """Yield the batches from byte `position` (where one begins) up to byte `end`.

    Only headers are read, and the markers of transactions. Raises StorageError where there is no
    batch, and OSError.
    """
    return walk_window(FileWindow(file, end, HEADERS_AT_ONCE), file, position, end)


def walk_window(window: FileWindow, file: OpenFile, position: int, end: int) -> Iterator[Placed]:
    """Yield the batches as `walk` does, by way of a window that the caller looks through, too."""
    while position < end:
        try:
            header = parse_header(window.view(position, HEADER_BYTES))
        except CorruptBatch as fault:
            raise StorageError(file.path, f"byte {position}: {fault.reason}") from None
        if header.batch_bytes > end - position:
            raise StorageError(file.path, f"byte {position}: the batch goes on behind the end")
        yield placed_at(window, position, header)
        position += header.batch_bytes


def placed_at(window: FileWindow, position: int, header: BatchHeader) -> Placed:
    """Return the batch at a place; all of a control batch is read. Raises OSError."""
    if not header.is_control:
        return Placed(position, header)
    return Placed(position, header, read_marker(window.view(position, header.batch_bytes)))
