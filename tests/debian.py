"""Programs out of the system's packages, unpacked into a folder; nothing is installed."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

TIMEOUT_S: Final = 300


def unpack_packages(packages: Sequence[str], folder: Path) -> str | None:
    """Download and unpack packages; return why that was not possible, None if it was.

    It needs no root unless apt has no list of packages yet.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return "this system has no apt-get and dpkg-deb"
    with TemporaryDirectory() as name:
        download = ["apt-get", "download", "--quiet", *packages]
        said = _run(download, name)
        if said is not None and _run(["apt-get", "update", "--quiet"], name) is None:
            said = _run(download, name)
        if said is not None:
            return said
        found = sorted(Path(name).glob("*.deb"))
        if len(found) < len(packages):
            return f"apt-get download {' '.join(packages)} left {len(found)} packages"
        folder.parent.mkdir(parents=True, exist_ok=True)
        for package in found:
            said = said or _run(["dpkg-deb", "--extract", str(package), str(folder)], name)
        return said


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
