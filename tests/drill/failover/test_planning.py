"""Rounds are repeated by their seed and number, and all kinds of faults come."""

from failover.journal.steps import ORDER, PromotionKind, StepName
from tests.drill.failover.planning import (
    DISASTERS,
    ENDPOINTS,
    LOST,
    TAKEN_BACK,
    End,
    Fault,
    What,
    plan_round,
)
from tests.drill.failover.subject import SETS


def test_a_round_is_the_same_whatever_came_before() -> None:
    assert plan_round(7, 3) == plan_round(7, 3)
    assert plan_round(7, 3) != plan_round(8, 3)


def test_every_fault_comes_behind_and_within_every_step() -> None:
    rounds = [plan_round(seed, number) for seed in range(40) for number in range(100)]
    assert {at.fault for at in rounds} == {at.again for at in rounds} == {*Fault}
    assert {at.end for at in rounds} == {*End}
    assert {at.what for at in rounds} == {*What}
    hit = {(at.step, at.is_behind) for at in rounds if at.what is What.PROMOTION}
    planned = ORDER[PromotionKind.PLANNED]
    assert hit == {(step, is_behind) for step in planned for is_behind in (True, False)}


def test_a_promotion_is_taken_back_before_the_switch_only() -> None:
    rounds = [plan_round(1, number) for number in range(800)]
    steps = {at.what: {one.step for one in rounds if one.what is at.what} for at in rounds}
    for what in TAKEN_BACK:
        assert StepName.SWITCH not in steps[what]
        assert StepName.START_REVERSE not in steps[what]


def test_a_disaster_leaves_its_lost_site_alone() -> None:
    lost = [at for at in (plan_round(2, n) for n in range(2000)) if at.what in LOST]
    assert {at.what for at in lost} == LOST
    faults = {at.fault for at in lost} | {at.again for at in lost}
    assert not [fault for fault in faults if fault.name.endswith("_SOURCE")]


def test_each_set_is_moved_alone_and_beside_the_other_one() -> None:
    rounds = [plan_round(5, number) for number in range(800)]
    assert {at.topic_set for at in rounds} == {one.topic_set for one in SETS}
    beside = [at.beside for at in rounds if at.beside is not None]
    assert 300 < len(beside) < 700
    assert {one.what for one in beside} == {What.PROMOTION, What.ABORT, *DISASTERS}
    for at in rounds:
        if at.beside is not None:
            assert at.beside.topic_set != at.topic_set
            assert (at.beside.what in DISASTERS) == (at.what in DISASTERS)
            assert not {at.fault, at.again} & {Fault.WIPE_WITNESS, Fault.OLD_WITNESS}
    assert {at.is_beside_first for at in rounds if at.beside is not None} == {True, False}


def test_endpoints_are_killed_in_every_second_round() -> None:
    killed = [plan_round(3, number).endpoint for number in range(400)]
    assert {*killed} == {None, *range(ENDPOINTS)}
    assert 150 < killed.count(None) < 250
