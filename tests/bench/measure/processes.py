"""What the operating system says of a process: time on the processors, memory in RAM."""

import os
from pathlib import Path
from time import clock_gettime
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_SCHEDULED: Final = 2
_STATE: Final = 0
_UTIME: Final = 11
_STIME: Final = 12
_RSS: Final = 21
"""Places in /proc/PID/stat counted behind the name, which may hold blanks and brackets."""
ZOMBIE: Final = "Z"
_PEAK_ANEW: Final = "5"
"""What /proc/PID/clear_refs takes for VmHWM to begin anew: proc(5)."""


class ProcessGone(RuntimeError):
    """The process to be measured is not there any more."""


def cpu_and_memory(pid: int) -> tuple[float, int]:
    """Return CPU-seconds of all its threads, also of those that ended, and resident bytes.

    Raises ProcessGone. The seconds are the scheduler's own sum, in nanoseconds: ticks of 10 ms
    would be a tenth of what a short run takes.
    """
    resident = resident_bytes(_stat(pid))
    try:
        return clock_gettime(_cpu_clock(pid)), resident
    except OSError as error:
        raise ProcessGone(f"process {pid} is gone") from error


def user_and_kernel(pid: int) -> tuple[float, float]:
    """Return the CPU-seconds in its own code and those in the kernel. Raises ProcessGone."""
    fields = _fields(_stat(pid))
    return int(fields[_UTIME]) / _TICKS_PER_S, int(fields[_STIME]) / _TICKS_PER_S


def begin_peak(pid: int) -> None:
    """Have the peak of what a process has in memory count from now on. Raises ProcessGone."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text(_PEAK_ANEW)
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessGone(f"process {pid} is gone") from error


def peak_bytes(pid: int) -> int:
    """Return the most that a process has had in memory. Raises ProcessGone."""
    try:
        return most_resident_bytes(Path(f"/proc/{pid}/status").read_text())
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessGone(f"process {pid} is gone") from error


def most_resident_bytes(status: str) -> int:
    """Return the peak of what was in memory, out of /proc/PID/status (VmHWM, in KiB).

    Raises ProcessGone for a process that has ended, which has none.
    """
    lines = dict(line.split(":", 1) for line in status.splitlines())
    if "VmHWM" not in lines:
        raise ProcessGone("the process has ended")
    return int(lines["VmHWM"].split()[0]) * 1024


def resident_bytes(stat: str, *, page_bytes: int = _PAGE_BYTES) -> int:
    """Return what is in memory, out of a line of /proc/PID/stat."""
    return int(_fields(stat)[_RSS]) * page_bytes


def _cpu_clock(pid: int) -> int:
    """Return the id of another process's clock, as clock_getcpuclockid(3) makes it on Linux."""
    return (~pid << 3) | _SCHEDULED


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
