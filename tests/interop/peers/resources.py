"""Whether this machine has room for a peer; said before the peer fails in its own words."""

import re
import shutil
from pathlib import Path
from typing import Final

from tests.interop.peers.faults import PeerUnavailable

_AVAILABLE: Final = re.compile(r"^MemAvailable:\s+(\d+) kB", re.MULTILINE)


def require_memory(needed_mb: int) -> None:
    """Raise PeerUnavailable unless that much memory is available (unknown counts as enough)."""
    try:
        found = _AVAILABLE.search(Path("/proc/meminfo").read_text())
    except FileNotFoundError:
        return  # not Linux: the peer itself will tell
    if found is not None and int(found[1]) // 1024 < needed_mb:
        raise PeerUnavailable(
            f"too little memory: {needed_mb} MB needed, {int(found[1]) // 1024} MB available"
        )


def require_disk(folder: Path, needed_mb: int) -> None:
    """Raise PeerUnavailable unless the folder's file system has that much room."""
    free_mb = shutil.disk_usage(folder).free // (1024 * 1024)
    if free_mb < needed_mb:
        raise PeerUnavailable(
            f"too little disk for {folder}: {needed_mb} MB needed, {free_mb} MB free"
        )
