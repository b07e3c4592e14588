"""The table of steps: what comes next depends on the journal alone."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.journal.steps import (
    ALLOWED,
    LOOK_IS_FRESH_MS,
    ORDER,
    UNDOABLE,
    Direction,
    Finish,
    PromotionKind,
    PromotionState,
    Repeat,
    Run,
    StepName,
    StepState,
    Undo,
    is_look_fresh,
    may_move,
    next_action,
    to_repeat,
)


@pytest.mark.parametrize("kind", PromotionKind)
def test_going_forward_runs_every_step_once_in_order_and_is_done(kind: PromotionKind) -> None:
    states: dict[StepName, StepState] = {}
    ran = []
    while not isinstance(action := next_action(kind, Direction.FORWARD, states), Finish):
        assert isinstance(action, Run)
        ran.append(action.step)
        states[action.step] = StepState.DONE
    assert tuple(ran) == ORDER[kind]
    assert action.state is PromotionState.DONE


@pytest.mark.parametrize("kind", PromotionKind)
def test_a_started_step_is_run_again(kind: PromotionKind) -> None:
    for index, step in enumerate(ORDER[kind]):
        states = dict.fromkeys(ORDER[kind][:index], StepState.DONE)
        states[step] = StepState.STARTED
        assert next_action(kind, Direction.FORWARD, states) == Run(step=step)


@pytest.mark.parametrize("kind", PromotionKind)
def test_going_back_undoes_what_was_touched_in_reverse_order(kind: PromotionKind) -> None:
    for index in range(ORDER[kind].index(StepName.SWITCH)):
        states = dict.fromkeys(ORDER[kind][:index], StepState.DONE)
        states[ORDER[kind][index]] = StepState.FAILED
        undone = []
        while not isinstance(action := next_action(kind, Direction.BACK, states), Finish):
            assert isinstance(action, Undo)
            undone.append(action.step)
            states[action.step] = StepState.UNDONE
        expected = [step for step in ORDER[kind][: index + 1] if step in UNDOABLE]
        assert undone == expected[::-1]
        assert action.state is PromotionState.ROLLED_BACK


def test_the_switch_and_what_is_behind_it_are_never_undone() -> None:
    for order in ORDER.values():
        assert not UNDOABLE & set(order[order.index(StepName.SWITCH) :])


def test_the_source_is_fenced_before_the_target_is_opened() -> None:
    for order in ORDER.values():
        assert order.index(StepName.FENCE) < order.index(StepName.OPEN_TARGET)


def test_a_step_moves_only_as_the_table_says() -> None:
    allowed = {
        (current, following)
        for current, following in itertools.product([None, *StepState], StepState)
        if may_move(current, following)
    }
    assert allowed == {
        (current, following) for current, targets in ALLOWED.items() for following in targets
    }
    assert ALLOWED[StepState.UNDONE] == {StepState.STARTED}


@given(st.sampled_from(PromotionKind), st.data())
def test_a_successor_does_all_again_that_was_begun_from_the_fence_on(
    kind: PromotionKind, data: st.DataObject
) -> None:
    order = ORDER[kind]
    switch = order.index(StepName.SWITCH)
    begun = data.draw(st.integers(0, switch))
    states = dict.fromkeys(order[:begun], StepState.DONE)
    repeat = to_repeat(kind, states)
    first = StepName.FENCE if kind is PromotionKind.PLANNED else StepName.STOP_FLOW
    assert {*repeat.undo, *repeat.stale} == set(order[order.index(first) : begun])
    assert list(repeat.undo) == sorted(repeat.undo, key=order.index, reverse=True)
    assert set(repeat.undo) <= UNDOABLE


@given(st.sampled_from(PromotionKind))
def test_nothing_is_done_again_behind_the_switch(kind: PromotionKind) -> None:
    order = ORDER[kind]
    states = dict.fromkeys(order[: order.index(StepName.SWITCH) + 1], StepState.DONE)
    assert to_repeat(kind, states) == Repeat(undo=(), stale=())


@pytest.mark.parametrize(
    ("looked_ms", "now_ms", "is_fresh"),
    [
        (None, 0, False),
        (100, 100, True),
        (100, 100 + LOOK_IS_FRESH_MS, True),
        (100, 101 + LOOK_IS_FRESH_MS, False),
        (100, 99, False),
    ],
)
def test_a_planned_switch_follows_its_last_look_at_once(
    looked_ms: int | None, now_ms: int, is_fresh: bool
) -> None:
    assert is_look_fresh(PromotionKind.PLANNED, looked_ms, now_ms) == is_fresh
    assert is_look_fresh(PromotionKind.SOURCE_LOST, looked_ms, now_ms)
