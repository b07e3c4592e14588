"""An operator's hold: kept, shown and believed, also when nobody can read it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from failover.automatic.hold import (
    MOST_CHARACTERS,
    BadReason,
    Hold,
    hold_here,
    put_hold,
    read_hold,
    take_hold_away,
)
from failover.cli import PROGRAM
from failover.commands import holds
from failover.journal.commands_given import GivenCommand
from failover.journal.journal import Journal, begin_step, end_step
from failover.journal.lease import Lease
from failover.journal.steps import Direction, PromotionKind, StepName, StepState
from failover.journal.store import WitnessStore
from failover.planning.plan import Plan, PromotionRequest, Resume, SitesView, decide
from failover.planning.plan_description import describe
from failover.planning.refusal import Cause, Refusal
from failover.promote import PromotionController
from failover.view.status import status_document, status_lines
from runtime.configuration.config import Configuration, load
from runtime.configuration.coordination_section import CoordinationConfig
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import BadVersion, ZooKeeper
from tests.doubles.memory_nodes import MemoryNodes
from tests.failover.plans import ALL_WELL, BACK, DC1, PLANNED
from tests.failover.two_sites import promotable

PATHS = WitnessPaths(root="/r")
COORDINATION = CoordinationConfig(zookeeper="w:1", path="/r", session_timeout_ms=4_000)
GIVEN = GivenCommand(what="failover hold", user="jo", host="ops1", at_ms=0)
HELD = Hold(reason="the line is being moved", given=GIVEN)
HELD_LINE = (
    "held (failover hold, by jo on ops1 at 1970-01-01T00:00:00+00:00): the line is being moved"
)
LOST = PromotionRequest(site="dc2", kind=PromotionKind.SOURCE_LOST)
BEGUN = Journal(epoch=5, site="dc2", source="dc1", kind=PromotionKind.PLANNED, started_ms=0)
SWITCHED = end_step(
    begin_step(BEGUN, StepName.SWITCH, 0), StepName.SWITCH, state=StepState.DONE, facts={}, now_ms=0
)


@given(st.none() | st.text())
def test_a_hold_is_read_as_it_was_written(reason: str | None) -> None:
    hold = replace(HELD, reason=reason)
    assert Hold.decode(hold.encode()) == hold


@given(st.binary() | st.sampled_from([b"null", b"[]", b"{}", b'{"reason": 3, "given": {}}']))
def test_what_nobody_can_read_is_a_hold(data: bytes) -> None:
    hold = Hold.decode(data)
    assert hold.garbled is not None
    assert str(hold).startswith("held, by a node in the witness that cannot be read (")


@pytest.mark.parametrize("reason", ["", "  ", "x" * (MOST_CHARACTERS + 1)])
def test_a_reason_that_says_nothing_or_too_much_is_refused(reason: str) -> None:
    with pytest.raises(BadReason, match="--reason"):
        hold_here("failover hold", reason, 0)


async def test_a_later_hold_replaces_an_earlier_one_and_a_release_ends_it() -> None:
    nodes = MemoryNodes()
    zookeeper = cast("ZooKeeper", nodes)
    assert await read_hold(zookeeper, PATHS) is None
    assert await put_hold(zookeeper, PATHS, HELD) is None
    later = replace(HELD, reason=None)
    assert await put_hold(zookeeper, PATHS, later) == HELD
    assert await read_hold(zookeeper, PATHS) == later
    assert await take_hold_away(zookeeper, PATHS) == later
    assert await take_hold_away(zookeeper, PATHS) is None


async def test_a_release_does_not_end_a_hold_that_it_has_not_seen() -> None:
    """Somebody holds anew at the same moment; the release reads that, and says whose it ended."""

    class Busy(MemoryNodes):
        async def delete(self, path: str, *, version: int = -1) -> None:
            if not version:
                await self.set(path, replace(HELD, reason="another").encode())
                raise BadVersion(path)
            await super().delete(path, version=version)

    zookeeper = cast("ZooKeeper", Busy())
    await put_hold(zookeeper, PATHS, HELD)
    ended = await take_hold_away(zookeeper, PATHS)
    assert ended is not None
    assert ended.reason == "another"


@pytest.mark.parametrize(
    ("snapshot", "request_"),
    [
        (ALL_WELL, PLANNED),
        (replace(ALL_WELL, source=replace(DC1, fault="silent")), LOST),
        (replace(ALL_WELL, unfinished=BEGUN), PLANNED),
    ],
)
def test_a_hold_refuses_everything_that_has_not_switched_unless_somebody_insists(
    snapshot: SitesView, request_: PromotionRequest
) -> None:
    held = replace(snapshot, hold=HELD)
    refusal = decide(held, request_)
    assert isinstance(refusal, Refusal)
    assert refusal.cause is Cause.HOLD
    assert refusal.reason == (
        f"promotions are {HELD_LINE}; `failover release` ends that, and --despite-hold promotes"
        " dc2 all the same"
    )
    decision = decide(held, replace(request_, despite_hold=True))
    assert isinstance(decision, Plan | Resume)


def test_what_has_switched_is_finished_whoever_holds() -> None:
    decision = decide(replace(ALL_WELL, unfinished=SWITCHED, hold=HELD), PLANNED)
    assert decision == Resume(journal=SWITCHED)


@pytest.mark.parametrize("despite_hold", [False, True])
async def test_a_hold_that_came_during_the_looks_takes_a_promotion_back(
    *, despite_hold: bool
) -> None:
    """Its command looked for journals before there was one."""
    nodes, saved = MemoryNodes(), list[Journal]()

    class Store:
        async def save(self, journal: Journal) -> None:
            saved.append(journal)
            await trio.lowlevel.checkpoint()

    controller = PromotionController(
        configuration=cast("Configuration", SimpleNamespace(coordination=COORDINATION)),
        zookeeper=cast("ZooKeeper", nodes),
        lease=cast("Lease", None),
        show=lambda _: None,
    )
    store = cast("WitnessStore", Store())
    request = replace(PLANNED, despite_hold=despite_hold)
    assert await controller._heeding_hold(store, BEGUN, request) == BEGUN
    await put_hold(cast("ZooKeeper", nodes), PATHS, HELD)
    journal = await controller._heeding_hold(store, BEGUN, request)
    if despite_hold:
        assert (journal, saved) == (BEGUN, [])
    else:
        assert saved == [journal]
        assert (journal.direction, journal.reason) == (
            Direction.BACK,
            f"promotions are {HELD_LINE}",
        )


def test_a_plan_despite_a_hold_says_whose_hold_it_overrules() -> None:
    plan = decide(replace(ALL_WELL, hold=HELD), replace(PLANNED, despite_hold=True))
    assert isinstance(plan, Plan)
    assert f"  warning  promotions are {HELD_LINE}" in describe(plan)


def test_the_status_shows_a_hold() -> None:
    held = replace(BACK, hold=HELD)
    assert f"hold     {HELD_LINE}" in list(status_lines(held))
    assert status_document(held)["hold"]["given"]["user"] == "jo"
    assert status_document(BACK)["hold"] is None


async def test_the_commands_say_what_they_have_done_and_what_is_under_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = MemoryNodes()
    journals: list[Journal] = []
    file = tmp_path / "dc.yaml"
    file.write_text(promotable(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))

    @asynccontextmanager
    async def open_witness(_: object) -> AsyncIterator[MemoryNodes]:
        yield nodes

    async def read_journals(*_: object) -> list[Journal]:
        return journals

    async def tell(*arguments: str) -> tuple[int, str, str]:
        options = PROGRAM.parse([*arguments, str(file)])
        options.configuration = load(file)
        status = await getattr(holds, arguments[0])(options)
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    monkeypatch.setattr(holds, "open_witness", open_witness)
    monkeypatch.setattr(holds, "read_journals", read_journals)
    status, out, err = await tell("hold", "--reason", "night work")
    assert (status, err) == (0, "")
    assert out.startswith("held (failover hold, by ")
    assert out.endswith(": night work\n")
    journals.append(BEGUN)
    status, out, err = await tell("hold")
    assert (status, out.splitlines()[0][:16]) == (0, "replaces: held (")
    assert "the planned promotion of dc2 (epoch 5) has begun already" in err
    status, out, err = await tell("release")
    assert (status, out[:23]) == (0, "released; until now: he")
    assert (await tell("release"))[:2] == (0, "nobody held promotions\n")
