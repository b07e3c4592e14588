"""Leaving the others their turn while a request that names much is answered."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import trio

E = TypeVar("E")
R = TypeVar("R")

AT_ONCE: Final = 50
"""What takes longest takes some 100 µs each: the settings of a topic, an offset by its time."""


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
