"""A producer that follows the active site, without a restart of the application.

    with SiteProducer("dc.yaml") as producer:
        producer.produce("orders", key=b"17", value=b"...")

It is used like confluent-kafka's Producer, from one thread, and has to be polled as regularly: all
of the following happens inside produce(), poll() and flush().

It is idempotent with acks=all, and keeps every record that no site has acknowledged. When a
promotion is announced it sends nothing new; the old site acknowledges what it still took, and its
fence refuses the rest (Apache Kafka's by taking away the right to write). After the switch each
record of open fate is looked up where it would lie on the new site: in the mirrored part of its
partition, behind the record that was acknowledged last. Those that are there are reported as
delivered; the others are sent again, in their order, byte for byte the same, before any new one. So
nothing is lost or doubled by a planned promotion; when the old site was lost, the only records that
can be missing are those that it alone had acknowledged.

Where brokers of either site give records their own time (`message.timestamp.type=LogAppendTime`),
records are looked up without it, behind a partition's first acknowledgement. If the site is lost
before that acknowledgement, records that the site had already passed on are sent again.

A record never expires by itself (`message.timeout.ms` is 0): it waits for a site that takes it.
"""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message

from failover.client.active_site import ActiveSiteWatch, WitnessUnreachable
from failover.client.faults import reason_of
from failover.client.ledger import (
    Acknowledged,
    Content,
    DeliveryCallback,
    Headers,
    Ledger,
    Pending,
    size_of,
)
from failover.client.open_fate import find_arrived, find_there
from failover.client.partitioner import partition_of
from failover.client.sending import Sending, unsent_message
from failover.client.set_of_client import configuration_of_set, require_one_name
from failover.client.site_login import (
    NOT_YET_TRIED,
    LoginUnusable,
    SiteUnreadable,
    after_failure,
)
from failover.client.site_reader import open_reader
from runtime.configuration.config import Configuration
from runtime.process.clock import wall_ms
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

HeaderInput: TypeAlias = (
    Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]] | None
)
Settlement: TypeAlias = tuple[Pending, KafkaError | None, Message]

BUFFER_BYTES: Final = 64 << 20
FOREVER: Final = float("inf")
SLICE_S: Final = 0.05
RETRY_S: Final = 0.5
SERVE_EVERY_S: Final = 0.005
"""The interval at which a stream of produce() looks for acknowledgements and at the witness."""


