"""The wheel and the source archive of `make dist`, installed by pip into a new environment.

The packages' versions are those of requirements.lock, so that a run says the same tomorrow.
"""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from runtime.process.extras import IMPORTED, PACKAGE, install_command
from tests.interop.peers import PeerUnavailable

ROOT: Final = Path(__file__).parents[2]
TIMEOUT_S: Final = 300
MOST_MEGABYTES: Final = 80
"""What the programs take with all that is installed for them."""
OF_THE_ENVIRONMENT: Final = ("pip", "setuptools", "pkg_resources", "_distutils", "distutils")
PINNED: Final = re.compile(r"^[\w.-]+==[\w.-]+(?: ;[^\\]+)?", re.MULTILINE)
MARKED: Final = {"failover/client", "offset_translation", "runtime", "wire"}
"""The packages whose types an application's checker believes, and what they are made of."""
APPLICATION: Final = """\
from failover.client import SiteConsumer
from offset_translation import MapState, translate

reveal_type(SiteConsumer.poll)
reveal_type(MapState().maps)
reveal_type(translate)
"""

pytestmark = pytest.mark.matrix(subject="Installed from a wheel", against="pip, a new environment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A virtual environment with the wheel and what it depends on."""

    folder: Path
    wheel: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment to its end, away from the checkout."""
        program = self.folder / "bin" / command[0]
        return subprocess.run(
            [program, *command[1:]],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source archive."""
    if find_spec("hatchling") is None:
        raise PeerUnavailable("hatchling is not installed: `make setup` installs it")
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    # As `make dist` does it: a wheel for every platform.
    pure = {**os.environ, "CHUNK_KERNEL": "off"}
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=TIMEOUT_S, env=pure)
    [wheel], [source] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def installed(archives: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A new environment with the wheel and no extra."""
    folder = tmp_path_factory.mktemp("installed") / "env"
    venv.create(folder, with_pip=True)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(PINNED.findall((ROOT / "requirements.lock").read_text())))
    made = Installed(folder=folder, wheel=archives[0])
    done = made.run("pip", "install", "-q", "--no-compile", "-c", str(constraints), str(made.wheel))
    if done.returncode != 0:
        raise PeerUnavailable(f"pip: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}")
    return made


def test_the_wheel_has_the_programs_and_neither_tests_nor_the_demo(
    archives: tuple[Path, Path],
) -> None:
    with zipfile.ZipFile(archives[0]) as wheel:
        names = wheel.namelist()
    folders = {name.partition("/")[0] for name in names}
    [metadata] = {one for one in folders if one.endswith(".dist-info")}
    assert folders - {metadata} == {
        *("wire", "runtime", "broker", "mirror"),
        *("offset_translation", "failover", "spark_audit"),
    }
    marks = {name.removesuffix("/py.typed") for name in names if name.endswith("/py.typed")}
    assert marks == MARKED


def test_the_source_archive_has_what_builds_and_tests_it(archives: tuple[Path, Path]) -> None:
    with tarfile.open(archives[1]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert {"Makefile", "requirements.lock", "build-requirements.lock", "demo/run.py"} < names
    assert {"deploy/README.md", "docs/start.md", "tests/conftest.py", "LICENSE"} < names


@pytest.mark.parametrize(
    "command", ["mirror --help", "failover --version", "spark-audit --help", "broker topics --help"]
)
def test_a_program_starts(installed: Installed, command: str) -> None:
    done = installed.run(*command.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith((f"usage: {command.split(maxsplit=1)[0]}", "failover "))


@pytest.mark.parametrize(
    ("command", "status", "extra"),
    [
        ("spark-audit history /nowhere", 2, "audit"),
        ("broker run /nowhere/server.properties", 1, "local"),
        ("broker up --brokers 1 --data data", 1, "local"),
    ],
)
def test_a_program_names_the_extra_that_it_lacks(
    installed: Installed, command: str, status: int, extra: str
) -> None:
    done = installed.run(*command.split())
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.count("\n") == 1
    assert install_command(extra) in done.stderr


@pytest.mark.parametrize("extra", IMPORTED)
def test_pip_finds_the_named_extra_in_what_is_installed(installed: Installed, extra: str) -> None:
    """It asks no index for a project of our name, which is another's if it is there."""
    done = installed.run(
        *("pip", "install", "--no-index", "--no-deps", "--dry-run", f"{PACKAGE}[{extra}]")
    )
    assert done.returncode == 0, done.stderr
    assert f"Requirement already satisfied: {PACKAGE}[{extra}]" in done.stdout


def test_it_takes_no_more_than_80_megabytes(
    installed: Installed, archives: tuple[Path, Path]
) -> None:
    [packages] = installed.folder.glob("lib/python*/site-packages")
    ours = [one for one in packages.iterdir() if not one.name.startswith(OF_THE_ENVIRONMENT)]
    sizes = {one.name: _size(one) for one in ours}
    megabytes = sum(sizes.values()) / 1e6
    for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:12]:
        sys.stdout.write(f"{size / 1e6:8.1f} MB {name}\n")
    for archive in archives:
        sys.stdout.write(f"{archive.stat().st_size / 1e6:8.1f} MB {archive.name}\n")
    sys.stdout.write(f"{megabytes:8.1f} MB installed\n")
    assert megabytes <= MOST_MEGABYTES


def test_an_applications_type_checker_reads_our_types(installed: Installed, tmp_path: Path) -> None:
    file = tmp_path / "application.py"
    file.write_text(APPLICATION)
    python = installed.folder / "bin" / "python"
    check = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), file]
    done = subprocess.run(
        [*map(str, check), f"--cache-dir={tmp_path / 'cache'}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    revealed = [line.partition("Revealed type is ")[2] for line in done.stdout.splitlines()]
    types = [one for one in revealed if one]
    assert len(types) == 3
    assert not [one for one in types if "Any" in one], types


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
    return path.stat().st_size
