"""One confluent-kafka producer at one site, and the records that the site has acknowledged.

It sends in order or not at all (`enable.gapless.guarantee`): once a record was refused it takes no
other one, and is to be stopped. The caller looks up which records have arrived before it goes on
with a new producer.
"""

from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from typing import Any, Final, TypeAlias

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    Message,
    Producer,
)

from failover.client.faults import FATAL, GAP, code_of, reason_of
from failover.client.ledger import Acknowledged, Pending
from failover.client.site_login import SiteLogin, SiteUnreadable
from runtime.configuration.config import ClusterConfig
from wire.topic_partition import TopicPartition

Settled: TypeAlias = Callable[[Pending, KafkaError | None, Message], None]

METADATA_TIMEOUT_S: Final = 2.0
"""Short, because nothing else is served meanwhile, not even a change of the site."""
METADATA_AGE_S: Final = 60.0
NO_RIGHT: Final = KafkaError.TOPIC_AUTHORIZATION_FAILED
"""Apache Kafka's answers where a promotion has closed a topic, and where a right is missing."""


class Sending:
    """Sends to one site until stop(). Callbacks run inside poll()."""

    def __init__(
        self, settings: Mapping[str, Any], cluster: ClusterConfig, settled: Settled
    ) -> None:
        """`settled` hears of every record that the site has acknowledged or refused for good.

        It does not hear of those in `without_right`: the caller has to find out about them.
        Raises LoginUnusable, and KafkaException for settings that are of no use.
        """
        self._settled = settled
        self._is_stopped = False
        self._refused_with: int | None = None
        self.without_right: list[tuple[Pending, KafkaError, Message]] = []
        """Records refused for want of a right, which a fence takes from everybody for a while."""
        self.fault: KafkaException | None = None
        """The fault that keeps librdkafka from sending anything, unless a record was refused."""
        self._partition_counts: dict[str, tuple[int, float]] = {}
        self.acknowledged: dict[TopicPartition, Acknowledged] = {}
        """Per partition, the record that was acknowledged last here."""
        ours = {
            "acks": "all",
            "enable.idempotence": True,
            "enable.gapless.guarantee": True,
            # A record waits until some site takes it; giving up is the application's choice.
            "message.timeout.ms": 0,
        }
        self._login = SiteLogin(cluster, settings)
        self._producer = self._login.open(Producer, **ours)

    @property
    def is_broken(self) -> bool:
        """Tell whether something was refused, which is known here, and nothing more is sent."""
        return self._refused_with is not None or self.fault is not None

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, at most METADATA_AGE_S old.

        Raises SiteUnreadable when the site does not say, or has no such topic.
        """
        known = self._partition_counts.get(topic)
        if known is not None and monotonic() - known[1] < METADATA_AGE_S:
            return known[0]
        try:
            found = self._producer.list_topics(topic, timeout=METADATA_TIMEOUT_S).topics[topic]
        except KafkaException as error:
            raise SiteUnreadable(f"{topic}: {error}") from error
        if found.error is not None:
            raise SiteUnreadable(f"{topic}: {found.error}")
        self._partition_counts[topic] = (len(found.partitions), monotonic())
        return len(found.partitions)

    def send(self, pending: Pending) -> bool:
        """Hand a record to librdkafka; False when its queue is full: poll() and try again.

        False as well when it is broken. Raises KafkaException for one that it never sends, as one
        that is too large.
        """
        if self.is_broken:
            return False
        content = pending.content
        try:
            self._producer.produce(
                pending.topic,
                content.value,
                content.key,
                pending.partition,
                on_delivery=partial(self._on_delivery, pending),
                timestamp=content.timestamp_ms,
                headers=[*content.headers],
            )
        except BufferError:
            return False
        except KafkaException as refusal:
            if code_of(refusal) != FATAL:
                raise
            return False  # poll() is about to say why
        return True

    def poll(self, timeout_s: float) -> int:
        """Serve callbacks; return how many there were, or 0 when it has just broken."""
        self._login.look(self._producer)
        try:
            return self._producer.poll(timeout_s)
        except KafkaException as broken:
            fault = reason_of(broken)
            if not fault.fatal():
                raise
            if fault.code() != GAP:  # behind that comes the record that was refused
                self.fault = broken
            return 0

    def stop(self) -> Producer:
        """Send nothing more; acknowledgements that are already here still count.

        Returns the producer, whose last reference the caller has to drop, which may take a while.
        """
        self.poll(0)
        self._is_stopped = True
        self._producer.purge()
        self.poll(0)  # tells us of what was purged, and librdkafka that somebody knows
        producer = self._producer
        del self._producer
        return producer

    def _on_delivery(self, pending: Pending, error: KafkaError | None, message: Message) -> None:
        if self._is_stopped:
            return  # purged: the record's fate is looked up on the next site
        if error is None:
            offset = message.offset()
            assert offset is not None, "acks=all gives the offset"
            is_stamped = message.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME
            last = Acknowledged(offset, is_stamped)
            self.acknowledged[TopicPartition(pending.topic, pending.partition)] = last
            self._settled(pending, None, message)
            return
        if self._refused_with is None:
            self._refused_with = error.code()
        if error.code() == NO_RIGHT:
            self.without_right.append((pending, error, message))
        elif error.code() == self._refused_with:
            self._settled(pending, error, message)
        # Any other error only says that it came behind what was refused: its fate is open.


def unsent_message(pending: Pending) -> Message:
    """Return a record that was never sent as a delivery callback is given it."""
    content = pending.content
    return Message(
        topic=pending.topic,
        partition=pending.partition,
        key=content.key,
        value=content.value,
        headers=[*content.headers],
        timestamp=(TIMESTAMP_CREATE_TIME, content.timestamp_ms),
    )
