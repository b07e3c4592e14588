"""A mistake in the YAML file ends every program that reads it, before it does anything."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import pytest

from tests.bad_input.programs import complaint, start, write_configuration
from tests.commands import run_audit_command, run_failover_command, run_mirror_command

COMMANDS = [
    ("mirror", "status"),
    ("mirror", "check"),
    ("failover", "promote", "dc2"),
    ("failover", "plan", "dc2"),
    ("failover", "abort"),
    ("failover", "status"),
    ("failover", "serve"),
    ("spark_audit", "run"),
    ("spark_audit", "metrics"),
]
RUN = {
    "mirror": run_mirror_command,
    "failover": run_failover_command,
    "spark_audit": run_audit_command,
}
MISTAKES = {
    ("target: dc2", "targett: dc2"): "6: flows[0].targett: unknown key; did you mean 'target'?",
    ("mirror_port: 0", "mirror_port: x"): "8: metrics.mirror_port: must be a whole number",
    ("127.0.0.1:1", "127.0.0.1"): "2: clusters.dc1.bootstrap: '127.0.0.1' is not host:port",
}


def mistaken(folder: Path, mistake: tuple[str, str]) -> Path:
    file = write_configuration(folder)
    file.write_text(file.read_text().replace(*mistake, 1))
    return file


def with_mistakes(
    commands: Sequence[tuple[str, ...]],
) -> list[tuple[tuple[str, ...], tuple[str, str]]]:
    """What the file's reader says of each mistake is tested beside it, in `tests/runtime`."""
    return list(zip(commands, cycle(MISTAKES), strict=False))


def test_a_daemon_that_a_person_starts_names_a_wrong_key(tmp_path: Path) -> None:
    """In a process of its own; the others' commands are called in this one."""
    mistake = next(iter(MISTAKES))
    file = mistaken(tmp_path, mistake)
    said = complaint(start("mirror.cli", "run", file), 2)
    assert said.startswith(f"mirror: {file}:{MISTAKES[mistake]}")


@pytest.mark.parametrize(("command", "mistake"), with_mistakes(COMMANDS), ids=str)
def test_a_mistake_is_named_by_every_command_that_reads_the_file(
    tmp_path: Path, command: tuple[str, ...], mistake: tuple[str, str]
) -> None:
    file = mistaken(tmp_path, mistake)
    name, *words = command
    ended = RUN[name](*words, file)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1), ended
    assert ended.stderr.startswith(f"{name.replace('_', '-')}: {file}:{MISTAKES[mistake]}")
