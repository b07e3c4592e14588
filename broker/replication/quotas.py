"""Throttles of replication (KIP-73): how many bytes a second throttled replicas may move. Pure.

    leader.replication.throttled.replicas     of a topic: whose copies leave slowly, by broker
    follower.replication.throttled.replicas   of a topic: whose copies arrive slowly, by broker
    leader., follower.replication.throttled.rate     of a broker: bytes a second, for each way

Rules of Kafka's ReplicationQuotaManager. Replicas in sync are counted and never held back, so that
a throttle cannot shrink an ISR. Times are milliseconds of one monotonic clock, given as arguments.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

WINDOWS: Final = 11
"""replication.quota.window.num"""
WINDOW_MS: Final = 1_000
"""replication.quota.window.size.seconds"""
UNLIMITED: Final = 2**63 - 1


class ReplicationQuota:
    """The bytes that went one way in the last eleven seconds, and how many may go a second."""

    def __init__(self, rate: int = UNLIMITED) -> None:
        self.rate = rate
        self._windows: deque[tuple[int, int]] = deque()

    def record(self, size: int, now_ms: int) -> None:
        """Count bytes of a throttled replica."""
        self._forget(now_ms)
        if self._windows and now_ms - self._windows[-1][0] < WINDOW_MS:
            began_ms, so_far = self._windows.pop()
            self._windows.append((began_ms, so_far + size))
        else:
            self._windows.append((now_ms, size))

    def is_exceeded(self, now_ms: int) -> bool:
        """Say whether more went than may: the mean since the oldest window that counts."""
        if self.rate == UNLIMITED:
            return False
        self._forget(now_ms)
        if not self._windows:
            return False
        elapsed_ms = max(now_ms - self._windows[0][0], WINDOW_MS)
        return sum(size for _, size in self._windows) * 1000 > self.rate * elapsed_ms

    def _forget(self, now_ms: int) -> None:
        while self._windows and now_ms - self._windows[0][0] >= WINDOWS * WINDOW_MS:
            self._windows.popleft()


@dataclass(slots=True)
class ReplicationQuotas:
    """Both ways of one broker."""

    leader: ReplicationQuota = field(default_factory=ReplicationQuota)
    follower: ReplicationQuota = field(default_factory=ReplicationQuota)


def is_throttled(replicas: Collection[str], partition: int, broker_id: int) -> bool:
    """Say whether a setting of throttled replicas names this one."""
    return bool(replicas) and ("*" in replicas or f"{partition}:{broker_id}" in replicas)
