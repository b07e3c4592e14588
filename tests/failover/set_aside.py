"""What only one site has, as the command lists it, and what lies in `.diverged` topics."""

import json
from pathlib import Path
from typing import Any

from runtime.diverged import OFFSET, SITE
from tests.clusters import RunningCluster
from tests.commands import run_mirror_command
from tests.failover.promoting import tell
from tests.failover.two_sites import read_all


def restart(file: Path, topic: str, how: str, flow: str = "dc2->dc1") -> None:
    """Order the restart of a topic, of the way back if nothing else is said."""
    ended = run_mirror_command("restart", flow, topic, file, how)
    assert ended.returncode == 0, ended.stderr


def set_aside(cluster: RunningCluster, topic: str, site: str = "dc1") -> list[tuple[int, int]]:
    """Return (value, offset at its site) of what lies in a topic's `.diverged` topic."""
    found = read_all(cluster, f"{topic}.diverged")
    headers = [dict(one.headers() or ()) for one in found]
    assert all(one[SITE] == site.encode() for one in headers)
    return [
        (int(one.value() or b""), int(header[OFFSET] or b""))
        for one, header in zip(found, headers, strict=True)
    ]


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Return what the files in `diverged` of this folder say of records that were set aside."""
    files = sorted((folder / "diverged").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def divergence(file: Path) -> tuple[int, list[tuple[str, str, int]]]:
    """Return the status of `failover divergence --json`, and what it lists."""
    ended = tell("divergence", "--json", str(file))
    lines = [json.loads(line) for line in ended.output.splitlines()]
    assert all(one["key"] in {"k", "new"} and one["timestamp_ms"] >= 1_000 for one in lines)
    return ended.status, [(one["what"], one["site"], one["offset"]) for one in lines]
