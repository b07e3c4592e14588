"""Promotions whose controller is gone."""

from dataclasses import replace

from failover.journal import Journal, begin_step, end_step
from failover.orphans import OrphanWatch, Remedy
from failover.steps import PromotionKind, StepName, StepState

BEGUN = Journal(epoch=1, site="dc2", source="dc1", kind=PromotionKind.PLANNED, started_ms=0)
SWITCHED = end_step(
    begin_step(BEGUN, StepName.SWITCH, 0), StepName.SWITCH, state=StepState.DONE, facts={}, now_ms=0
)


def test_an_orphan_is_taken_back_when_its_time_is_over() -> None:
    watch = OrphanWatch(after_ms=100)
    assert watch.look(BEGUN, is_led=False, now_ms=0) is None
    assert watch.look(BEGUN, is_led=False, now_ms=99) is None
    assert watch.look(BEGUN, is_led=False, now_ms=100) is Remedy.TAKE_BACK


def test_an_orphan_behind_the_switch_is_finished() -> None:
    watch = OrphanWatch(after_ms=100)
    watch.look(SWITCHED, is_led=False, now_ms=0)
    assert watch.look(SWITCHED, is_led=False, now_ms=100) is Remedy.FINISH


def test_a_controller_that_comes_back_has_all_the_time_again() -> None:
    watch = OrphanWatch(after_ms=100)
    watch.look(BEGUN, is_led=False, now_ms=0)
    assert watch.look(BEGUN, is_led=True, now_ms=90) is None
    assert watch.look(BEGUN, is_led=False, now_ms=110) is None
    assert watch.look(BEGUN, is_led=False, now_ms=210) is Remedy.TAKE_BACK


def test_another_promotion_has_all_the_time_for_itself() -> None:
    watch = OrphanWatch(after_ms=100)
    watch.look(BEGUN, is_led=False, now_ms=0)
    another = replace(BEGUN, epoch=2)
    assert watch.look(another, is_led=False, now_ms=120) is None
    assert watch.look(another, is_led=False, now_ms=220) is Remedy.TAKE_BACK
