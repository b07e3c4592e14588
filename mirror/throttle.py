"""Throttles: how fast a flow and each of its topics may read, in bytes per second. Pure.

A bucket fills at its rate, up to one second's worth, and a fetch may overdraw it: what was fetched
is known only afterwards. While a bucket is empty nothing more is asked for.
"""

import re
from dataclasses import dataclass
from typing import Final

from runtime.flow_section import ThrottleConfig

BURST_MS: Final = 1_000
LEAST_CHUNK_BYTES: Final = 16 * 1024


@dataclass(slots=True)
class Bucket:
    """Bytes that may be fetched; below zero they were fetched in advance."""

    bytes_per_second: int
    level: float
    at_ms: int

    def fill(self, now_ms: int) -> None:
        """Let time pass; a clock that goes back fills nothing."""
        gained = max(0, now_ms - self.at_ms) * self.bytes_per_second / 1_000
        full = self.bytes_per_second * BURST_MS / 1_000
        self.level = min(full, self.level + gained)
        self.at_ms = now_ms

    def wait_ms(self, now_ms: int) -> float:
        """Return how long until something may be fetched; 0 for now."""
        self.fill(now_ms)
        return 0.0 if self.level > 0 else -self.level * 1_000 / self.bytes_per_second + 1


class Throttle:
    """The buckets of one flow."""

    def __init__(self, config: ThrottleConfig, now_ms: int) -> None:
        """Begin with full buckets."""
        self._config = config
        self._flow = _bucket(config.flow, now_ms)
        self._topics: dict[str, Bucket | None] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nothing is throttled at all."""
        return self._flow is None and not self._config.topics

    def wait_ms(self, topic: str | None, now_ms: int) -> float:
        """Return how long the flow, or one topic of it, has to wait; 0 for not at all."""
        bucket = self._flow if topic is None else self._of(topic, now_ms)
        return 0.0 if bucket is None else bucket.wait_ms(now_ms)

    def spend(self, topic: str, size: int, now_ms: int) -> None:
        """Take note of fetched bytes."""
        for bucket in (self._flow, self._of(topic, now_ms)):
            if bucket is not None:
                bucket.fill(now_ms)
                bucket.level -= size

    def chunk_bytes(self, topic: str | None, most: int) -> int:
        """Return how much to ask for at once: with a low rate little, lest it goes by jumps."""
        bucket = self._flow if topic is None else self._topics.get(topic)
        if bucket is None:
            return most
        return min(most, max(LEAST_CHUNK_BYTES, bucket.bytes_per_second // 4))

    def _of(self, topic: str, now_ms: int) -> Bucket | None:
        if topic not in self._topics:
            rates = (rate for pattern, rate in self._config.topics if _is(pattern, topic))
            self._topics[topic] = _bucket(next(rates, None), now_ms)
        return self._topics[topic]


def _bucket(bytes_per_second: int | None, now_ms: int) -> Bucket | None:
    if bytes_per_second is None:
        return None
    return Bucket(bytes_per_second, bytes_per_second * BURST_MS / 1_000, now_ms)


def _is(pattern: str, topic: str) -> bool:
    return re.fullmatch(pattern, topic) is not None
