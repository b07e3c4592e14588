"""For how long a connection is waited for: while bytes move, a late answer is no reason to end it.

A request of megabytes over a slow line takes longer than any timeout that would find a hung broker
soon. So the timeout counts from when the oldest unanswered request had gone out whole, and an
answer that has begun to come counts as moving. Pure; times are seconds of one clock.
"""

from typing import Final, NamedTuple

LOOK: Final = 1 / 4
"""Of the timeout: the interval between looks at a connection that is overdue."""


class Motion(NamedTuple):
    """One look at a connection whose oldest request is unanswered."""

    request: int
    """The correlation id of that request."""
    delivered_bytes: int
    """Of all requests: what the peer's system has acknowledged."""
    received_bytes: int
    """Of all answers."""
    is_delivered: bool
    """Whether the whole request is among the delivered bytes."""
    is_coming: bool
    """Whether a part of the answer is there."""


class Patience:
    """What is known of the motion of one connection that is overdue."""

    __slots__ = ("_last", "_moved_s", "_timeout_s")

    def __init__(self, timeout_s: float) -> None:
        """Wait for so long for an answer after bytes have moved last."""
        self._timeout_s = timeout_s
        self._last: Motion | None = None
        self._moved_s = 0.0

    def begin(self) -> None:
        """Forget earlier looks: another request is the oldest, and has just become overdue."""
        self._last = None

    def look_again_at(self, now_s: float, motion: Motion) -> float | None:
        """Return when to look again; None if nothing moves: the connection is to be given up."""
        last, self._last = self._last, motion
        if last is None:
            if motion.is_delivered and not motion.is_coming:
                return None
            self._moved_s = now_s - (1 - LOOK) * self._timeout_s
        elif motion != last:
            self._moved_s = now_s
            if motion.is_delivered and not last.is_delivered:
                return now_s + self._timeout_s
        elif now_s >= self._moved_s + self._timeout_s:
            return None
        return min(now_s + LOOK * self._timeout_s, self._moved_s + self._timeout_s)
