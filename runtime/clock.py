"""The two clocks, read only at the edge: decisions take the time as an argument."""

import time


def now_ms() -> int:
    """Return the wall clock in milliseconds since the epoch: for stamps that leave the process."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Return a clock in milliseconds that never goes back: for durations and deadlines."""
    return time.monotonic_ns() // 1_000_000
