"""`failover promote` at a terminal: what it asks, and that nothing is begun without a yes."""

import os
import pty
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import failover.commands.promotion
from failover.cli import PROGRAM
from failover.commands.promotion import promote
from failover.commands.running import stop_at_signals
from failover.journal.facts import Facts
from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind, StepName
from failover.planning.plan import Plan, decide
from runtime.configuration.config import load
from runtime.program.agreement import NotAgreed
from runtime.program.command import Options
from tests.failover.journals import ended_promotion
from tests.failover.plans import ALL_WELL, PLANNED
from tests.failover.two_sites import promotable
from tests.terminals import shown_by

QUESTION = "Close 1 topics of dc1 for writes, and make dc2 the active site? [y/N] "
PLAN = decide(ALL_WELL, PLANNED)
assert isinstance(PLAN, Plan)
FACTS: dict[StepName, Facts] = {
    StepName.DRAIN: {"records": 0},
    StepName.GROUPS_MOVE: {"positions": {}, "left": {}},
}
BEGUN: list[Any] = []
"""What promotions that began were agreed to by."""


class Terminal:
    """The one end of a terminal at which somebody sits; the program has the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ours, theirs = pty.openpty()
        self._streams: list[IO[Any]] = []
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            stream = os.fdopen(os.dup(theirs), mode)
            self._streams.append(stream)
            monkeypatch.setattr(sys, name, stream)
        os.close(theirs)

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def hang_up(self) -> None:
        os.close(self.ours)

    def close(self) -> str:
        """Return what has been shown."""
        self.leave()
        return shown_by(self.ours)

    def leave(self) -> None:
        """Take the program's end away."""
        for stream in self._streams:
            stream.close()


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """A promotion that would begin, but for what is asked."""
    file = tmp_path / "dc.yaml"
    file.write_text(promotable(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))
    found = PROGRAM.parse(["promote", "dc2", str(file)])
    found.configuration = load(file)

    async def make_plan(*_: object) -> Plan:
        assert isinstance(PLAN, Plan)
        return PLAN

    @asynccontextmanager
    async def open_controller(*_: object, **__: object) -> AsyncIterator[SimpleNamespace]:
        async def carried_out(_: object, __: int, agreed: object) -> Journal:
            BEGUN.append(agreed)
            return ended_promotion(PromotionKind.PLANNED, FACTS)

        yield SimpleNamespace(promote=carried_out)

    monkeypatch.setattr(failover.commands.promotion, "make_plan", make_plan)
    monkeypatch.setattr(failover.commands.promotion, "open_controller", open_controller)
    BEGUN.clear()
    return found


async def test_a_yes_begins_what_was_shown(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(monkeypatch)
    terminal.type("yes\n")
    with trio.fail_after(10):
        await promote(options)
    shown = terminal.close()
    assert QUESTION in shown
    assert "promote dc2: planned, from dc1, epoch 5" in shown
    assert BEGUN == [PLAN]


@pytest.mark.parametrize("answer", ["n\n", "\n", "yess\n", "\x04", "dc2\n"])
async def test_anything_but_a_yes_begins_nothing(
    options: Options, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    terminal = Terminal(monkeypatch)
    terminal.type(answer)
    with trio.fail_after(10), pytest.raises(NotAgreed, match="nothing was changed"):
        await promote(options)
    terminal.close()
    assert BEGUN == []


async def test_a_terminal_that_goes_away_begins_nothing(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(monkeypatch)

    async def hang_up() -> None:
        await wait_all_tasks_blocked(0.05)
        assert options.is_asking
        terminal.hang_up()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hang_up)
        with pytest.raises(NotAgreed, match="nothing was changed"):
            await promote(options)
    terminal.leave()
    assert BEGUN == []


async def test_a_signal_at_the_question_begins_nothing_and_speaks_of_no_promotion(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(monkeypatch)
    async with trio.open_nursery() as nursery:

        async def stop() -> None:
            await wait_all_tasks_blocked(0.05)
            assert options.is_asking
            os.kill(os.getpid(), signal.SIGINT)

        nursery.start_soon(stop)
        assert await stop_at_signals(promote, options) == 1
    assert terminal.close().endswith("[y/N] failover: stopped\n")
    assert BEGUN == []


async def test_nobody_is_asked_who_said_yes_or_has_no_terminal(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    await promote(options)
    terminal = Terminal(monkeypatch)
    options.yes = True
    await promote(options)
    assert "[y/N]" not in terminal.close()
    assert BEGUN == [None, None]
