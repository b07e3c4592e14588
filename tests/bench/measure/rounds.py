"""Systems take turns within a round, so that what slows the machine down slows all of them down."""

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import TypeAlias, TypeVar

import trio

from tests.bench.measure.ledger import Cell, Ledger, RunFailed, say

T = TypeVar("T")
Attempt: TypeAlias = Callable[[str, int], bool]
"""Measure one system in one round; False: this system cannot be had here."""
OneRound: TypeAlias = Callable[[Sequence[str], int], list[str]]
"""Measure these systems in one round; return those that can be had here."""


def in_turns(attempt: Attempt) -> OneRound:
    """Let one system do it behind the other, in an order that changes each round."""

    def one_round(usable: Sequence[str], turn: int) -> list[str]:
        going_on = [system for system in rotated(usable, turn) if attempt(system, turn)]
        return [system for system in usable if system in going_on]

    return one_round


def all_at_once(attempt: Attempt, clean: Callable[[], None]) -> OneRound:
    """Let the systems do it at the same time, each in a thread; clean up behind each round.

    For what is counted, not timed: most of it is waiting for somebody's timer.
    """

    def one_round(usable: Sequence[str], turn: int) -> list[str]:
        going_on: list[str] = []

        async def run_one(system: str) -> None:
            run = partial(attempt, system, turn)
            if await trio.to_thread.run_sync(run, abandon_on_cancel=True):
                going_on.append(system)

        async def run_all() -> None:
            async with trio.open_nursery() as nursery:
                for system in usable:
                    nursery.start_soon(run_one, system)

        trio.run(run_all)
        clean()
        return [system for system in usable if system in going_on]

    return one_round


def repeat(
    runs: int, systems: Sequence[str], cells: Sequence[Cell], one_round: OneRound, ledger: Ledger
) -> None:
    """Take so many rounds with the systems that can go on.

    A further round that would not fit into what its part has left, by the slowest so far, is not
    begun; the rows say so.
    """
    usable, slowest_s = list(systems), 0.0
    for turn in range(runs):
        if not usable:
            return
        say(f"{cells[0][0]}, round {turn + 1}")
        if turn and slowest_s > ledger.left_s:
            for system in usable:
                ledger.miss(system, cells, RunFailed("the time of this part is too short for it"))
            continue
        began = monotonic()
        usable = one_round(usable, turn)
        slowest_s = max(slowest_s, monotonic() - began)


def rotated(systems: Sequence[T], turn: int) -> list[T]:
    """Return the systems in another order each round: what a place costs, everyone pays once."""
    shift = turn % len(systems) if systems else 0
    return [*systems[shift:], *systems[:shift]]
