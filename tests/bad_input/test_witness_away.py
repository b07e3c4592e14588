"""Who asks a witness that does not answer is told so; nothing is done."""

import signal
from pathlib import Path
from time import monotonic

import pytest

from tests.bad_input.programs import write_configuration
from tests.dc_yaml import NOWHERE
from tests.failover.two_sites import pause
from tests.forked import Call, call_program

pytestmark = pytest.mark.integration

WHY = "socket connection error: Connection refused"
PROGRAMS = [
    ("mirror", "check"),
    ("failover", "promote", "dc2"),
    ("failover", "plan", "dc2"),
    ("failover", "abort"),
    ("failover", "status"),
]


TIMEOUT_S = 180


def test_every_program_that_needs_the_witness_names_it(tmp_path: Path) -> None:
    file = write_configuration(tmp_path)
    runs = {name: call_program(f"{name[0]}.cli", *name[1:], file) for name in PROGRAMS}
    status = call_program("mirror.cli", "status", file)
    watching = call_program("mirror.cli", "status", "--watch", file)
    unseen = f"ZooKeeper {NOWHERE} did not answer within 10 s: {WHY}"
    for (program, *_), run in runs.items():
        assert complaint(run, 2) == f"{program}: {unseen}"
    assert f"could not see all: flow dc1->dc2: witness: {unseen}; " in complaint(status, 2)
    end_by_ctrl_c(watching)


def complaint(call: Call, status: int) -> str:
    """Wait for the end; return what it said on standard error, which is one line."""
    ended = call.finish(TIMEOUT_S)
    assert ended.returncode == status, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr.strip()


def end_by_ctrl_c(watching: Call) -> None:
    """Leave `--watch`, once it has shown something, as one does; that is no fault."""
    deadline = monotonic() + TIMEOUT_S
    while "flow dc1->dc2: not running" not in watching.output():
        assert watching.process.poll() is None
        assert monotonic() < deadline
        pause(0.1)
    watching.process.send_signal(signal.SIGINT)
    ended = watching.finish(TIMEOUT_S)
    assert (ended.returncode, ended.stderr) == (0, "")
