"""Applications that follow the active site, or stay on one site and try whether it takes records.

Each runs in a thread of its own, and only appends to its lists.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from failover.client import SiteConsumer, SiteProducer
from runtime.process.clock import wall_ms
from tests.drill.failover.story import FOLLOWER, Acked, Forwarded, Read
from tests.drill.failover.subject import WHOLE, Subject
from wire.topic_partition import TopicPartition

EACH_COMPACTED: Final = 4
"""Of so many records one goes to the compacted topic."""
KEYS: Final = 7
BEHIND_ENDPOINTS: Final[Mapping[str, Any]] = {
    "reconnect.backoff.max.ms": 1_000,
    "topic.metadata.refresh.interval.ms": 2_000,
    "log_level": 0,
}
READING: Final[Mapping[str, Any]] = {
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6_000,
    "auto.commit.interval.ms": 500,
    "log_level": 0,
}
EVERY_S: Final = 0.05
PINNED_EVERY_S: Final = 0.25
PINNED_WITHIN_MS: Final = 3_000
SETTLED_S: Final = 60.0
ENDED_S: Final = 5.0
"""So long a producer that has ended may take to say what became of its records."""


@dataclass(slots=True, kw_only=True)
class Applications:
    """What they were told; `file` is their configuration, `sites` settings of plain clients.

    `endpoints` are settings of clients behind those, None where there are none. Those that follow
    the active site write a record each `every_s`.
    """

    file: Path
    sites: Mapping[str, Mapping[str, Any]]
    endpoints: Mapping[str, Any] | None = None
    subject: Subject = WHOLE
    every_s: float = EVERY_S
    forwarded: list[Forwarded] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """What became of records that a producer behind an endpoint has given up."""
    acked: list[Acked] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    _quiet: Event = field(default_factory=Event)
    _may_try: Event = field(default_factory=Event)
    _ended: Event = field(default_factory=Event)
    _plain_site: str | None = None
    _plain_until: float = inf
    _open: dict[str, int] = field(default_factory=dict)
    _futures: list[Future[None]] = field(default_factory=list)

    def rest(self) -> bool:
        """Write nothing more until `go_on`; False where records stay open for a minute."""
        self._quiet.set()
        deadline = monotonic() + SETTLED_S
        while any(self._open.values()):
            self.raise_faults()
            if monotonic() > deadline:
                return False
            self._ended.wait(0.1)
        return True

    def try_both_sites(self) -> None:
        """Let the producers begin that stay on one site: the standby is closed."""
        self._may_try.set()

    def go_on(self) -> None:
        """Write again."""
        self._quiet.clear()

    def raise_faults(self) -> None:
        """Raise what has ended one of them."""
        for future in self._futures:
            if future.done():
                future.result()

    def follow(self) -> None:
        """Produce to whichever site is active; a record that waits is taken by some site."""
        settings, of_set = {"log_level": 0}, self.subject.topic_set
        with SiteProducer(self.file, producer_config=settings, topic_set=of_set) as producer:
            number = 0

            def site_of() -> str:
                return producer.site

            while not self._ended.is_set():
                if not self._quiet.is_set() and len(producer) < 100:
                    self._open["follower"] = 1
                    told = partial(self._tell, wall_ms(), f"f{number}", FOLLOWER, site_of)
                    subject = self.subject
                    topic = subject.topic if number % EACH_COMPACTED else subject.compacted
                    value, key = f"f{number}", f"{number % KEYS}"
                    producer.produce(topic, value, key, on_delivery=told)
                    number += 1
                producer.poll(0)
                self._open["follower"] = len(producer)
                self._ended.wait(self.every_s)
            producer.flush(SETTLED_S)

    def stay(self, site: str) -> None:
        """Produce to one site, whichever is active; what it refuses is not tried again."""
        settings = {
            **self.sites[site],
            "acks": "all",
            "retries": 0,
            "message.timeout.ms": PINNED_WITHIN_MS,
            "log_level": 0,
        }
        producer = Producer(settings)
        number = 0
        while not self._ended.is_set():
            if self._may_try.is_set() and not self._quiet.is_set():
                value = f"{site}-{number}"
                told = partial(self._tell, wall_ms(), value, f"pinned to {site}", lambda: site)
                with suppress(KafkaException):  # the topic is not on this site yet: refused as well
                    if number % EACH_COMPACTED:
                        topic = self.subject.topic
                        producer.produce(topic, value, b"pinned", number % 2, on_delivery=told)
                    else:
                        key = f"{number % KEYS}"
                        topic = self.subject.compacted
                        producer.produce(topic, value, key, 0, on_delivery=told)
                number += 1
            producer.poll(0)
            self._open[site] = len(producer)
            self._ended.wait(PINNED_EVERY_S)
        producer.flush(SETTLED_S)

    def consume(self) -> None:
        """Read as a member of the group that follows the active site."""
        own = self.subject
        with SiteConsumer(
            self.file,
            own.group,
            [own.topic],
            consumer_config={**READING},
            topic_set=own.topic_set,
        ) as consumer:
            while not self._ended.is_set():
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    self.reads.append(_read_of(own.group, consumer.site, message))

    def consume_plainly(self) -> None:
        """Read as a plain consumer of whichever site somebody starts it on, until it is stopped."""
        own = self.subject
        while not self._ended.is_set():
            site = self._plain_site
            if site is None:
                self._ended.wait(0.1)
                continue
            consumer = Consumer({**self.sites[site], **READING, "group.id": own.plain_group})
            consumer.subscribe([own.topic])
            try:
                while self._is_plain_on(site):
                    message = consumer.poll(0.2)
                    if message is not None and message.error() is None:
                        self.reads.append(_read_of(own.plain_group, site, message))
            finally:
                consumer.close()

    def produce_behind_endpoints(self) -> None:
        """Produce as an unmodified client, which knows of no sites."""
        settings = {**(self.endpoints or {}), **BEHIND_ENDPOINTS, "enable.idempotence": True}
        producer = Producer(settings)
        number = 0
        while not self._ended.is_set():
            if self._may_try.is_set() and not self._quiet.is_set() and len(producer) < 100:
                self._open["forwarded"] = 1
                told = partial(self._tell_forwarded, wall_ms(), f"w{number}")
                topic, value, key = self.subject.topic, f"w{number}", f"{number % KEYS}"
                try:
                    producer.produce(topic, value, key, on_delivery=told)
                except KafkaException as ended:  # as an application does, which goes on
                    self.failed.append(f"{value}: the producer has ended: {ended}")
                    producer.purge()
                    producer.flush(ENDED_S)
                    producer = Producer(settings)
                number += 1
            producer.poll(0)
            self._open["forwarded"] = len(producer)
            self._ended.wait(self.every_s)
        producer.flush(SETTLED_S)

    def _tell_forwarded(
        self, sent_ms: int, value: str, error: KafkaError | None, message: Message
    ) -> None:
        if error is not None:
            self.failed.append(f"{value}: {error}")
            return
        where, offset = place_of(message)
        one = Forwarded(sent_ms=sent_ms, partition=where, offset=offset, value=value)
        self.forwarded.append(one)

    def consume_behind_endpoints(self) -> None:
        """Read as an unmodified member of a group."""
        own = self.subject
        often = {"heartbeat.interval.ms": 1_000, "group.id": own.forwarded_group}
        settings = {**(self.endpoints or {}), **BEHIND_ENDPOINTS, **READING, **often}
        consumer = Consumer(settings)
        consumer.subscribe([own.topic])
        while not self._ended.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.reads.append(_read_of(own.forwarded_group, "an endpoint's", message))
        consumer.close()

    def start_plain(self, site: str | None) -> None:
        """Have the plain consumer work on this site alone; None stops it."""
        self._plain_until = inf
        self._plain_site = site

    def stop_plain_after(self, seconds: float) -> None:
        """Have the plain consumer stop somewhat later."""
        self._plain_until = monotonic() + seconds

    def _is_plain_on(self, site: str) -> bool:
        if monotonic() > self._plain_until:
            self._plain_site = None
        return self._plain_site == site and not self._ended.is_set()

    def wait_taken(self, site: str, within_s: float) -> bool:
        """Tell whether the site takes a record that is sent to it from now on."""
        from_ms, deadline = wall_ms(), monotonic() + within_s
        while monotonic() < deadline:
            self.raise_faults()
            if any(one.site == site and one.sent_ms >= from_ms for one in self.acked[-20:]):
                return True
            self._ended.wait(0.1)
        return False

    def _tell(
        self,
        sent_ms: int,
        value: str,
        who: str,
        site_of: Callable[[], str],
        error: KafkaError | None,
        message: Message,
    ) -> None:
        if error is None:
            self.note(sent_ms, value, who, site_of(), message)

    def note(self, sent_ms: int, value: str, who: str, site: str, message: Message) -> None:
        """Keep an acknowledgement."""
        where, offset = place_of(message)
        self.acked.append(
            Acked(
                sent_ms=sent_ms,
                at_ms=wall_ms(),
                who=who,
                site=site,
                partition=where,
                offset=offset,
                value=value,
            )
        )


@contextmanager
def run_applications(
    file: Path,
    sites: Mapping[str, Mapping[str, Any]],
    endpoints: Mapping[str, Any] | None,
    subject: Subject,
    *,
    every_s: float = EVERY_S,
) -> Iterator[Applications]:
    """Run all of them until the block ends."""
    them = Applications(
        file=file, sites=sites, endpoints=endpoints, subject=subject, every_s=every_s
    )
    work: list[Callable[[], None]] = [them.follow, them.consume, them.consume_plainly]
    work += [partial(them.stay, site) for site in sites]
    if endpoints is not None:
        work += [them.produce_behind_endpoints, them.consume_behind_endpoints]
    with ThreadPoolExecutor(len(work)) as threads:
        them._futures += [threads.submit(one) for one in work]
        try:
            yield them
        finally:
            them._ended.set()
    them.raise_faults()


def place_of(message: Message) -> tuple[TopicPartition, int]:
    """Return where a message lies that was delivered."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return TopicPartition(topic, partition), offset


def _read_of(group: str, site: str, message: Message) -> Read:
    where, offset = place_of(message)
    value = (message.value() or b"").decode()
    return Read(
        group=group, at_ms=wall_ms(), site=site, partition=where, offset=offset, value=value
    )
