"""A few rounds of the drill: the others are for `make drill FAILOVER=1`."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from failover.journal.steps import StepName
from tests.drill.failover.drill import Options, drill, line_of
from tests.drill.failover.pairs import bundled
from tests.drill.failover.planning import Fault, Round, What

pytestmark = pytest.mark.integration

ROUNDS = (
    (What.PROMOTION, Fault.KILL_CONTROLLER, StepName.SEAL),
    (What.CUT, Fault.MAKE_TOPIC, StepName.PREFLIGHT),
    (What.ABORT, Fault.STOP_CONTROLLER, StepName.FENCE),
    (What.PROMOTION, Fault.HANGUP_CONTROLLER, StepName.SWITCH),
)
SECONDS = 60
"""On a busy machine no further round begins then."""


def planned(_: int, number: int) -> Round:
    what, fault, step = ROUNDS[number]
    first = Round(
        number=number, what=what, fault=fault, step=step, is_behind=True, delay_s=0.0, lasts_s=0.5
    )
    if what not in {What.PROMOTION, What.ABORT}:
        return replace(first, topic_set="default")
    beside = replace(first, what=What.PROMOTION, fault=Fault.NOTHING, topic_set="default")
    return replace(first, topic_set="second", beside=beside)


def test_rounds_with_faults_between_steps_keep_what_was_promised(tmp_path: Path) -> None:
    options = Options(
        seed=0,
        folder=tmp_path / "drill",
        seconds=SECONDS,
        rounds=len(ROUNDS),
        open_pair=partial(bundled, has_sets=True),
        planned=planned,
    )
    judged = drill(options, lambda _: None)
    assert judged
    assert [line_of(one, 0) for one in judged if one.findings] == []
    assert all(one.was_hit for one in judged)
