"""Systems take turns, so that a machine that slows down slows all of them down."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TypeAlias

import trio

from tests.bench.ledger import say
from tests.bench.workloads import rotated, wants_another_round


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """How often everything is measured, and what all rounds together may take."""

    runs: int
    limit_s: float | None = None


Attempt: TypeAlias = Callable[[str, int], bool]
"""Measure one system in one round; False: this system cannot be had here."""


def in_turns(
    what: str,
    systems: Sequence[str],
    rounds: Rounds,
    attempt: Attempt,
) -> None:
    """Let the systems take turns, in an order that changes each round."""

    def one_round(usable: Sequence[str], turn: int) -> list[str]:
        going_on = [system for system in rotated(usable, turn) if attempt(system, turn)]
        return [system for system in usable if system in going_on]

    repeat(what, systems, rounds, one_round)


def all_at_once(
    what: str,
    systems: Sequence[str],
    rounds: Rounds,
    attempt: Attempt,
    clean: Callable[[], None],
) -> None:
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

    repeat(what, systems, rounds, one_round)


def repeat(
    what: str,
    systems: Sequence[str],
    rounds: Rounds,
    one_round: Callable[[Sequence[str], int], list[str]],
) -> None:
    """Take rounds with those who can go on, as many as are wanted and fit."""
    usable = list(systems)
    done_s: list[float] = []
    while usable:
        if not wants_another_round(done_s, wanted=rounds.runs, limit_s=rounds.limit_s):
            break
        began, turn = monotonic(), len(done_s)
        say(f"{what}, round {turn + 1}")
        usable = one_round(usable, turn)
        done_s.append(monotonic() - began)