class SiteProducer:
    """Sends to whichever site is active."""

    def __init__(
        self,
        config: Path | str | Configuration,
        *,
        producer_config: Mapping[str, Any] | None = None,
        buffer_bytes: int = BUFFER_BYTES,
        topic_set: str | None = None,
    ) -> None:
        """Learn which site is active; nothing is sent yet.

        `producer_config` goes to confluent-kafka, without addresses; transactions are not
        supported, and the partitioner is always Java's. `buffer_bytes` bounds the records that no
        site has acknowledged. `topic_set` names the set of topics that a file with sets needs.
        Raises runtime.configuration.config.ConfigurationError and
        active_site.WitnessUnreachable.
        """
        self._settings = dict(producer_config or {})
        if "transactional.id" in self._settings:
            raise ValueError("transactional.id: transactions cannot follow a site")
        self._configuration = configuration_of_set(config, topic_set)
        self._buffer_bytes = buffer_bytes
        self._ledger = Ledger()
        self._numbers: dict[str, int] = {}
        self._watch = ActiveSiteWatch(self._configuration)
        self._seen = self._watch.current()
        self._site = self._seen.site
        self._acknowledged: dict[TopicPartition, Acknowledged] = {}
        self._to_tell: deque[Settlement] = deque()
        """Settled records of which the application has not been told yet."""
        self._opened_at = 0
        """When sending began, as the witness numbers writes of who is active."""
        self._sending: Sending | None = None
        self._retry_at = 0.0
        self._pause = NOT_YET_TRIED
        try:
            self._open_sending(self._site)
        except BaseException:
            self._watch.close()  # its threads would keep the application from ending
            raise
        self._serve_at = 0.0
        self._is_closed = False
        self._is_following = False

    @property
    def site(self) -> str:
        """Return the site that records are sent to."""
        return self._site

    def __len__(self) -> int:
        """Return the number of records that no site has acknowledged."""
        return len(self._ledger)

    # --- as confluent-kafka's Producer -----------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        *,
        timestamp: int = 0,
        headers: HeaderInput = None,
        on_delivery: DeliveryCallback | None = None,
    ) -> None:
        """Take a record; blocks while the unacknowledged ones fill the buffer.

        The first record of a topic also waits for the active site to tell its partitions.

        `timestamp` is in milliseconds, 0 for now. `on_delivery(error, message)` is called from a
        later produce(), poll() or flush(), once, with the message as the site holds it. Raises
        KafkaException when the record can go nowhere, as one that is too large, and
        ConfigurationError where the topic has another name elsewhere: it is not taken.
        """
        if self._is_closed:
            raise RuntimeError("the producer is closed")
        content = Content(
            key=_to_bytes(key),
            value=_to_bytes(value),
            timestamp_ms=timestamp or wall_ms(),
            headers=_to_headers(headers),
        )
        if monotonic() >= self._serve_at:
            self._serve(0)
        pending = Pending(
            topic=topic,
            partition=self._choose_partition(topic, content.key),
            content=content,
            size=size_of(content),
            on_delivery=on_delivery,
        )
        while self._ledger.total_bytes > 0 and not self._has_room(pending.size):
            self._serve(SLICE_S)
        self._ledger.add(pending)
        self._send_waiting(pending)

    def poll(self, timeout: float = 0) -> int:
        """Serve delivery callbacks for up to `timeout` seconds; return how many there were."""
        deadline = monotonic() + timeout
        while True:
            served = self._serve(max(0.0, min(SLICE_S, deadline - monotonic())))
            if served or monotonic() >= deadline:
                return served

    def flush(self, timeout: float = -1) -> int:
        """Wait until all records are acknowledged (negative: for ever); return what is left."""
        deadline = monotonic() + timeout if timeout >= 0 else FOREVER
        while (len(self._ledger) or self._to_tell) and monotonic() < deadline:
            self._serve(max(0.0, min(SLICE_S, deadline - monotonic())))
        return len(self._ledger)

    def close(self, timeout: float = -1) -> int:
        """Flush, then leave site and witness; return how many records stay unacknowledged."""
        if self._is_closed:
            return len(self._ledger)
        left = self.flush(timeout)
        self._is_closed = True
        self._stop_sending()
        self._watch.close()
        return left

    def __enter__(self) -> Self:
        """Return the producer itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; after an error without waiting for acknowledgements."""
        self.close(-1 if error is None else 0)

    # --- taking records in -----------------------------------------------------------------------

    def _has_room(self, size: int) -> bool:
        return self._ledger.total_bytes + size <= self._buffer_bytes

    def _choose_partition(self, topic: str, key: bytes | None) -> int:
        if topic not in self._numbers:
            require_one_name(self._configuration, [topic])
        number = self._numbers.get(topic, 0)
        self._numbers[topic] = number + 1
        return partition_of(key, self._partition_count(topic), number)

    def _partition_count(self, topic: str) -> int:
        """Ask the active site, for as long as it takes one to answer."""
        while True:
            if self._sending is not None:
                try:
                    return self._sending.partition_count(topic)
                except SiteUnreadable as error:
                    _LOG.warning("the partitions of a topic are not known yet: %s", error)
            self._serve(SLICE_S)

    # --- following the active site ---------------------------------------------------------------

    def _serve(self, timeout_s: float) -> int:
        """Follow the witness, send what may be sent, and serve callbacks."""
        self._serve_at = monotonic() + SERVE_EVERY_S
        self._follow()
        told = self._tell_waiting()
        if self._sending is None:
            self._watch.wait_changed(self._seen, 0 if told else timeout_s)
            return told
        self._send_waiting()
        return told + self._sending.poll(0 if told else timeout_s)

    def _tell_waiting(self) -> int:
        """Call what the application gave us, which may produce() or raise: all else is done."""
        told = 0
        while self._to_tell:
            pending, error, message = self._to_tell.popleft()
            told += 1
            if pending.on_delivery is not None:
                pending.on_delivery(error, message)
        return told

    def _follow(self) -> None:
        """Go where the active site is; not once more from a callback that is told meanwhile."""
        if self._is_following:
            return
        self._is_following = True
        try:
            self._go_on()
        finally:
            self._is_following = False

    def _go_on(self) -> None:
        active = self._watch.current()
        if active != self._seen:
            self._seen, self._retry_at, self._pause = active, 0.0, NOT_YET_TRIED
        if active.site != self._site:
            _LOG.info("site %s is active, leaving %s behind", active.site, self._site)
            self._stop_sending()
        elif self._sending is not None and self._sending.is_broken and active.moving_to is None:
            self._mend(self._sending)
        if self._sending is None:
            self._arrive(active.site)

    def _mend(self, broken: Sending) -> None:
        """Stop sending, to go on with a new producer; the application hears of missing rights.

        But not of those that a fence took away: then the witness has been written to since. Raises
        KafkaException when the site takes nothing from us, whatever it is.
        """
        if broken.without_right or broken.fault is not None:
            if monotonic() < self._retry_at:
                return
            try:
                written_at = self._watch.ask_written_at()
            except WitnessUnreachable as error:
                _LOG.warning("whether a fence or a missing right refused is not known: %s", error)
                self._retry_at = monotonic() + RETRY_S
                return
            if written_at != self._watch.written_at or self._watch.current() != self._seen:
                return  # we are about to hear of it, or just have
            if written_at == self._opened_at:
                self._tell_faults(broken)
        self._stop_sending()

    def _tell_faults(self, broken: Sending) -> None:
        if broken.fault is not None:
            raise broken.fault
        for pending, error, message in broken.without_right:
            self._ledger.remove(pending)
            self._to_tell.append((pending, error, message))

    def _stop_sending(self) -> None:
        if self._sending is not None:
            self._watch.drop_later([self._sending.stop()])
            self._acknowledged = dict(self._sending.acknowledged)
            self._sending = None

    def _arrive(self, site: str) -> None:
        """Begin on a new site: settle the records of open fate, send all others again."""
        if monotonic() < self._retry_at:
            return
        try:
            arrived = self._look_up(site)
        except SiteUnreadable as error:
            self._wait_for(site, error)
            return
        self._site = site
        self._acknowledged = {}
        for pending, message in arrived:
            self._ledger.remove(pending)
            self._to_tell.append((pending, None, message))
        self._ledger.forget_sending()
        _LOG.info(
            "on %s: %d records were there already, %d are sent again",
            site,
            len(arrived),
            len(self._ledger),
        )
        self._open_sending(site)

    def _wait_for(self, site: str, error: SiteUnreadable) -> None:
        _LOG.warning("cannot go on at %s yet: %s", site, error)
        self._pause = after_failure(self._pause, error)
        self._retry_at = self._pause.not_before

    def _look_up(self, site: str) -> list[tuple[Pending, Message]]:
        sent = self._ledger.sent()
        if not sent:
            return []
        with open_reader(self._configuration.clusters[site], self._settings) as reader:
            if site == self._site:
                return find_there(reader, sent, self._acknowledged)
            return find_arrived(reader, self._site, sent, self._acknowledged)

    def _send_waiting(self, newest: Pending | None = None) -> None:
        """Send what waits, in order, unless it is not known where it will have to go.

        Raises KafkaException when `newest` is refused outright; of another one its callback hears.
        """
        if self._sending is None or self._seen.moving_to is not None:
            return
        while (pending := self._ledger.first_unsent()) is not None:
            try:
                is_taken = self._sending.send(pending)
            except KafkaException as refusal:
                self._ledger.note_sent()
                self._ledger.remove(pending)
                if pending is newest:
                    raise
                self._to_tell.append((pending, reason_of(refusal), unsent_message(pending)))
                continue
            if not is_taken:
                return  # librdkafka's queue is full; the rest follows
            self._ledger.note_sent()

    def _open_sending(self, site: str) -> None:
        """Begin to send there, or wait for what it takes to log in."""
        cluster = self._configuration.clusters[site]
        self._opened_at = self._watch.written_at
        try:
            self._sending = Sending(self._settings, cluster, self._settled)
        except LoginUnusable as error:
            self._wait_for(site, error)
        else:
            self._pause = NOT_YET_TRIED

    def _settled(self, pending: Pending, error: KafkaError | None, message: Message) -> None:
        self._ledger.remove(pending)
        if pending.on_delivery is not None:
            pending.on_delivery(error, message)


def _to_bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _to_headers(headers: HeaderInput) -> Headers:
    if headers is None:
        return ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((name, _to_bytes(value)) for name, value in pairs)
