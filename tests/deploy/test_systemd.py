"""The units for systemd start commands that exist, by one user, with the same restrictions."""

import shlex
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

import failover.cli
import mirror.cli
import spark_audit.cli
from tests.deploy.units import FOLDER, INSTALLED, SERVICES

PROGRAMS: Final = {
    one.name: one for one in (failover.cli.PROGRAM, mirror.cli.PROGRAM, spark_audit.cli.PROGRAM)
}
OF_NO_DAEMON: Final = {"MemoryDenyWriteExecute"}
"""What Java cannot run with, which makes code while it runs."""
RESTRICTIONS: Final = (
    *("Protect", "Private", "Restrict", "SystemCall", "Capability", "Ambient", "NoNew", "Lock"),
    *("Remove", "Memory", "User", "UMask"),
)
each_service = pytest.mark.parametrize("service", SERVICES, ids=lambda file: file.name)


def settings(service: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in service.read_text().splitlines():
        key, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#"):
            found[key].append(value)
    return found


def restrictions(service: Path) -> dict[str, list[str]]:
    return {
        key: value
        for key, value in settings(service).items()
        if key.startswith(RESTRICTIONS) and key not in OF_NO_DAEMON
    }


@each_service
def test_a_unit_starts_a_command_that_exists_on_the_one_configuration(service: Path) -> None:
    [line] = settings(service)["ExecStart"]
    path, *words = shlex.split(line)
    assert Path(path).parent == Path(INSTALLED)
    options = PROGRAMS[Path(path).name].parse(words)
    assert options.file == Path("/etc/kafka-dr/dc.yaml")


@each_service
def test_all_units_run_as_one_user_with_the_same_restrictions(service: Path) -> None:
    assert restrictions(service) == restrictions(SERVICES[0])
    [user] = settings(service)["User"]
    assert f"u {user} - " in (FOLDER / "kafka-dr.sysusers").read_text()


@each_service
def test_a_daemon_comes_back_however_often_it_ends_and_an_audit_does_not(service: Path) -> None:
    found = settings(service)
    if found["Type"] == ["oneshot"]:
        assert "Restart" not in found
        assert service.with_suffix(".timer").exists()
    else:
        assert found["Restart"] == ["on-failure"]
        assert found["StartLimitIntervalSec"] == ["0"]
        assert found["MemoryDenyWriteExecute"] == ["yes"]


@each_service
def test_a_unit_sees_what_tells_two_processes_of_one_machine_apart(service: Path) -> None:
    """A controller knows a dead one by /proc/sys/kernel/random, which ProcSubset=pid hides."""
    assert "ProcSubset" not in settings(service)
