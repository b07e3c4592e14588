"""Large receive buffers that are used again as soon as nobody looks at them.

A fresh megabyte costs as much as the megabyte received into it: it is zeroed, and its pages are
fetched from the kernel. Nobody has to give a buffer back. A mapping refuses to change its size
while any memoryview of it exists, which tells exactly whether an answer, or a batch cut out of
one, is still in use.

Mapped, because a mapping may ask for huge pages before it is first touched: to copy an answer out
of the socket and into the next one costs 5 to 12 % less of the mirror's processor time with them
(batches of 100 KiB, in a virtual machine).
"""

from contextlib import suppress
from mmap import MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final

KEPT_BYTES: Final = 128 * 1024 * 1024
"""What is kept at most; what is in use beyond that goes back to the system afterwards. A distant
broker answers over eight connections, 8 MiB and a few bytes each."""
_STEP_BYTES: Final = 64 * 1024
_LARGE_BYTES: Final = 1024 * 1024
_LARGE_STEPS: Final = 8
"""From a mebibyte on sizes are eighths of a power of two, so that the next answer fits again. What
of a buffer is never written to takes no memory, but counts as kept."""
_MAX_WASTE: Final = 2
"""A buffer serves answers down to half its size."""


class BufferPool:
    """Buffers in use and free ones, shared by the connections of a client."""

    __slots__ = ("_buffers", "_kept_bytes", "_limit_bytes")

    def __init__(self, limit_bytes: int = KEPT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._buffers: list[mmap] = []
        self._kept_bytes = 0

    def take(self, size: int) -> memoryview:
        """Return a writable view of `size` bytes with any content, nobody else's as long as it,
        or a view taken of it, exists.
        """
        for buffer in self._buffers:
            if size <= len(buffer) <= _MAX_WASTE * size and _is_free(buffer):
                return memoryview(buffer)[:size]
        if size > _LARGE_BYTES:
            step = (1 << (size - 1).bit_length()) // _LARGE_STEPS
        else:
            step = _STEP_BYTES
        fresh = _map(-(-size // step) * step)
        if self._has_room(len(fresh)):
            self._buffers.append(fresh)
            self._kept_bytes += len(fresh)
        return memoryview(fresh)[:size]

    def _has_room(self, size: int) -> bool:
        """Drop free buffers, the oldest first, until there is room; say whether there is."""
        if size > self._limit_bytes:
            return False
        for buffer in list(self._buffers):
            if self._kept_bytes + size <= self._limit_bytes:
                return True
            if _is_free(buffer):
                self._buffers.remove(buffer)
                self._kept_bytes -= len(buffer)
        return self._kept_bytes + size <= self._limit_bytes


def _map(size: int) -> mmap:
    buffer = mmap(-1, size, MAP_PRIVATE | MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without huge pages: small ones serve as well
        buffer.madvise(MADV_HUGEPAGE)
    return buffer


def _is_free(buffer: mmap) -> bool:
    try:
        buffer.resize(len(buffer))
    except BufferError:
        return False
    return True
