"""Something that is looked at again and again, but only while somebody reads it."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

import trio

from runtime.process.fault_note import FaultNote
from runtime.process.unforeseen import keep_at_work

FIRST_WAIT_S: Final = 0.6
"""A page waits so long for the first look; it is live, and shows the rest when it comes."""
READ_FOR_S: Final = 20.0
"""Somebody who has asked reads on for so long, unless they ask again."""
REST: Final = 4.0
"""Between two looks, at least so many times as long as a look takes: a fifth of its costs."""

T = TypeVar("T")


class Watched(Generic[T]):
    """The newest look, for any number of readers; without readers nobody looks."""

    def __init__(self, name: str, look: Callable[[], Awaitable[T]], every_s: float) -> None:
        """Take what looks; a fault of a look that is foreseen is a value of its own."""
        self._look = look
        self._every_s = every_s
        self._fault = FaultNote(f"the console's look at {name}")
        self._wanted = trio.Event()
        self._read_until = float("-inf")
        self._seen: T | None = None
        self._seen_at = float("-inf")
        self._came = trio.Event()

    async def run(self) -> None:
        """Look while somebody reads, until cancelled."""
        await keep_at_work(self._run, self._fault, "a look")

    async def newest(self) -> T | None:
        """Return the newest look; None if there is none yet, or it is too old to be shown."""
        now = trio.current_time()
        self._read_until = now + READ_FOR_S
        self._wanted.set()
        if self.known() is None:
            came = self._came
            with trio.move_on_after(FIRST_WAIT_S):
                await came.wait()
        return self.known()

    def known(self) -> T | None:
        """Return what was seen while somebody read; what is older says nothing of now."""
        return self._seen if trio.current_time() - self._seen_at < self._too_old_s else None

    @property
    def _too_old_s(self) -> float:
        return READ_FOR_S + 2 * self._every_s

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            began = trio.current_time()
            seen = await self._look()
            self._seen, self._seen_at = seen, trio.current_time()
            self._came.set()
            self._came = trio.Event()
            self._fault.clear("a look")
            await trio.sleep(max(self._every_s, REST * (self._seen_at - began)))
            if trio.current_time() > self._read_until:
                self._wanted = trio.Event()


async def want_all(*watched: Watched[Any]) -> None:
    """Say that somebody reads all of these, and wait for their first looks at the same time."""
    async with trio.open_nursery() as nursery:
        for one in watched:
            nursery.start_soon(one.newest)
