"""What the operating system says of a process: time on the processors, memory in RAM."""

import os
from pathlib import Path
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_STATE: Final = 0
_UTIME: Final = 11
_STIME: Final = 12
_RSS: Final = 21
"""Places in /proc/PID/stat counted behind the name, which may hold blanks and brackets."""
ZOMBIE: Final = "Z"


class ProcessGone(RuntimeError):
    """The process to be measured is not there any more."""


def cpu_and_memory(pid: int) -> tuple[float, int]:
    """Return CPU-seconds of all its threads, also of those that ended, and resident bytes.

    Raises ProcessGone. The kernel counts in ticks, 10 ms as a rule.
    """
    return parse_stat(_stat(pid))


def user_and_kernel(pid: int) -> tuple[float, float]:
    """Return the CPU-seconds in its own code and those in the kernel. Raises ProcessGone."""
    fields = _fields(_stat(pid))
    return int(fields[_UTIME]) / _TICKS_PER_S, int(fields[_STIME]) / _TICKS_PER_S


def parse_stat(
    text: str, *, ticks_per_s: int = _TICKS_PER_S, page_bytes: int = _PAGE_BYTES
) -> tuple[float, int]:
    """Return CPU-seconds and resident bytes out of a line of /proc/PID/stat."""
    fields = _fields(text)
    ticks = int(fields[_UTIME]) + int(fields[_STIME])
    return ticks / ticks_per_s, int(fields[_RSS]) * page_bytes


def _stat(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessGone(f"process {pid} is gone") from error
    if _fields(text)[_STATE] == ZOMBIE:
        raise ProcessGone(f"process {pid} has ended")
    return text


def _fields(text: str) -> list[str]:
    return text.rpartition(")")[2].split()
