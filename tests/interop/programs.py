"""Our programs, run as users run them."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM_TIMEOUT_S = 180


def run_program(module: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run one of our programs to its end."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        timeout=PROGRAM_TIMEOUT_S,
        check=False,
    )


def active_site(configuration: Path) -> str:
    """Return the site that `failover status` calls active."""
    told = run_program("failover.cli", "status", "--json", str(configuration))
    assert told.returncode == 0, told.stderr
    site: str = json.loads(told.stdout)["active"]["site"]
    return site
