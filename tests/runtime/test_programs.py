"""What our four programs have in common: examples that parse, statuses, versions, completion."""

import json
import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final

import pytest

import broker.cli
import failover.cli
import mirror.cli
import spark_audit.cli
from runtime.process import package_version
from runtime.program.command import Command
from runtime.program.program import Program
from tests.commands import logging_is_its_own

CHECKOUT: Final = Path(__file__).parents[2]
MODULES: Final = {
    "mirror": mirror.cli,
    "failover": failover.cli,
    "spark-audit": spark_audit.cli,
    "broker": broker.cli,
}
PROGRAMS: Final = {name: module.PROGRAM for name, module in MODULES.items()}
COMMANDS: Final = [
    pytest.param(program, command, id=f"{name} {command.name}")
    for name, program in PROGRAMS.items()
    for command in program.commands
]
each_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
each_command = pytest.mark.parametrize(("program", "command"), COMMANDS)
HEAVY: Final = ("confluent_kafka", "kazoo", "numpy", "pandas", "prometheus_client", "pyarrow")
HEAVIER: Final = (*HEAVY, "pyspark", "shtab", "trio", "yaml", "wire.schema", "wire.net")


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Programs that run in this process set up logging, on streams that end with the test."""
    with logging_is_its_own():
        yield


@each_command
def test_every_example_of_a_command_is_one(program: Program, command: Command) -> None:
    assert command.examples
    for example in command.examples:
        name, *words = shlex.split(example)
        assert name == program.name
        assert program.parse(words).command is command


@each_program
def test_every_example_of_a_program_is_one(program: Program) -> None:
    assert program.examples
    for example in program.examples:
        name, *words = shlex.split(example)
        assert name == program.name
        assert program.parse(words).command in program.commands
    for reference in program.reference():
        for example in reference.examples:
            program.parse(shlex.split(example)[1:])


@each_command
def test_what_a_command_needs_can_be_loaded(program: Program, command: Command) -> None:
    """Nothing else would notice a name that has moved before the command is run."""
    assert callable(command.load())
    assert all(issubclass(kind, Exception) for kind in program.faults())


@each_program
def test_the_help_names_every_status_that_a_fault_gives(program: Program) -> None:
    assert set(program.faults().values()) <= set(program.statuses)
    assert {0, 1, 2, 130, 141} <= set(program.all_statuses)


@each_command
def test_the_help_of_a_command_has_its_examples_and_options(
    program: Program, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main([*command.name.split(), "--help"]) == 0
    said = capsys.readouterr().out
    for example in command.examples:
        assert f"\n  {example}\n" in said
    [reference] = [one for one in program.reference() if one.name == command.name]
    assert " ".join(said.split()).startswith(f"usage: {reference.usage}")
    for typed, _ in reference.arguments:
        assert typed.strip("[]").split(",")[0].split(" ")[0] in said


@each_program
def test_the_version_is_the_packages(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--version"]) == 0
    expected = installed_version("kafka-disaster-recovery")
    assert capsys.readouterr().out == f"{program.name} {expected}\n"


def test_without_an_installed_package_the_version_is_called_unknown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(package_version, "PACKAGE", "kafka-disaster-recovery-not-installed")
    with pytest.raises(PackageNotFoundError):
        installed_version("kafka-disaster-recovery-not-installed")
    assert mirror.cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("mirror unknown: ")


def imported_by(name: str, *words: str) -> set[str]:
    """Return the modules that a program has imported once it has run."""
    module = MODULES[name].__name__
    text = (
        f"import sys, json; from {module} import main\n"
        f"main({list(words)})\n"
        "sys.stderr.write('\\n' + json.dumps(list(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", text], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return set(json.loads(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_is_there_before_anything_heavy_is_imported(name: str) -> None:
    assert imported_by(name, "--help").isdisjoint(HEAVIER)


def test_commands_import_what_they_need_and_no_more(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n"
    )
    assert imported_by("mirror", "import-mm2", str(file)).isdisjoint(HEAVY)
    away = tmp_path / "dc.yaml"
    away.write_text(
        'clusters: {dc1: {bootstrap: "127.0.0.1:1"}, dc2: {bootstrap: "127.0.0.1:1"}}\n'
        'flows: [{source: dc1, target: dc2}]\ncoordination: {zookeeper: "127.0.0.1:1"}\n'
        "mistake: 1\n"
    )
    unwanted = {"confluent_kafka", "numpy", "pandas", "pyarrow", "pyspark"}
    assert imported_by("failover", "status", str(away)).isdisjoint(unwanted)
    assert imported_by("mirror", "pause", "dc1-dc2", str(away)).isdisjoint(unwanted)
    assert "pandas" not in imported_by("spark-audit", "history", str(away)), "1.1 s of processor"


def loaded_for(*words: str) -> set[str]:
    """Return the modules that a command of `failover` has loaded when it begins."""
    text = (
        "import sys, json; from failover.cli import PROGRAM\n"
        f"PROGRAM.parse({list(words)}).command.load()\n"
        "print(json.dumps(list(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", text], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return set(json.loads(ended.stdout))


def test_a_promotion_loads_nothing_that_only_some_promotions_need() -> None:
    """What it loads takes as long as a third of a switch of 1,000 partitions."""
    loaded = loaded_for("promote", "dc2", "dc.yaml")
    assert "failover.moving.effects" in loaded
    unwanted = {"confluent_kafka", "h11", "prometheus_client", "rich", "failover.rehearsal.run"}
    assert loaded.isdisjoint(unwanted)


def test_a_look_loads_nothing_that_a_promotion_or_a_daemon_needs() -> None:
    """`failover status` is typed in a hurry: half of its time was such imports."""
    loaded = loaded_for("status", "dc.yaml")
    assert "failover.view.status" in loaded
    unwanted = {"failover.promote", "failover.moving.effects", "failover.planning.plan"}
    unwanted |= {"failover.view.snapshot", "runtime.rights.outlook", "offset_translation"}
    unwanted |= {"prometheus_client", "runtime.pages.metrics"}
    assert loaded.isdisjoint(unwanted)
    ours = {one for one in loaded if one.split(".")[0] in {"wire", "runtime", "failover"}}
    assert len(ours) <= 205, "it was 201: what is more has to be worth its time"


SHELL_COMPLETES: Final = r"""
source "$1"
read -r -a COMP_WORDS <<< "$2"
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
COMP_TYPE=9
complete=$(complete -p "${COMP_WORDS[0]}")
[[ $complete =~ -F\ ([^ ]+) ]] && "${BASH_REMATCH[1]}"
echo "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("mirror pa", "pause"),
        ("mirror restart --fr", "--from-earliest"),
        ("mirror status dc.y", "dc.yaml"),
        ("mirror status --config dc.y", "dc.yaml"),
        ("mirror completion z", "zsh"),
        ("failover pro", "promote"),
        ("spark-audit run --out", "--output"),
        ("broker up --zookeeper-", "--zookeeper-port"),
        ("broker topics des", "describe"),
        ("broker groups reset-offsets --to-e", "--to-earliest"),
    ],
)
def test_bash_completes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: str, completed: str
) -> None:
    name = typed.split(maxsplit=1)[0]
    assert PROGRAMS[name].main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "dc.yaml").touch()
    ended = subprocess.run(
        ["bash", "-c", SHELL_COMPLETES, "bash", str(script), typed],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ended.stdout.strip(), ended.stderr) == (completed, "")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mirror.cli.main(["completion", "zsh"]) == 0
    (tmp_path / "_mirror").write_text(capsys.readouterr().out)
    terminal, its_end = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"],
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        env={**os.environ, "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(its_end)
    try:
        script = (
            f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D; print re''ady\n"
        )
        os.write(terminal, script.encode())
        read_until(terminal, b"ready\r\n")
        os.write(terminal, b"mirror pa\t")
        read_until(terminal, b"mirror pause ")
    finally:
        shell.kill()
        shell.wait()
        os.close(terminal)


def read_until(terminal: int, awaited: bytes) -> None:
    """Read what a terminal shows until it has shown this."""
    shown = b""
    while awaited not in shown:
        is_ready, _, _ = select.select([terminal], [], [], 60)
        assert is_ready, shown
        shown += os.read(terminal, 4096)
