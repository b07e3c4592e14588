"""Deadlines by name. Setting one anew, as each heartbeat does, costs little."""

from enum import StrEnum
from heapq import heappop, heappush
from typing import NamedTuple


class TimerKind(StrEnum):
    """What happens at a deadline unless it is put off."""

    SESSION = "a member has not been heard of"
    REVOCATION = "a member has not given up its partitions"
    JOIN = "a classic member has not joined again"
    SYNC = "a classic member has not asked for its assignment"
    DOWNGRADE = "a group has become classic, and has to rebalance"


class Timer(NamedTuple):
    """Names one deadline; `member_id` is empty where the group as a whole is meant."""

    kind: TimerKind
    group_id: str
    member_id: str = ""


class Timers:
    """Every deadline of a shard's groups."""

    __slots__ = ("_due", "_heap", "_queued")

    def __init__(self) -> None:
        self._due: dict[Timer, int] = {}
        self._queued: dict[Timer, int] = {}
        """The earliest entry in the heap; what is put off stays there until that time."""
        self._heap: list[tuple[int, Timer]] = []

    @property
    def next_ms(self) -> int | None:
        """When to look next; it may turn out that nothing is due then."""
        return self._heap[0][0] if self._heap else None

    def set(self, timer: Timer, due_ms: int) -> None:
        """Set a deadline, in place of the one that was set before."""
        self._due[timer] = due_ms
        queued_ms = self._queued.get(timer)
        if queued_ms is None or due_ms < queued_ms:
            self._queued[timer] = due_ms
            heappush(self._heap, (due_ms, timer))

    def is_set(self, timer: Timer) -> bool:
        """Whether there is such a deadline."""
        return timer in self._due

    def cancel(self, timer: Timer) -> None:
        """Let nothing happen."""
        self._due.pop(timer, None)

    def take_due(self, now_ms: int) -> list[Timer]:
        """Return, and no longer hold, what is due by now."""
        due: list[Timer] = []
        while self._heap and self._heap[0][0] <= now_ms:
            queued_ms, timer = heappop(self._heap)
            if self._queued.get(timer) != queued_ms:
                continue
            del self._queued[timer]
            due_ms = self._due.get(timer)
            if due_ms is None:
                continue
            if due_ms <= now_ms:
                del self._due[timer]
                due.append(timer)
            else:
                self.set(timer, due_ms)
        return due
