"""Rounds are repeated by their seed and number, and all kinds of faults come."""

from failover.steps import ORDER, PromotionKind, StepName
from tests.drill.failover.planning import Fault, What, plan_round


def test_a_round_is_the_same_whatever_came_before() -> None:
    assert plan_round(7, 3) == plan_round(7, 3)
    assert plan_round(7, 3) != plan_round(8, 3)


def test_every_fault_comes_behind_and_within_every_step() -> None:
    rounds = [plan_round(seed, number) for seed in range(40) for number in range(100)]
    assert {at.fault for at in rounds} == {*Fault}
    assert {at.what for at in rounds} == {*What}
    hit = {(at.step, at.is_behind) for at in rounds if at.what is What.PROMOTION}
    planned = ORDER[PromotionKind.PLANNED]
    assert hit == {(step, is_behind) for step in planned for is_behind in (True, False)}


def test_an_abort_is_tried_before_the_switch_only() -> None:
    steps = {at.step for at in (plan_round(1, n) for n in range(500)) if at.what is What.ABORT}
    assert StepName.SWITCH not in steps
    assert StepName.START_REVERSE not in steps


def test_a_disaster_leaves_its_dead_site_alone() -> None:
    disasters = [at for at in (plan_round(2, n) for n in range(2000)) if at.what is What.DISASTER]
    assert not [at for at in disasters if at.fault.name.endswith("_SOURCE")]
