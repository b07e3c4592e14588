"""The code of another commit, to run beside this one's."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.bench.measure.machine import ROOT

TIMEOUT_S: Final = 300


class UnknownRevision(Exception):
    """The repository has no such commit, or it cannot be checked out; the message says why."""


def check_out(revision: str, folder: Path, repository: Path = ROOT) -> Path:
    """Return a checkout of a commit, made where there is none yet, with its chunk kernel.

    It has no environment of its own: what this one has installed runs it.
    """
    asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
    commit = _git(repository, asked, f"AGAINST: there is no commit {revision!r}").decode().strip()
    checkout = folder / commit[:12]
    if not checkout.exists():
        unpacked = folder / f"{checkout.name}.new"
        unpacked.mkdir(parents=True, exist_ok=True)
        archive = _git(repository, ["archive", commit], f"AGAINST: {revision!r} has no files")
        subprocess.run(
            ["tar", "-x", "-C", str(unpacked)], input=archive, check=True, timeout=TIMEOUT_S
        )
        builder = unpacked / "hatch_build.py"
        if builder.exists():
            subprocess.run([sys.executable, str(builder)], check=True, timeout=TIMEOUT_S)
        unpacked.rename(checkout)
    return checkout


def _git(repository: Path, arguments: list[str], fault: str) -> bytes:
    command = ["git", "-C", str(repository), *arguments]
    ended = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    if ended.returncode:
        raise UnknownRevision(fault)
    return ended.stdout
