"""The table of steps: what comes next depends on the journal alone."""

import itertools

import pytest

from failover.steps import (
    ALLOWED,
    ORDER,
    UNDOABLE,
    Direction,
    Finish,
    PromotionKind,
    PromotionState,
    Run,
    StepName,
    StepState,
    Undo,
    may_move,
    next_action,
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
    assert not any(current is StepState.UNDONE for current, _ in allowed)
