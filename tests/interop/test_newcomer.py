"""A newcomer's first failover, by the commands of the README and nothing else, timed.

`make run` is `python -m demo run` behind the set-up, which is not counted. The times are kept in
`build/newcomer.json`; they are those of the commands, to which a person adds the reading.
"""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT

TIMES: Final = ROOT / "build" / "newcomer.json"
BLOCK: Final = re.compile(
    r"## A first failover in five minutes\n\n```\n(?P<lines>.*?)```", re.DOTALL
)
FIVE_MINUTES_S: Final = 300
READY: Final = "ready after"

pytestmark = pytest.mark.matrix(subject="The README", against="a newcomer")


def commands() -> list[list[str]]:
    """Return the README's commands behind `make run`; what is watched is looked at once."""
    found = BLOCK.search((ROOT / "README.md").read_text())
    assert found is not None
    first, *others = (
        line.partition("  #")[0].strip().removesuffix(" --watch")
        for line in found["lines"].splitlines()
    )
    assert first == "make run"
    return [shlex.split(line) for line in others]


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """Have the local stack in a folder until the block ends; Ctrl-C ends it in order."""
    command = [sys.executable, "-m", "demo", "--folder", str(folder), "run"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as stack:
        assert stack.stdout is not None
        try:
            seen = ""
            for line in stack.stdout:
                seen += line
                if line.startswith(READY):
                    break
            assert READY in seen, seen
            yield
        finally:
            stack.send_signal(signal.SIGINT)
            stack.communicate(timeout=FIVE_MINUTES_S)
    assert stack.returncode == 0


def test_the_readmes_commands_make_a_first_failover_in_five_minutes(tmp_path: Path) -> None:
    took: dict[str, float] = {}
    began = time.monotonic()
    with running(tmp_path / "build"):
        took["make run"] = round(time.monotonic() - began, 1)
        for words in commands():
            program, *arguments = words
            given_at = time.monotonic()
            done = subprocess.run(
                [str(Path(sys.executable).parent / Path(program).name), *arguments],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=FIVE_MINUTES_S,
                check=False,
            )
            typed = shlex.join(words)
            assert done.returncode == 0, f"{typed}: {done.stdout}{done.stderr}"
            took[typed] = round(time.monotonic() - given_at, 1)
        took["all"] = round(time.monotonic() - began, 1)
    TIMES.write_text(json.dumps(took, indent=1))
    assert took["all"] < FIVE_MINUTES_S, took
