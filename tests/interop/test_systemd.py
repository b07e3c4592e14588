"""The units of `deploy/systemd`, judged by systemd's own programs; nothing is started by them."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.units import FOLDER, INSTALLED, SERVICES
from tests.interop.peers import PeerUnavailable

MOST_EXPOSED: Final = 15
"""Tenths of systemd's own measure, of which 100 is the worst and a plain unit has 92 to 96."""
EXPOSURE: Final = re.compile(r"Overall exposure level for \S+: ([\d.]+)")
TIMEOUT_S: Final = 60

pytestmark = [
    pytest.mark.matrix(subject="Units of systemd", against="systemd's own programs"),
    pytest.mark.usefixtures("_systemd"),
]


@pytest.fixture(scope="module")
def _systemd() -> None:
    for program in ("systemd-analyze", "systemd-sysusers"):
        if shutil.which(program) is None:
            raise PeerUnavailable(f"{program} is missing: install it (apt-get install systemd)")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=os.environ
    )


def test_systemd_reads_all_units_without_a_complaint(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mirror", "failover", "spark-audit"):
        program = programs / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    units = []
    for file in (*SERVICES, *FOLDER.glob("*.timer")):
        unit = tmp_path / file.name
        unit.write_text(file.read_text().replace(INSTALLED, str(programs)))
        units.append(str(unit))
    said = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units)
    assert (said.returncode, said.stderr) == (0, "")


@pytest.mark.parametrize("unit", [file.name for file in SERVICES])
def test_a_unit_leaves_little_open(unit: str) -> None:
    judge = ("systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}")
    said = run(*judge, str(FOLDER / unit))
    exposure = EXPOSURE.search(said.stdout)
    assert exposure is not None, said.stderr
    assert said.returncode == 0, exposure[0]


def test_the_user_of_the_units_is_one_that_systemd_makes(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    users = FOLDER / "kafka-dr.sysusers"
    said = run("systemd-sysusers", f"--root={tmp_path}", str(users))
    assert said.returncode == 0, said.stderr
    [line] = (tmp_path / "etc" / "passwd").read_text().splitlines()
    assert line.startswith("kafka-dr:x:")
    assert line.endswith(":/var/lib/kafka-dr:/usr/sbin/nologin")
