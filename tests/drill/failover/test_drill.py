"""A minute of the drill: `make drill FAILOVER=1` has any number of rounds."""

from pathlib import Path

import pytest

from failover.journal.steps import StepName
from tests.drill.failover.chosen import drill_chosen
from tests.drill.failover.drill import line_of
from tests.drill.failover.planning import Fault, What

pytestmark = pytest.mark.integration

ROUNDS = (
    (What.PROMOTION, Fault.KILL_CONTROLLER, StepName.SEAL),
    (What.CUT, Fault.MAKE_TOPIC, StepName.PREFLIGHT),
    (What.ABORT, Fault.STOP_CONTROLLER, StepName.FENCE),
    (What.PROMOTION, Fault.HANGUP_CONTROLLER, StepName.SWITCH),
)

SELDOM_S = 0.2
"""A quarter of the records of `make drill`: a tenth of the processor time goes into the others."""


def test_rounds_with_faults_between_steps_keep_what_was_promised(tmp_path: Path) -> None:
    judged = drill_chosen(tmp_path / "drill", ROUNDS, every_s=SELDOM_S)
    assert judged
    assert [line_of(one, 0) for one in judged if one.findings] == []
    assert all(one.was_hit for one in judged)
