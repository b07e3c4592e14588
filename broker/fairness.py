"""Leaving the others their turn while a request that names much is answered.

A handler that lets go of the loop finds another world afterwards: a partition that was looked at
may have another leader, or more records, before the answer is sent.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import trio

E = TypeVar("E")
R = TypeVar("R")

AT_ONCE: Final = 50
"""The longest steps take some 100 µs each: the settings of a topic, an offset by its time."""
RECORDS_AT_ONCE: Final = 1_000
"""Records looked at without letting go of the loop take a millisecond; a batch of 1 MiB may have
nine million."""
UNPACKED_AT_ONCE_BYTES: Final = 256 * 1024
"""Records unpacked without letting go of the loop take less than a millisecond. 2 kB of zstd may
become 64 MiB, which take 120."""


class Aside:
    """A thread beside the loop for what takes long, one at a time.

    It costs the others 5 ms each time that they come back from the system (CPython's switch
    interval), and with several of them a multiple of that.
    """

    def __init__(self) -> None:
        self._turn = trio.CapacityLimiter(1)

    async def beside(self, work: Callable[[], R]) -> R:
        """Do it in the thread, when those before are through."""
        return await trio.to_thread.run_sync(work, limiter=self._turn)


class Turns:
    """Counts what one request has had done since all other tasks had their turn."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = AT_ONCE

    async def pass_on(self) -> None:
        """Let the others have their turn, if it is time."""
        self._left -= 1
        if not self._left:
            self._left = AT_ONCE
            await trio.lowlevel.checkpoint()

    async def each(self, elements: Iterable[E], do: Callable[[E], R]) -> tuple[R, ...]:
        """Do it for each; between two of them the world may change."""
        done: list[R] = []
        for element in elements:
            done.append(do(element))
            await self.pass_on()
        return tuple(done)
