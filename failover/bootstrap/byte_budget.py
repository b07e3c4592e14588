"""What all connections of an endpoint hold in memory together, beyond a little for each."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

FREE_BYTES: Final = 64 * 1024
"""A frame of so many bytes is not counted: what there may be of connections bounds those."""


class ByteBudget:
    """At most `most` bytes in large frames; who needs more waits for its turn."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._turn = trio.StrictFIFOLock()
        self._freed = trio.Event()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Hold a frame of `size` bytes, `most` at most, until the block ends."""
        assert size <= self.most, "the limit of a frame is not above the budget"
        if size <= FREE_BYTES:
            yield
            return
        async with self._turn:
            while self.held + size > self.most:
                self._freed = trio.Event()
                await self._freed.wait()
            self.held += size
        try:
            yield
        finally:
            self.held -= size
            self._freed.set()
