"""Who asks a witness that does not answer is told so; nothing is done."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.bad_input.programs import complaint, start, write_configuration
from tests.dc_yaml import NOWHERE

pytestmark = pytest.mark.integration

WHY = "socket connection error: Connection refused"
PROGRAMS = [
    ("mirror", "check"),
    ("failover", "promote", "dc2"),
    ("failover", "plan", "dc2"),
    ("failover", "abort"),
    ("failover", "status"),
]


def test_every_program_that_needs_the_witness_names_it(tmp_path: Path) -> None:
    file = write_configuration(tmp_path)
    runs = {name: start(f"{name[0]}.cli", *name[1:], file) for name in PROGRAMS}
    status = start("mirror.cli", "status", file)
    watching = start("mirror.cli", "status", "--watch", file)
    unseen = f"ZooKeeper {NOWHERE} did not answer within 10 s: {WHY}"
    for (program, *_), run in runs.items():
        assert complaint(run, 2) == f"{program}: {unseen}"
    assert f"could not see all: flow dc1->dc2: witness: {unseen}; " in complaint(status, 2)
    end_by_ctrl_c(watching)


def end_by_ctrl_c(watching: subprocess.Popen[str]) -> None:
    """Leave `--watch`, once it has shown something, as one does; that is no fault."""
    assert watching.stdout is not None
    while "flow dc1->dc2: not running" not in watching.stdout.readline():
        assert watching.poll() is None
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=120)
    assert (watching.returncode, said) == (0, "")
