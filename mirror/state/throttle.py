"""Throttles: how fast a flow and each of its topics may read, in bytes per second. Pure.

A bucket fills at its rate, up to one second's worth. A fetch may overdraw it, because the size of
an answer is known only afterwards. While a bucket is empty nothing more is asked for. Workers that
share a flow share its rates: each has a portion, and all portions together are no more than the
whole.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from runtime.configuration.flow_section import ThrottleConfig
from wire.topic_partition import TopicPartition
from wire.values import frozen

BURST_MS: Final = 1_000
LEAST_CHUNK_BYTES: Final = 16 * 1024


@frozen
class Portion:
    """The part of the rates that one worker has."""

    flow: float = 1.0
    topics: Mapping[str, float] = field(default_factory=dict)
    """By topic; of one that is not there, all."""

    def of(self, topic: str) -> float:
        """Return the part of a topic's rate."""
        return self.topics.get(topic, 1.0)


WHOLE: Final = Portion()


def portion_of(worker: str, holders: Mapping[TopicPartition, str]) -> Portion:
    """Return the part of the rates that a worker has, by the assignment of partitions.

    Workers that mirror something have equal parts of the flow's rate, as they carry about the same
    (mirror.workers.assignment). Of a topic's rate each has as many parts as it has of the topic's
    partitions.
    """
    workers = set(holders.values())
    if worker not in workers:
        return WHOLE  # it mirrors nothing: nothing is spent
    whole = Counter(topic for topic, _ in holders)
    own = Counter(topic for (topic, _), holder in holders.items() if holder == worker)
    topics = {topic: count / whole[topic] for topic, count in own.items()}
    return Portion(flow=1 / len(workers), topics=topics)


@dataclass(slots=True)
class ByteBucket:
    """Bytes that may be fetched; below zero they were fetched in advance."""

    bytes_per_second: float
    level: float
    at_ms: int

    def fill(self, now_ms: int) -> None:
        """Let time pass; a clock that goes back fills nothing."""
        gained = max(0, now_ms - self.at_ms) * self.bytes_per_second / 1_000
        full = self.bytes_per_second * BURST_MS / 1_000
        self.level = min(full, self.level + gained)
        self.at_ms = now_ms

    def take(self, ratio: float, now_ms: int) -> None:
        """Fill at another rate from now on."""
        self.fill(now_ms)
        self.bytes_per_second *= ratio
        self.level = min(self.level, self.bytes_per_second * BURST_MS / 1_000)

    def wait_ms(self, now_ms: int) -> float:
        """Return how long until something may be fetched; 0 for now."""
        self.fill(now_ms)
        return 0.0 if self.level > 0 else -self.level * 1_000 / self.bytes_per_second + 1


class Throttle:
    """The buckets of one flow."""

    __slots__ = ("_config", "_flow", "_portion", "_topics")

    def __init__(self, config: ThrottleConfig, now_ms: int, portion: Portion = WHOLE) -> None:
        self._config = config
        self._portion = portion
        self._flow = _bucket(config.flow, portion.flow, now_ms)
        self._topics: dict[str, ByteBucket | None] = {}

    def limit_to(self, config: ThrottleConfig, now_ms: int) -> None:
        """Go on at other rates, beginning with full buckets."""
        if config == self._config:
            return
        self._config = config
        self._flow = _bucket(config.flow, self._portion.flow, now_ms)
        self._topics.clear()

    def take(self, portion: Portion, now_ms: int) -> None:
        """Go on at another part of the rates; what was fetched in advance stays so."""
        if portion == self._portion:
            return
        before, self._portion = self._portion, portion
        if self._flow is not None:
            self._flow.take(portion.flow / before.flow, now_ms)
        for topic, bucket in self._topics.items():
            if bucket is not None:
                bucket.take(portion.of(topic) / before.of(topic), now_ms)

    @property
    def portion(self) -> Portion:
        """What part of the rates is this worker's."""
        return self._portion

    @property
    def is_idle(self) -> bool:
        """Whether nothing is throttled at all."""
        return self._flow is None and not self._config.topics

    def wait_ms(self, topic: str | None, now_ms: int) -> float:
        """Return how long the flow, or one topic of it, has to wait; 0 for not at all."""
        bucket = self._flow if topic is None else self._of(topic, now_ms)
        return 0.0 if bucket is None else bucket.wait_ms(now_ms)

    def wait_s(self, topics: Iterable[str], now_ms: int) -> float:
        """Return how long until one of these topics may be fetched, in seconds; 0.05 at least."""
        soonest = min((self.wait_ms(topic, now_ms) for topic in topics), default=1_000.0)
        return max(0.05, soonest / 1_000, self.wait_ms(None, now_ms) / 1_000)

    def spend(self, topic: str, size: int, now_ms: int) -> None:
        """Take note of fetched bytes."""
        for bucket in (self._flow, self._of(topic, now_ms)):
            if bucket is not None:
                bucket.fill(now_ms)
                bucket.level -= size

    def chunk_bytes(self, topic: str | None, most: int) -> int:
        """Return how many bytes to ask for at once: few at a low rate, to read steadily."""
        bucket = self._flow if topic is None else self._topics.get(topic)
        if bucket is None:
            return most
        return min(most, max(LEAST_CHUNK_BYTES, int(bucket.bytes_per_second / 4)))

    def _of(self, topic: str, now_ms: int) -> ByteBucket | None:
        if topic not in self._topics:
            rates = (rate for pattern, rate in self._config.topics if _is(pattern, topic))
            self._topics[topic] = _bucket(next(rates, None), self._portion.of(topic), now_ms)
        return self._topics[topic]


def _bucket(whole: int | None, portion: float, now_ms: int) -> ByteBucket | None:
    if whole is None:
        return None
    bytes_per_second = whole * portion
    return ByteBucket(bytes_per_second, bytes_per_second * BURST_MS / 1_000, now_ms)


def _is(pattern: str, topic: str) -> bool:
    return re.fullmatch(pattern, topic) is not None
