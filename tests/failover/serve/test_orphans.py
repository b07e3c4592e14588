"""Promotions whose controller is gone."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
import trio

import failover.serve.orphans
from failover.journal.execute import StepFailed
from failover.journal.journal import Journal, begin_step, end_step
from failover.journal.steps import PromotionKind, StepName, StepState
from failover.serve.orphans import OrphanWatch, Remedy, take_over_orphan
from runtime.configuration.config import Configuration
from runtime.coordination.witness import WitnessPaths
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
    await take_over_orphan(of_set(None), BEGUN, remedy, trouble)
    assert done == []


def of_set(name: str | None) -> Configuration:
    return cast("Configuration", SimpleNamespace(topic_set=name))


class Wanted:
    """A witness in which somebody waits for the lease."""

    @asynccontextmanager
    async def watch_data(self, path: str) -> AsyncIterator[AsyncIterator[str]]:
        async def values() -> AsyncGenerator[str, None]:
            yield path

        async with aclosing(values()) as found:
            yield found


@pytest.mark.parametrize(("name", "gives_way"), [("rehearsal", True), ("payments", False)])
async def test_what_a_rehearsal_has_left_holds_up_nobody_who_promotes_applications(
    monkeypatch: pytest.MonkeyPatch, name: str, *, gives_way: bool
) -> None:
    """Of a lost site it cannot be taken back, and is tried again and again."""
    asked: list[object] = []

    class Stuck:
        zookeeper, paths = Wanted(), WitnessPaths(root="/r")

        async def abort(self) -> Journal:
            await trio.sleep(0.2)
            raise StepFailed("dc1 does not answer")

    @asynccontextmanager
    async def open_controller(*_: object, **how: object) -> AsyncIterator[Stuck]:
        asked.append(how["is_rehearsal"])
        yield Stuck()

    async def read_journals(*_: object) -> list[Journal]:
        return [BEGUN]

    monkeypatch.setattr(failover.serve.orphans, "open_controller", open_controller)
    monkeypatch.setattr(failover.serve.orphans, "read_journals", read_journals)
    trouble = FaultNote("an orphan")
    await take_over_orphan(of_set(name), BEGUN, Remedy.TAKE_BACK, trouble)
    assert asked == [gives_way]
    assert ("it gave way" in str(trouble.text)) is gives_way
