"""Run our programs as a person does, and hold what they say against "one clear line"."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.dc_yaml import NOWHERE, dc_yaml


def write_configuration(
    folder: Path, *, dc1: str = NOWHERE, dc2: str = NOWHERE, witness: str = NOWHERE
) -> Path:
    """Write a good file and return it."""
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(dc1=dc1, dc2=dc2, witness=witness, path=f"/{folder.name}"))
    return file


def start(*command: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start `python -m` with these arguments; the environment may be changed."""
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )


def complaint(process: subprocess.Popen[str], status: int, timeout_s: float = 180) -> str:
    """Wait for the end; return what it said on standard error, which is one line."""
    _, said = process.communicate(timeout=timeout_s)
    assert process.returncode == status, said
    assert said.count("\n") == 1, said
    return said.strip()
