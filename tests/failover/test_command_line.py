"""The command line of `failover`, as it is typed in a hurry."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
import trio

import failover.commands.promotion
from failover.cli import PROGRAM
from failover.commands.promotion import abort, promote
from failover.commands.running import stop_at_signals
from failover.journal.facts import Facts
from failover.journal.journal import Journal, begin_step, end_step, turn_back
from failover.journal.steps import PromotionKind, PromotionState, StepName, StepState
from failover.promote import PromotionRefused
from runtime.configuration.config import Configuration, load
from runtime.program.command import Options
from tests.failover.journals import begun, ended_promotion
from tests.failover.two_sites import promotable

FACTS: Final[dict[StepName, Facts]] = {
    StepName.DRAIN: {"records": 0},
    StepName.GROUPS_MOVE: {"positions": {}, "left": {}},
}


def config_file(folder: Path) -> Path:
    """Write a file of sites that nobody asks."""
    file = folder / "dc.yaml"
    file.write_text(promotable(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))
    return file


@pytest.mark.parametrize(
    "arguments",
    [
        list(order)
        for order in permutations(["dc2", "dc.yaml", "--source-lost"])
        if order.index("dc2") < order.index("dc.yaml")
    ],
)
def test_the_option_may_stand_anywhere(arguments: list[str]) -> None:
    options = PROGRAM.parse(["promote", *arguments])
    assert (options.site, options.file, options.source_lost) == ("dc2", Path("dc.yaml"), True)


@pytest.mark.parametrize("arguments", [["--json", "dc.yaml"], ["dc.yaml", "--json"]])
def test_the_file_of_status_may_stand_on_either_side(arguments: list[str]) -> None:
    options = PROGRAM.parse(["status", *arguments])
    assert (options.file, options.json) == (Path("dc.yaml"), True)


@pytest.mark.parametrize(("command", "status"), [("plan", 1), ("status", 1), ("serve", 0)])
async def test_who_is_stopped_before_all_is_told_has_not_succeeded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, status: int
) -> None:
    file = config_file(tmp_path)

    async def be_stopped(_: Options) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        await trio.sleep_forever()
        raise AssertionError("nobody wakes it")

    words = [command, *(["dc2"] if command == "plan" else []), str(file)]
    assert await stop_at_signals(be_stopped, PROGRAM.parse(words)) == status
    assert capsys.readouterr().err == ("failover: stopped\n" if status else "")


async def test_a_promotion_goes_on_when_nobody_reads_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`| head` in the middle of it would else leave a site fenced, and nobody going on."""
    reached: list[str] = []

    @asynccontextmanager
    async def open_controller(
        _: Configuration, show: Callable[[str], None], **__: object
    ) -> AsyncIterator[SimpleNamespace]:
        async def carried_out(*_: object) -> Journal:
            for step in ("fence", "drain", "switch"):
                show(step)
                reached.append(step)
            return ended_promotion(PromotionKind.PLANNED, FACTS)

        yield SimpleNamespace(promote=carried_out)

    monkeypatch.setattr(failover.commands.promotion, "open_controller", open_controller)
    file = config_file(tmp_path)
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        options = PROGRAM.parse(["promote", "dc2"])
        options.configuration = load(file)
        status = await promote(options)
    assert (status, reached) == (0, ["fence", "drain", "switch"])
    assert capsys.readouterr().err == (
        "failover: nothing more can be shown (Broken pipe); the work goes on\n"
    )


def test_who_was_told_enough_gets_no_traceback(tmp_path: Path) -> None:
    """Of `mirror`, one command stands for all."""
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n"
    )
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as output:
        ended = subprocess.run(
            [sys.executable, "-m", "mirror.cli", "import-mm2", str(file)],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ended.returncode, "Traceback" in ended.stderr) == (141, False)


@pytest.mark.parametrize(("facts", "status"), [({"left": "no answer"}, 1), ({"fenced": False}, 0)])
async def test_an_abort_that_left_something_has_not_succeeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: Facts, status: int
) -> None:
    journal = begin_step(begun(), StepName.FENCE, 0)
    journal = end_step(journal, StepName.FENCE, state=StepState.UNDONE, facts=facts, now_ms=1)
    journal = replace(turn_back(journal, "by hand"), state=PromotionState.ROLLED_BACK)

    @asynccontextmanager
    async def open_controller(*_: object, **__: object) -> AsyncIterator[SimpleNamespace]:
        async def take_back() -> Journal:
            return journal

        yield SimpleNamespace(abort=take_back)

    monkeypatch.setattr(failover.commands.promotion, "open_controller", open_controller)
    file = config_file(tmp_path)
    options = PROGRAM.parse(["abort", str(file)])
    options.configuration = load(file)
    assert await abort(options) == status


async def test_of_several_sets_those_that_moved_are_told_where_a_later_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2 would say that nothing was done."""
    done = ended_promotion(PromotionKind.PLANNED, {**FACTS, StepName.CONFIRM: {"appended": []}})

    @asynccontextmanager
    async def open_controller(
        of_set: Configuration, *_: object, **__: object
    ) -> AsyncIterator[Any]:
        async def carried_out(*_: object) -> Journal:
            if of_set.topic_set == "payments":
                raise PromotionRefused("its groups are cut")
            return done

        yield SimpleNamespace(promote=carried_out)

    file = config_file(tmp_path)
    sets = "failover: {sets: {payments: {topics: pay.*}}, "
    file.write_text(file.read_text().replace("failover: {", sets))
    options = PROGRAM.parse(["promote", "dc2", "--all", "--json", str(file)])
    options.configuration = whole = load(file)

    async def choose(_: Options) -> tuple[Configuration, ...]:
        return whole.of_set("default"), whole.of_set("payments")

    monkeypatch.setattr(failover.commands.promotion, "open_controller", open_controller)
    monkeypatch.setattr(failover.commands.promotion, "choose_sets", choose)
    assert await promote(options) == 1
    told = capsys.readouterr()
    assert [one["set"] for one in json.loads(told.out)] == ["default"]
    assert "set payments: its groups are cut" in told.err
    assert "moved: default; not moved: payments" in told.err
