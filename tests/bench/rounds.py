"""Systems take turns, so that a machine that slows down slows all of them down."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeAlias

from tests.bench.ledger import say
from tests.bench.workloads import rotated, wants_another_round


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """How often everything is measured, and what all rounds together may take."""

    runs: int
    limit_s: float | None = None


Attempt: TypeAlias = Callable[[str, int], bool]
"""Measure one system in one round; False: this system cannot be had here."""


def in_turns(what: str, systems: Sequence[str], rounds: Rounds, attempt: Attempt) -> None:
    """Let the systems take turns, in an order that changes each round."""
    usable = list(systems)
    done_s: list[float] = []
    while usable and wants_another_round(done_s, wanted=rounds.runs, limit_s=rounds.limit_s):
        began, turn = monotonic(), len(done_s)
        say(f"{what}, round {turn + 1}")
        for system in rotated(usable, turn):
            if not attempt(system, turn):
                usable.remove(system)
        done_s.append(monotonic() - began)
