"""How many partitions a client may create and delete (KIP-599): a bucket of tokens. Pure.

A bucket holds what eleven seconds allow (Kafka's `controller.quota.window.num` windows of
`controller.quota.window.size.seconds`), and fills with time. A change is begun while a bucket is
not below zero, and may bring it there: then its client has to wait until it is at zero again. Times
are milliseconds of one monotonic clock.
"""

import math
from typing import Final

from broker.quotas.rate import MOST_MS

SECONDS_AT_ONCE: Final = 11


class TokenBucket:
    """What is left to a client. `limit` is the quota as it is now, in partitions a second."""

    __slots__ = ("_limit", "_tokens", "_updated_ms")

    def __init__(self, limit: float, now_ms: int) -> None:
        self._limit = limit
        self._tokens = limit * SECONDS_AT_ONCE
        self._updated_ms = now_ms

    def take(self, partitions: int, limit: float, now_ms: int) -> None:
        """Count a change."""
        self._fill(limit, now_ms)
        self._tokens -= partitions

    def rest_ms(self, limit: float, now_ms: int) -> int:
        """Return after how long a change may be begun again, 0 for now."""
        self._fill(limit, now_ms)
        return math.ceil(min(max(0.0, -self._tokens) / limit * 1_000, MOST_MS))

    def is_full(self, now_ms: int) -> bool:
        """Say whether it is like a new one, by the quota that it had last."""
        self._fill(self._limit, now_ms)
        return self._tokens >= self._limit * SECONDS_AT_ONCE

    def _fill(self, limit: float, now_ms: int) -> None:
        self._limit = limit
        elapsed_ms = max(0, now_ms - self._updated_ms)
        gained = elapsed_ms * limit / 1_000
        self._tokens = min(limit * SECONDS_AT_ONCE, self._tokens + gained)
        self._updated_ms = max(self._updated_ms, now_ms)


class MutationQuota:
    """What one request may change of the cluster.

    Clients of older versions do not know THROTTLING_QUOTA_EXCEEDED: theirs is done, and they rest.
    """

    def __init__(
        self, bucket: TokenBucket | None, limit: float, *, is_strict: bool, now_ms: int
    ) -> None:
        self._bucket = bucket
        self._limit = limit
        self._is_strict = is_strict
        self._now_ms = now_ms
        self.throttle_ms = 0

    @property
    def is_limited(self) -> bool:
        """Whether there is a quota at all."""
        return self._bucket is not None

    def takes(self, partitions: int) -> bool:
        """Count a change that is about to be made; False where it is not to be made now."""
        if self._bucket is None:
            return True
        if self._is_strict:
            rest_ms = self._bucket.rest_ms(self._limit, self._now_ms)
            if rest_ms:
                self.throttle_ms = max(self.throttle_ms, rest_ms)
                return False
            self._bucket.take(partitions, self._limit, self._now_ms)
            return True
        self._bucket.take(partitions, self._limit, self._now_ms)
        self.throttle_ms = self._bucket.rest_ms(self._limit, self._now_ms)
        return True
