"""Prometheus' own checker of alerts: of the PATH, or out of the system's package, unpacked.

`python -m tests.deploy.promtool` has apt download the package and unpacks it into build/. It needs
no root unless apt has no list of packages yet. It never fails: without promtool, the tests that
need it are skipped and say so.
"""

import shutil
import sys
from pathlib import Path
from typing import Final

from tests.debian import unpack_packages

PACKAGE: Final = "prometheus"
FOLDER: Final = Path(__file__).parents[2] / "build" / "promtool"


def find_promtool(folder: Path = FOLDER) -> str | None:
    """Return the checker's path, None if there is none."""
    return find_program("promtool", folder)


def find_program(name: str, folder: Path = FOLDER) -> str | None:
    """Return the path of one of the package's programs, None if there is none."""
    unpacked = folder / "usr" / "bin" / name
    return shutil.which(name) or (str(unpacked) if unpacked.exists() else None)


def unpack_promtool(folder: Path = FOLDER) -> str | None:
    """Download and unpack the package; return why that was not possible, None if it was."""
    return unpack_packages([PACKAGE], folder)


def main() -> None:
    """Have promtool, or say in a line why not."""
    if find_promtool() is None:
        said = unpack_promtool()
        if said is not None or find_promtool() is None:
            sys.stderr.write(f"no promtool, so tests/deploy/test_alerts.py is skipped: {said}\n")


if __name__ == "__main__":
    main()
