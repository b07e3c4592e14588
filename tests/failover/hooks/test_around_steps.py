"""When hooks are called around the steps of a promotion, and what follows when one fails."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
import trio
from trio.testing import MockClock

from failover.hooks.around_steps import HookedEffects, undone_last
from failover.hooks.call import HookFailed
from failover.hooks.called import CALLED, TAKEN_BACK, called_in
from failover.hooks.hook_plan import hook_lines, why_not_runnable
from failover.hooks.occasion import Occasion
from failover.journal.execute import Executor, Note, StepFailed, StepOutcome
from failover.journal.facts import Facts, JsonValue
from failover.journal.journal import Journal, begin_step, end_step, turn_back
from failover.journal.lease import Lease, LeaseLost
from failover.journal.steps import (
    ORDER,
    UNDOABLE,
    PromotionKind,
    PromotionState,
    StepName,
    StepState,
)
from runtime.configuration.hooks_section import STEPS_BEHIND_SWITCH, STEPS_WITH_HOOKS, HookConfig

T = TypeVar("T")


class CertainLease(Lease):
    """A lease that nobody takes away."""

    def __init__(self) -> None:
        pass

    async def act(self, work: Callable[[], Awaitable[T]]) -> T:
        return await work()


@dataclass(slots=True, kw_only=True)
class Stage:
    """Everything that happens, in order; hooks fail so many times as `failing` says."""

    happened: list[str] = field(default_factory=list)
    failing: dict[str, int] = field(default_factory=dict)
    failing_steps: frozenset[StepName] = frozenset()
    saved: list[Journal] = field(default_factory=list)

    async def run(self, step: StepName, _: Journal, __: Note) -> StepOutcome:
        await trio.sleep(0.01)
        self.happened.append(step.value)
        if step in self.failing_steps:
            raise StepFailed("was bound to")
        return StepOutcome(facts={"partitions": 1})

    async def undo(self, step: StepName, _: Journal) -> Facts:
        await trio.lowlevel.checkpoint()
        self.happened.append(f"undo {step}")
        return {}

    async def call(self, _: HookConfig, occasion: Occasion) -> str:
        await trio.lowlevel.checkpoint()
        name = f"{occasion.action} {occasion.hook}"
        self.happened.append(name)
        if occasion.hook == "last":
            raise LeaseLost("the session is over")
        if self.failing.get(name, 0) > 0:
            self.failing[name] -= 1
            raise HookFailed("status 1")
        return f"{occasion.active} it is"

    async def save(self, journal: Journal) -> None:
        await trio.lowlevel.checkpoint()
        self.saved.append(journal)

    async def save_and_switch(self, journal: Journal) -> None:
        await self.save(journal)

    def executor(self, *hooks: HookConfig) -> Executor:
        effects = HookedEffects(
            effects=self,
            lease=CertainLease(),
            hooks=hooks,
            bootstraps={"dc1": "a:1", "dc2": "b:1"},
            call=self.call,
        )
        return Executor(store=self, effects=effects, clock_ms=lambda: 0, report=lambda _: None)


def hook(name: str, point: str, attempts: int = 2) -> HookConfig:
    when, step = point.split()
    return HookConfig(
        name=name, step=step, is_before=when == "before", command=("true",), attempts=attempts
    )


FREEZE, TOLD, DNS = (
    hook("freeze", "before fence"),
    hook("told", "after fence"),
    hook("dns", "after switch"),
)


def begun(kind: PromotionKind = PromotionKind.PLANNED) -> Journal:
    return Journal(epoch=1, site="dc2", source="dc1", kind=kind, started_ms=0)


def test_hooks_stand_at_the_steps_that_can_be_taken_back_and_behind_the_switch() -> None:
    assert {*STEPS_WITH_HOOKS} == {step.value for step in UNDOABLE}
    assert {StepName(step) for step in STEPS_BEHIND_SWITCH} == {
        StepName.SWITCH,
        StepName.START_REVERSE,
    }


async def test_hooks_are_called_around_their_steps_and_noted(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage()
    journal = await stage.executor(DNS, TOLD, FREEZE).carry_out(begun())
    assert journal.state is PromotionState.DONE
    at = stage.happened.index
    assert at("announce") < at("do freeze") < at("fence") < at("do told") < at("drain")
    assert at("open-target") < at("do dns") < at("confirm") < at("start-reverse"), (
        "it is called while confirm looks"
    )
    [freeze, told] = called_in(journal, StepName.FENCE)
    assert (freeze.hook, freeze.point, freeze.failure) == ("freeze", "before fence", None)
    assert (told.hook, told.said) == ("told", "dc1 it is")
    [dns] = called_in(journal, StepName.CONFIRM)
    assert (dns.attempts, dns.said) == (1, "dc2 it is")


async def test_a_hook_that_fails_before_the_switch_has_the_promotion_taken_back(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage(failing={"do told": 99})
    journal = await stage.executor(FREEZE, TOLD).carry_out(begun())
    assert journal.state is PromotionState.ROLLED_BACK
    assert str(journal.reason).startswith("fence: hook told (after fence) failed (")
    assert str(journal.reason).endswith(", 2 attempts): status 1")
    assert stage.happened[-4:] == ["undo fence", "undo announce", "undo told", "undo freeze"]
    assert "switch" not in {record.name.value for record in journal.steps}


async def test_a_hook_is_called_again_with_growing_pauses(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage(failing={"do freeze": 3})
    began = trio.current_time()
    patient = replace(FREEZE, attempts=5, backoff_ms=1_000)
    journal = await stage.executor(patient).carry_out(begun())
    assert journal.state is PromotionState.DONE
    assert stage.happened.count("do freeze") == 4
    assert trio.current_time() - began == pytest.approx(1 + 2 + 4, abs=0.5)


async def test_only_hooks_of_steps_that_were_reached_are_taken_back(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage(failing_steps=frozenset({StepName.DRAIN}))
    late = hook("late", "before seal")
    journal = await stage.executor(FREEZE, late, DNS).carry_out(begun())
    assert journal.state is PromotionState.ROLLED_BACK
    assert [one for one in stage.happened if one.startswith(("do ", "undo "))] == [
        "do freeze",
        "undo fence",
        "undo announce",
        "undo freeze",
    ]


async def test_a_hook_that_cannot_take_back_holds_up_nothing_and_is_told_of(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage(failing={"undo freeze": 99}, failing_steps=frozenset({StepName.DRAIN}))
    journal = await stage.executor(FREEZE).carry_out(begun())
    assert journal.state is PromotionState.ROLLED_BACK
    [left] = called_in(journal, undone_last(journal.kind), TAKEN_BACK)
    assert (left.point, left.failure) == ("before fence, taken back", "status 1")


async def test_a_hook_that_was_taken_out_of_the_file_meanwhile_is_told_of(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage()
    with pytest.raises(LeaseLost):
        await stage.executor(FREEZE, hook("last", "before seal")).carry_out(begun())
    back = turn_back(stage.saved[-1], "taken back by the operator")
    journal = await stage.executor().carry_out(back)
    assert journal.state is PromotionState.ROLLED_BACK
    left = called_in(journal, undone_last(journal.kind), TAKEN_BACK)
    assert [(one.hook, one.failure) for one in left] == [
        ("freeze", "failover.hooks has it no more: what it did stays as it is")
    ]


async def test_a_hook_that_fails_behind_the_switch_is_called_again_when_all_else_is_done(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage(failing={"do dns": 2})
    journal = await stage.executor(DNS).carry_out(begun())
    assert journal.state is PromotionState.DONE
    assert stage.happened[-3:] == ["start-reverse", "do dns", "do dns"]
    [first] = called_in(journal, StepName.CONFIRM)
    [last] = called_in(journal, StepName.START_REVERSE)
    assert (first.failure, last.failure) == ("status 1", None)


async def test_a_promotion_whose_hook_goes_on_failing_is_unfinished_until_it_does_not(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage(failing={"do dns": 3})
    with pytest.raises(StepFailed, match=r"hook dns .* --without-hooks ends without it"):
        await stage.executor(DNS).carry_out(begun())
    left = stage.saved[-1]
    assert left.state is PromotionState.RUNNING
    executor = stage.executor(DNS)
    again = await executor.carry_out(await executor.look_again(left))
    assert again.state is PromotionState.DONE
    assert stage.happened.count("confirm") == 1, "what is done behind the switch is not done again"


async def test_a_lost_source_holds_no_hook_up(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage()
    announce = hook("clients", "before announce")
    journal = await stage.executor(announce, FREEZE, DNS).carry_out(
        begun(PromotionKind.SOURCE_LOST)
    )
    assert journal.state is PromotionState.DONE
    assert "do clients" not in stage.happened, "no client is told beforehand"
    assert {"do freeze", "do dns"} <= {*stage.happened}


@pytest.mark.parametrize("kind", PromotionKind)
def test_what_is_taken_back_last_comes_first(kind: PromotionKind) -> None:
    assert undone_last(kind) in UNDOABLE
    assert ORDER[kind].index(undone_last(kind)) == min(
        map(ORDER[kind].index, UNDOABLE & {*ORDER[kind]})
    )


@pytest.mark.parametrize("facts", [5, [5], "done", [{"hook": "dns"}], [{"step": "dns"}]])
def test_facts_that_cannot_be_understood_are_a_hook_that_failed(facts: JsonValue) -> None:
    fence = begin_step(begun(), StepName.FENCE, 0)
    journal = end_step(fence, StepName.FENCE, state=StepState.DONE, facts={CALLED: facts}, now_ms=0)
    [one] = called_in(journal, StepName.FENCE)
    assert one.point == "fence"
    assert "cannot be understood" in str(one)


def test_a_step_without_hooks_has_called_none() -> None:
    assert called_in(begun(), StepName.FENCE, CALLED) == ()


async def test_a_lease_that_is_lost_while_hooks_are_called_ends_the_command_by_its_name(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    stage = Stage()

    async def lost(_: HookConfig, __: Occasion) -> str:
        await trio.lowlevel.checkpoint()
        raise LeaseLost("the session is over")

    async def noted(_: Facts) -> None:
        await trio.lowlevel.checkpoint()

    effects = HookedEffects(
        effects=stage, lease=CertainLease(), hooks=(DNS,), bootstraps={}, call=lost
    )
    with pytest.raises(LeaseLost):
        await effects.run(StepName.CONFIRM, begun(), noted)


def test_a_plan_lists_the_hooks_that_its_kind_calls() -> None:
    announce = hook("clients", "before announce")
    lines = list(hook_lines([announce, DNS], PromotionKind.SOURCE_LOST))
    assert lines == ["  hook     dns, after switch: true"]
    assert len(list(hook_lines([announce, DNS], PromotionKind.PLANNED))) == 2


def test_a_command_that_is_not_on_this_host_is_named() -> None:
    missing = replace(DNS, command=("/no/such/command",))
    assert why_not_runnable([FREEZE, missing]) == (
        "hook dns: /no/such/command is no command that can be run on this host"
    )
    assert why_not_runnable([FREEZE, replace(DNS, check=("no-such-check",))]) is not None
    assert why_not_runnable([FREEZE, DNS]) is None
