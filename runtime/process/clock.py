"""The clocks, read only at the edge: decisions take the time as an argument."""

import time
from typing import Final

_ZERO_NS: Final = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def now_ms() -> int:
    """Return milliseconds since the epoch, by the clock as it was set when the process began.

    Setting the machine's clock, by hours and in either direction, moves no deadline and no age:
    otherwise it would hold retries up for hours, or end a grace time at once. What is shown as a
    date follows at the next start.
    """
    return (_ZERO_NS + time.clock_gettime_ns(time.CLOCK_BOOTTIME)) // 1_000_000


def wall_ms() -> int:
    """Return milliseconds since the epoch as the machine says now: for stamps that others read."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Return a clock in milliseconds that never goes back: for durations and deadlines."""
    return time.monotonic_ns() // 1_000_000


def uptime_ms() -> int:
    """Return a clock as `monotonic_ms` that also counts while the machine itself is suspended."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
