"""Frames with their size in front, cut out of a stream: looked at, taken, or passed on unread."""

from collections.abc import Callable

import trio

from failover.bootstrap.spoken import NotCarried

CHUNK_BYTES = 256 * 1024
"""So much is read at a time, and waits at most for the peer of a frame that is passed on."""


class FrameSource:
    """One direction of a connection, one reader at a time."""

    def __init__(self, stream: trio.abc.ReceiveStream, note_movement: Callable[[], None]) -> None:
        """`note_movement` is called whenever bytes have come."""
        self._stream = stream
        self._note_movement = note_movement
        self._held = bytearray()

    async def look(self, size: int) -> memoryview | None:
        """Return the next bytes without taking them; None if the stream ends before them."""
        while len(self._held) < size:
            if not await self._receive():
                return None
        return memoryview(bytes(self._held[:size]))

    async def take(self, size: int) -> bytearray:
        """Return the next bytes; NotCarried if the stream ends before them."""
        while len(self._held) < size:
            if not await self._receive():
                raise NotCarried(f"the peer left within a frame of {size} bytes")
        if len(self._held) == size:
            taken, self._held = self._held, bytearray()
            return taken
        taken = self._held[:size]
        del self._held[:size]
        return taken

    async def pass_on(self, size: int, to: trio.abc.SendStream) -> None:
        """Send the next bytes as they come; NotCarried if the stream ends before them."""
        part: bytes | bytearray = await self.take(min(size, len(self._held)))
        while True:
            await to.send_all(part)
            self._note_movement()
            size -= len(part)
            if not size:
                return
            # Nothing is held: what comes goes on without a copy.
            chunk = await self._stream.receive_some(CHUNK_BYTES)
            if not chunk:
                raise NotCarried("the peer left within a frame")
            part = chunk if len(chunk) <= size else chunk[:size]
            self._held += chunk[len(part) :]

    async def _receive(self) -> bool:
        chunk = await self._stream.receive_some(CHUNK_BYTES)
        if chunk:
            self._note_movement()
            self._held += chunk
        return bool(chunk)
