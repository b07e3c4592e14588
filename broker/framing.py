"""From received bytes to whole requests: one reused buffer per connection, never more than needed.

    | done | frame | frame | part of a frame | free space |
           start                             end

A frame is a 4-byte length and that many bytes. A peer that announces much and sends little holds
little: the buffer grows with what has really arrived.
"""

from struct import Struct
from typing import Final

SIZE: Final = Struct(">i")
SMALLEST_BUFFER: Final = 64 * 1024
BUSY_BUFFER: Final = 256 * 1024
"""Of a peer that fills the smallest one with frames at once: they are handled together."""
GROWTH: Final = 4
_TLS_HANDSHAKES: Final = range(0x160300, 0x160305)
"""How a TLS conversation begins: a handshake record, in one of the versions 3.0 to 3.4."""


class BadFrame(ValueError):
    """The peer sent something that is no request, so the connection cannot go on."""


class CloseConnection(Exception):
    """The protocol's only answer here is to end the connection; the message says why."""


class FrameBuffer:
    """Bytes in, frames out. A frame's view is valid until `space` is called again."""

    def __init__(self, largest_frame: int) -> None:
        self.largest_frame = largest_frame
        self._memory = memoryview(bytearray(0))
        self._start = 0
        self._end = 0
        self._wanted = SIZE.size

    def limit(self, largest_frame: int) -> None:
        """Take frames up to another size from now on."""
        self.largest_frame = largest_frame

    @property
    def capacity(self) -> int:
        """Return how many bytes of memory are held."""
        return len(self._memory)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is left but what has been handed out."""
        return self._start == self._end

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame without its length, None until more arrives.

        Raises BadFrame for a length that no request may have.
        """
        held = self._end - self._start
        if held < SIZE.size:
            self._wanted = SIZE.size
            return None
        (size,) = SIZE.unpack_from(self._memory, self._start)
        if not 0 <= size <= self.largest_frame:
            if size >> 8 in _TLS_HANDSHAKES:
                raise BadFrame("the client speaks TLS, which is not spoken on this listener")
            raise BadFrame(f"a frame of {size} bytes; the limit is {self.largest_frame}")
        if held < SIZE.size + size:
            self._wanted = SIZE.size + size
            return None
        first = self._start + SIZE.size
        self._start = first + size
        return self._memory[first : self._start]

    def held(self) -> tuple[memoryview, int, int]:
        """Return the memory, and from where to where in it lies what was not handed out yet."""
        return self._memory, self._start, self._end

    def pass_over(self, position: int) -> None:
        """Note that all before this place of the memory, where a frame ends, has been read."""
        self._start = position

    def space(self) -> memoryview:
        """Return memory to receive into, at least one byte of it."""
        is_busy = self._start > 0 and self._end == self.capacity
        if self.is_empty:
            self._start = self._end = 0
        fits = self._start + self._wanted <= self.capacity
        if is_busy and self.capacity < BUSY_BUFFER:
            self._make_room(BUSY_BUFFER)
        elif not fits or self._end == self.capacity:
            self._make_room()
        return self._memory[self._end :]

    def grew(self, received: int) -> None:
        """Take in the first `received` bytes of what `space` returned."""
        self._end += received

    def release(self) -> None:
        """Give the memory back, if it is empty: the connection is idle."""
        if self.is_empty:
            self._memory = memoryview(bytearray(0))
            self._start = self._end = 0

    def _make_room(self, least: int = SMALLEST_BUFFER) -> None:
        held = self._memory[self._start : self._end]
        grown = max(least, min(self._wanted, GROWTH * len(held)))
        if grown > self.capacity:
            memory = memoryview(bytearray(grown))
            memory[: len(held)] = held
            self._memory = memory
        elif self._start:
            self._memory[: len(held)] = bytes(held)
        self._end = len(held)
        self._start = 0
