"""Promotions whose controller is gone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import pytest

import failover.serve.orphans
from failover.journal.journal import Journal, begin_step, end_step
from failover.journal.steps import PromotionKind, StepName, StepState
from failover.serve.orphans import OrphanWatch, Remedy, take_over_orphan
from runtime.configuration.config import Configuration
from runtime.process.fault_note import FaultNote

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


@pytest.mark.parametrize("remedy", Remedy)
async def test_what_somebody_has_gone_on_with_meanwhile_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, remedy: Remedy
) -> None:
    """The lease is waited for; whoever had it may have begun another promotion by then."""
    done: list[str] = []

    class Busy:
        zookeeper = paths = None

        async def promote(self, *_: object) -> Journal:
            done.append("promoted")
            return BEGUN

        async def abort(self) -> Journal:
            done.append("taken back")
            return BEGUN

    @asynccontextmanager
    async def open_controller(*_: object, **__: object) -> AsyncIterator[Busy]:
        yield Busy()

    async def read_journals(*_: object) -> list[Journal]:
        return [replace(BEGUN, epoch=2)]

    monkeypatch.setattr(failover.serve.orphans, "open_controller", open_controller)
    monkeypatch.setattr(failover.serve.orphans, "read_journals", read_journals)
    trouble = FaultNote("an orphan")
    await take_over_orphan(cast("Configuration", None), BEGUN, remedy, trouble)
    assert done == []
