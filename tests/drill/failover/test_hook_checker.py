"""Each way in which hooks may not be called as the journal says is planted once, and reported."""

from collections.abc import Sequence
from dataclasses import asdict, replace

import pytest

from failover.hooks.called import CALLED, TAKEN_BACK, Called
from failover.journal.journal import Journal, StepRecord
from failover.journal.steps import ORDER, PromotionKind, PromotionState, StepName, StepState
from tests.drill.failover.hook_checker import STEP_OF, check_hooks, in_order
from tests.drill.failover.hooked import (
    NAMES,
    HookLine,
    Mishap,
    Told,
    line_of,
    plan_mishaps,
)

SWITCHED_MS = 500


def account(hook: str, attempts: int = 1, failure: str | None = None) -> Called:
    return Called(hook=hook, point="p", attempts=attempts, duration_ms=1, failure=failure)


def journal(state: PromotionState, kind: PromotionKind = PromotionKind.PLANNED) -> Journal:
    is_done = state is PromotionState.DONE
    steps = []
    for step in ORDER[kind]:
        hooks = [asdict(account(name)) for name in NAMES if STEP_OF[name] is step]
        steps.append(
            StepRecord(
                name=step,
                state=StepState.DONE if is_done else StepState.UNDONE,
                started_ms=1,
                ended_ms=2,
                facts={CALLED: hooks} if is_done else {},
            )
        )
    return Journal(
        epoch=3,
        site="dc2",
        source="dc1",
        kind=kind,
        state=state,
        started_ms=100,
        switched_ms=SWITCHED_MS if is_done else None,
        steps=tuple(steps),
    )


DONE = journal(PromotionState.DONE)
BACK = journal(PromotionState.ROLLED_BACK)


def call(
    hook: str, at_ms: int, told: Told = Told.DONE, *, is_undone: bool = False
) -> list[HookLine]:
    begun = HookLine(
        started_ms=100, epoch=3, is_undone=is_undone, hook=hook, at_ms=at_ms, told=Told.BEGUN
    )
    return [begun, *([] if told is Told.BEGUN else [replace(begun, told=told)])]


def all_calls(of: Journal = DONE) -> list[HookLine]:
    lines: list[HookLine] = []
    for number, name in enumerate(in_order(of)):
        is_behind = STEP_OF[name] in {StepName.SWITCH, StepName.START_REVERSE}
        lines += call(name, number + (SWITCHED_MS + 1 if is_behind else 101))
    return lines


def said(of: Journal, lines: Sequence[HookLine], *, exact: bool = True) -> list[str]:
    return [one.says for one in check_hooks([of], lines, {100} if exact else ())]


@pytest.mark.parametrize("kind", PromotionKind)
def test_hooks_that_are_called_as_the_journal_says_are_no_finding(kind: PromotionKind) -> None:
    done = journal(PromotionState.DONE, kind)
    assert said(done, all_calls(done)) == []


def test_calls_of_no_promotion_are_named() -> None:
    stray = [replace(line, epoch=4) for line in call("before_fence", 101)]
    assert said(DONE, [*all_calls(), *stray]) == ["of no promotion"] * 2


def test_a_hook_that_was_not_called_and_one_that_failed_are_named() -> None:
    without = [line for line in all_calls() if line.hook != "after_switch"]
    assert any("after_switch ended with None" in one for one in said(DONE, without))
    failed = [*without, *call("after_switch", 600, Told.FAILED)]
    assert any("after_switch ended with Told.FAILED" in one for one in said(DONE, failed))


def test_a_call_too_many_is_named_where_nobody_disturbed_the_controller() -> None:
    twice = [*all_calls(), *call("after_start-reverse", 700)]
    assert said(DONE, twice) == ["after_start-reverse: 1 attempts in the journal, and 2 calls"]
    assert said(DONE, twice, exact=False) == []


def test_a_hook_on_the_wrong_side_of_the_switch_is_named() -> None:
    late = [*all_calls(), *call("before_fence", 600)]
    assert any("before_fence was called at 600" in one for one in said(DONE, late, exact=False))


def test_hooks_in_another_order_are_named() -> None:
    lines = [line for line in all_calls() if line.hook != "before_announce"]
    swapped = [*lines[:6], *call("before_announce", 103), *lines[6:]]
    assert any("called in the order" in one for one in said(DONE, swapped))


def test_what_was_taken_back_is_held_against_what_was_called() -> None:
    begun = [*call("before_announce", 101), *call("before_fence", 102, Told.BEGUN)]
    undone = call("before_announce", 110, is_undone=True)
    both = [*undone, *call("before_fence", 111, is_undone=True)]
    assert said(BACK, [*begun, *both], exact=False) == []
    assert said(BACK, [*begun, *undone], exact=False) == [
        "before_fence was called, and not to take back what it did"
    ]
    zombie = [*begun, *both, *call("after_fence", 120)]
    assert "after_fence was called behind the taking back" in said(BACK, zombie, exact=False)


def test_an_account_of_taking_back_is_held_against_calls() -> None:
    taken = {TAKEN_BACK: [asdict(account("before_announce", failure="killed"))]}
    first, *rest = (one for one in BACK.steps if one.name is StepName.ANNOUNCE)
    back = replace(BACK, steps=(replace(first, facts=taken), *rest))
    lines = [*call("before_announce", 101), *call("before_announce", 110, is_undone=True)]
    assert any("its last call was done: True" in one for one in said(back, lines, exact=False))


def test_lines_of_the_script_are_read_whatever_hyphens_names_have() -> None:
    line = line_of("1763-12-start-reverse-after-do-after_start-reverse 1764 done")
    assert line == HookLine(
        started_ms=1763,
        epoch=12,
        is_undone=False,
        hook="after_start-reverse",
        at_ms=1764,
        told=Told.DONE,
    )
    assert line_of("1-2-open-target-before-undo-before_open-target 3 begun").is_undone
    of_set = line_of("second-1763-12-start-reverse-after-do-after_start-reverse 1764 done")
    assert of_set == replace(line, topic_set="second")


def test_a_round_has_the_same_mishaps_whatever_came_before() -> None:
    drawn = [plan_mishaps(7, number) for number in range(40)]
    assert drawn == [plan_mishaps(7, number) for number in range(40)]
    assert {one for mishaps in drawn for one in mishaps.values()} == {*Mishap}
    assert {} in drawn
