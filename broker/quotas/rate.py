"""How much one bucket has moved lately, and for how long it has to rest. Pure.

Windows of Kafka's `quota.window.num` and `quota.window.size.seconds`: ten whole ones of a second,
and the one that has begun. Times are milliseconds of one monotonic clock.
"""

from collections import deque
from typing import Final

WINDOWS: Final = 11
WINDOW_MS: Final = 1_000
MOST_MS: Final = 2**31 - 1
"""The longest rest that an answer can name; a quota may be as small as a number can be."""


class SampledRate:
    """Bytes, or whatever else a quota counts, by window."""

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: deque[tuple[int, float]] = deque()

    def record(self, size: float, now_ms: int) -> None:
        """Count what was moved."""
        self._forget(now_ms)
        if self._windows and now_ms - self._windows[-1][0] < WINDOW_MS:
            began_ms, so_far = self._windows.pop()
            self._windows.append((began_ms, so_far + size))
        else:
            self._windows.append((now_ms, size))

    def rest_ms(self, limit: float, now_ms: int) -> int:
        """Return that part of the time of the mean by which it is above the limit, 0 where below.

        The mean is of ten seconds at least (Kafka's Rate.windowSize), so a client may begin with as
        much as ten seconds allow. After eleven seconds that is forgotten: whoever moves much at
        once and rests long may move more than the limit, as with Kafka (QuotaUtils.throttleTime).
        """
        self._forget(now_ms)
        if not self._windows:
            return 0
        elapsed_ms = now_ms - self._windows[0][0]
        full_windows = elapsed_ms // WINDOW_MS
        elapsed_ms += max(0, WINDOWS - 1 - full_windows) * WINDOW_MS
        moved = sum(size for _, size in self._windows)
        return max(0, round(min(moved * 1_000 / limit, MOST_MS)) - elapsed_ms)

    def is_idle(self, now_ms: int) -> bool:
        """Say whether nothing counts any more."""
        self._forget(now_ms)
        return not self._windows

    def _forget(self, now_ms: int) -> None:
        while self._windows and now_ms - self._windows[0][0] >= WINDOWS * WINDOW_MS:
            self._windows.popleft()
