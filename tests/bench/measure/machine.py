"""On what, and with which versions, the figures were taken."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from runtime.process.clock import now_ms
from runtime.process.java import JavaMissing, java_command
from tests.interop.peers import KAFKA_4_KRAFT, NEWEST_MIRROR_MAKER

ROOT: Final = Path(__file__).parents[3]
KIND: Final = KAFKA_4_KRAFT
MM2_VERSION: Final = NEWEST_MIRROR_MAKER
PACKAGES: Final = ("trio", "fastcrc", "cramjam")
UNKNOWN: Final = "unknown"


def describe() -> dict[str, Any]:
    """Return what a reader needs to judge the figures by."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.fromtimestamp(now_ms() / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_gb": round(memory / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load_at_start": load(),
        "versions": {
            "this project": _commit(),
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
            "java": _java(),
            "apache kafka": f"{KIND.version} ({KIND.mode.value})",
            "mirror maker": MM2_VERSION,
        },
    }


def load() -> float:
    """Return how many processes have wanted a processor over the last minute."""
    return round(os.getloadavg()[0], 2)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:
        return platform.processor() or UNKNOWN
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else UNKNOWN


def _commit() -> str:
    return _first_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty"])


def _java() -> str:
    try:
        return _first_line([str(java_command()), "--version"])
    except JavaMissing:
        return "none"


def _first_line(command: list[str]) -> str:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    return next(iter(ended.stdout.splitlines()), UNKNOWN)
