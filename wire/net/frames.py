"""Size-prefixed frames cut out of a byte stream, large ones without a copy.

Small answers are read many at a time into one buffer and copied out of it; what does not fit in
there gets a buffer of its own, which the socket fills directly and which the decoded answer then
points into.
"""

from struct import Struct
from typing import Final

import trio

from wire.net.buffers import BufferPool
from wire.net.transport import Transport
from wire.primitives import Buffer

MAX_RESPONSE_BYTES: Final = 256 * 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_AT_ONCE_BYTES: Final = 16 * 1024 * 1024
"""Of a large frame so much is waited for at a time, or what the system lets wait in a socket: 3 MiB
before Linux 6.16, 16 MiB since. A wake-up costs as much as copying 200 KiB."""
_GATHER_S: Final = 0.003
"""Answers gather for so long where the transport cannot wait for a number of bytes."""
_SIZE: Final = Struct(">i")


class FrameRefused(ValueError):
    """A frame claims a size that cannot be, or is larger than the limit."""


class FrameReader:
    """Reads frames off one transport, one reader at a time."""

    __slots__ = (
        "_buffers",
        "_chunk",
        "_end",
        "_is_large",
        "_max_bytes",
        "_start",
        "_transport",
        "received_bytes",
    )

    def __init__(
        self,
        transport: Transport,
        buffers: BufferPool,
        *,
        max_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self._transport = transport
        self._buffers = buffers
        self._max_bytes = max_bytes
        self._chunk = memoryview(bytearray(_CHUNK_BYTES))
        self._start = 0
        self._end = 0
        self._is_large = False
        self.received_bytes = 0
        """What was read off the transport."""

    @property
    def is_within_one(self) -> bool:
        """Whether a part of a frame has been read, and not the whole."""
        return self._is_large or not self.is_empty

    @property
    def is_empty(self) -> bool:
        """Whether the next frame has to be waited for from its first byte on."""
        return self._start == self._end

    @property
    def holds_another(self) -> bool:
        """Whether `receive` would return a frame without waiting."""
        held = self._end - self._start - _SIZE.size
        return held >= 0 and _SIZE.unpack_from(self._chunk, self._start)[0] <= held

    async def gather(self, least: int) -> None:
        """Wait, while it is empty, for so many bytes of small frames, which must be to come.

        Where a transport cannot tell, as of ciphertext, for a moment.
        """
        if not self._transport.waits_for_least:
            await trio.sleep(_GATHER_S)
            return
        self._start = 0
        self._end = await self._transport.receive_into(self._chunk, min(least, _CHUNK_BYTES))
        self.received_bytes += self._end

    async def receive(self) -> Buffer | None:
        """Return the next frame without its size; None if the stream ended before its last byte.

        Raises FrameRefused. Must not be called again after being cancelled inside a frame.
        """
        if not await self._have(_SIZE.size):
            return None
        (size,) = _SIZE.unpack_from(self._chunk, self._start)
        if not 0 <= size <= self._max_bytes:
            raise FrameRefused(f"a frame of {size} bytes; allowed are {self._max_bytes}")
        self._start += _SIZE.size
        if size > _CHUNK_BYTES:
            return await self._receive_large(size)
        if not await self._have(size):
            return None
        frame = bytes(self._chunk[self._start : self._start + size])
        self._start += size
        return frame

    async def _have(self, size: int) -> bool:
        """Read until the chunk holds `size` bytes from its start on; False at the end."""
        if self._start + size > _CHUNK_BYTES or self._start == self._end:
            held = self._end - self._start
            self._chunk[:held] = bytes(self._chunk[self._start : self._end])
            self._start, self._end = 0, held
        while self._end - self._start < size:
            received = await self._transport.receive_into(self._chunk[self._end :])
            if not received:
                return False
            self._end += received
            self.received_bytes += received
        return True

    async def _receive_large(self, size: int) -> Buffer | None:
        frame = self._buffers.take(size)
        filled = self._end - self._start
        frame[:filled] = self._chunk[self._start : self._end]
        self._start = self._end = 0
        self._is_large = True
        while filled < size:
            rest = frame[filled:]
            received = await self._transport.receive_into(rest, min(len(rest), _AT_ONCE_BYTES))
            if not received:
                return None
            filled += received
            self.received_bytes += received
        self._is_large = False
        return frame
