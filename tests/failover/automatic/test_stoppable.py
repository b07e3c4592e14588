"""A promotion that nobody has commanded stops before its switch, and never behind it."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from failover.automatic.stoppable import StoppableEffects
from failover.journal.execute import Note, StepFailed, StepOutcome
from failover.journal.facts import Facts
from failover.journal.journal import Journal, begin_step, end_step
from failover.journal.steps import PromotionKind, StepName, StepState
from tests.failover.sleeping import SleepyWitness

BEGUN = Journal(epoch=1, site="dc2", source="dc1", kind=PromotionKind.SOURCE_LOST, started_ms=0)
SWITCHED = end_step(
    begin_step(BEGUN, StepName.SWITCH, 0), StepName.SWITCH, state=StepState.DONE, facts={}, now_ms=0
)
NOTE = cast("Note", None)


@dataclass
class Steps:
    """Notes what is done, and what is said to be in the way from when on."""

    done: list[str] = field(default_factory=list)
    stops_behind: int = 100

    async def run(self, step: StepName, _: Journal, __: Note) -> StepOutcome:
        self.done.append(step.value)
        return StepOutcome(facts={})

    async def undo(self, step: StepName, _: Journal) -> Facts:
        self.done.append(f"undo {step}")
        return {}

    async def why_stop(self) -> str | None:
        return "promotions are held" if len(self.done) >= self.stops_behind else None

    def stoppable(self) -> StoppableEffects:
        return StoppableEffects(effects=self, lease=SleepyWitness().lease(), why_stop=self.why_stop)


async def test_what_comes_into_the_way_before_a_step_keeps_it_from_being_done() -> None:
    steps = Steps(stops_behind=0)
    with pytest.raises(StepFailed, match="nobody has commanded this promotion, and promotions are"):
        await steps.stoppable().run(StepName.FENCE, BEGUN, NOTE)
    assert steps.done == []


async def test_what_comes_into_the_way_during_the_last_step_keeps_it_from_switching() -> None:
    steps = Steps(stops_behind=1)
    with pytest.raises(StepFailed, match="promotions are held"):
        await steps.stoppable().run(StepName.OPEN_TARGET, BEGUN, NOTE)
    assert steps.done == ["open-target"]


async def test_behind_the_switch_and_on_the_way_back_nobody_is_asked() -> None:
    steps = Steps(stops_behind=0)
    await steps.stoppable().run(StepName.CONFIRM, SWITCHED, NOTE)
    await steps.stoppable().undo(StepName.FENCE, BEGUN)
    assert steps.done == ["confirm", "undo fence"]
