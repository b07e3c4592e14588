"""Rounds of the drill that are named instead of drawn, and what is found behind each."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from failover.journal.steps import StepName
from tests.drill.failover.applications import EVERY_S
from tests.drill.failover.drill import Judged, Options, drill
from tests.drill.failover.pairs import bundled
from tests.drill.failover.planning import Fault, Round, What

Chosen: TypeAlias = tuple[What, Fault, StepName]
"""The fault meets the second set's round, a promotion or an abort, behind the step, and the default
set is promoted meanwhile; any other round is the default set's alone."""

SECONDS: Final = 60
"""On a busy machine no further round begins then."""


def drill_chosen(
    folder: Path, rounds: Sequence[Chosen], *, every_s: float = EVERY_S
) -> list[Judged]:
    """Run these rounds between two bundled sites with two sets, a record each `every_s`."""
    options = Options(
        seed=0,
        folder=folder,
        seconds=SECONDS,
        rounds=len(rounds),
        open_pair=partial(bundled, has_sets=True),
        planned=lambda _, number: _round(number, *rounds[number]),
        every_s=every_s,
    )
    return drill(options, lambda _: None)


def _round(number: int, what: What, fault: Fault, step: StepName) -> Round:
    first = Round(
        number=number, what=what, fault=fault, step=step, is_behind=True, delay_s=0.0, lasts_s=0.5
    )
    if what not in {What.PROMOTION, What.ABORT}:
        return replace(first, topic_set="default")
    beside = replace(first, what=What.PROMOTION, fault=Fault.NOTHING, topic_set="default")
    return replace(first, topic_set="second", beside=beside)
