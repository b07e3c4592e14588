"""Prometheus' own checker of alerts: of the PATH, or out of the system's package, unpacked.

`python -m tests.deploy.promtool` has apt download the package and unpacks it into build/. It needs
no root unless apt has no list of packages yet. It never fails: without promtool, the tests that
need it are skipped and say so.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

PACKAGE: Final = "prometheus"
FOLDER: Final = Path(__file__).parents[2] / "build" / "promtool"
TIMEOUT_S: Final = 300


def find_promtool(folder: Path = FOLDER) -> str | None:
    """Return the checker's path, None if there is none."""
    return find_program("promtool", folder)


def find_program(name: str, folder: Path = FOLDER) -> str | None:
    """Return the path of one of the package's programs, None if there is none."""
    unpacked = folder / "usr" / "bin" / name
    return shutil.which(name) or (str(unpacked) if unpacked.exists() else None)


def unpack_promtool(folder: Path = FOLDER) -> str | None:
    """Download and unpack the package; return why that was not possible, None if it was."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return "this system has no apt-get and dpkg-deb"
    with TemporaryDirectory() as name:
        download = ["apt-get", "download", "--quiet", PACKAGE]
        said = _run(download, name)
        if said is not None and _run(["apt-get", "update", "--quiet"], name) is None:
            said = _run(download, name)
        if said is not None:
            return said
        packages = list(Path(name).glob("*.deb"))
        if not packages:
            return f"apt-get download {PACKAGE} left no package"
        folder.parent.mkdir(parents=True, exist_ok=True)
        return _run(["dpkg-deb", "--extract", str(packages[0]), str(folder)], name)


def _run(command: list[str], folder: str) -> str | None:
    """Return the last line of what a command complained of, None if it did not fail."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"{command[0]}: {done.returncode}"])[-1]


def main() -> None:
    """Have promtool, or say in a line why not."""
    if find_promtool() is None:
        said = unpack_promtool()
        if said is not None or find_promtool() is None:
            sys.stderr.write(f"no promtool, so tests/deploy/test_alerts.py is skipped: {said}\n")


if __name__ == "__main__":
    main()
