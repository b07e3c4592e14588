"""A look at a site that takes its time, of which one at most is under way."""

from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

import trio

T = TypeVar("T")


class _Seen(NamedTuple, Generic[T]):
    begun: float
    found: T


class SharedLook(Generic[T]):
    """Serves all who wait for a look by the next one; those before it may be too old for them."""

    def __init__(self, look: Callable[[str], Awaitable[T]]) -> None:
        self._look = look
        self._looking: dict[str, trio.Lock] = {}
        self._last: dict[str, _Seen[T]] = {}

    async def at(self, site: str) -> T:
        """Return what a look at the site has found that was begun from now on.

        Raises what looking raises.
        """
        asked = trio.current_time()
        async with self._looking.setdefault(site, trio.Lock()):
            last = self._last.get(site)
            if last is None or last.begun <= asked:
                last = self._last[site] = _Seen(trio.current_time(), await self._look(site))
        return last.found
