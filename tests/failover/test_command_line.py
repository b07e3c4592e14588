"""The command line of `failover`, as it is typed in a hurry."""

import argparse
import os
import signal
from itertools import permutations
from pathlib import Path

import pytest
import trio

from failover.cli import _run, parse
from runtime.config import Configuration
from tests.failover.sites import CONFIG


@pytest.mark.parametrize(
    "arguments",
    [
        list(order)
        for order in permutations(["dc2", "dc.yaml", "--source-lost"])
        if order.index("dc2") < order.index("dc.yaml")
    ],
)
def test_the_option_may_stand_anywhere(arguments: list[str]) -> None:
    options = parse(["promote", *arguments])
    assert (options.site, options.file, options.source_lost) == ("dc2", Path("dc.yaml"), True)


@pytest.mark.parametrize("arguments", [["--json", "dc.yaml"], ["dc.yaml", "--json"]])
def test_the_file_of_status_may_stand_on_either_side(arguments: list[str]) -> None:
    options = parse(["status", *arguments])
    assert (options.file, options.json) == (Path("dc.yaml"), True)


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["promote", "dc2"])
    assert ended.value.code == 2
    assert "FILE" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "status"), [("plan", 1), ("status", 1), ("serve", 0)])
async def test_who_is_stopped_before_all_is_told_has_not_succeeded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, status: int
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(CONFIG.format(dc1="a:1", dc2="b:1", witness="w:1", path="/r", topics=".*"))

    async def be_stopped(_: Configuration, __: argparse.Namespace) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        await trio.sleep_forever()
        raise AssertionError("nobody wakes it")

    words = [command, *(["dc2"] if command == "plan" else []), str(file)]
    assert await _run(be_stopped, parse(words)) == status
    assert capsys.readouterr().err == ("failover: stopped\n" if status else "")
