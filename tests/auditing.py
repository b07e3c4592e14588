"""An audit as users run it, and what it counts."""

import json
import subprocess
import sys
from pathlib import Path

from spark_audit.compare.outcomes import Kind
from tests.commands import TIMEOUT_S


def audited(file: Path, *, status: int) -> dict[str, dict[str, int]]:
    """Return what an audit counts in the flows' only partition, of records read and not equal."""
    ended = subprocess.run(
        [sys.executable, "-m", "spark_audit.cli", "run", file, "--json", "--output", file.parent],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == status, f"{ended.stdout}\n{ended.stderr}"
    found = {}
    for flow in json.loads(ended.stdout)["flows"]:
        (row,) = flow["partitions"]
        kinds = ("source_records", "target_records", *(kind.column for kind in Kind))
        found[flow["flow"]] = {kind: row[kind] for kind in kinds if row[kind]}
    return found
