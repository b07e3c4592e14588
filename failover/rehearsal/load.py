"""The load of a rehearsal: a producer and a group that follow the active site of its set.

They are the clients that applications have (`failover.client`), each in a thread of its own.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import Final

import trio
from confluent_kafka import KafkaError, KafkaException, Message

from failover.client import SiteConsumer, SiteProducer, WitnessUnreachable
from failover.client.partitioner import partition_of
from failover.rehearsal.seen import LoadSeen, Sighting
from runtime.configuration.config import Configuration
from runtime.configuration.topic_sets import REHEARSAL_GROUP, REHEARSAL_TOPIC
from runtime.process.clock import monotonic_ms
from runtime.process.tasks import background_tasks

_LOG = logging.getLogger(__name__)

MOST_WAITING: Final = 1_000
"""So many records wait for a site at most; behind that the load pauses."""
SLICE_S: Final = 0.05
LAST_RECORDS_S: Final = 60.0
"""So long the last records are waited for."""
CLOSE_S: Final = 20.0
"""So long a client may take to leave; one that hangs goes with the process."""
COMMIT_EVERY_MS: Final = 500
SESSION_MS: Final = 6_000
"""The shortest that brokers take: a member that was killed keeps the next promotion waiting."""
QUIET: Final = {"log_level": 0}
LOOK_S: Final = 0.05


class LoadFailed(Exception):
    """The load cannot go on; the message says why."""


def keys_for(partition_count: int) -> list[bytes]:
    """Return a key of each partition, in their order."""
    found: dict[int, bytes] = {}
    number = 0
    while len(found) < partition_count:
        key = b"%d" % number
        found.setdefault(partition_of(key, partition_count, 0), key)
        number += 1
    return [found[partition] for partition in range(partition_count)]


@dataclass(slots=True)
class RehearsalLoad:
    """One load, running; `seen` is what it has seen until now."""

    configuration: Configuration
    """Of the set of rehearsals."""
    partition_count: int
    records_per_second: int
    seen: LoadSeen
    fault: str | None = None
    """Why a client has given up; None while both are at work."""
    _stop_writing: Event = field(default_factory=Event)
    _stop_reading: Event = field(default_factory=Event)

    def write(self) -> None:
        """Write until told to stop, then until everything is settled; runs in a thread."""
        keys = keys_for(self.partition_count)
        pause_s = 1 / self.records_per_second
        with SiteProducer(self.configuration, producer_config=QUIET) as producer:
            due_s = monotonic()
            while not self._stop_writing.is_set():
                now_s = monotonic()
                if now_s < due_s or len(producer) >= MOST_WAITING:
                    producer.poll(min(SLICE_S, max(0.0, due_s - now_s)))
                    continue
                self._send(producer, keys)
                due_s = max(due_s + pause_s, now_s)
            until_s = monotonic() + LAST_RECORDS_S
            while self.seen.unsettled and monotonic() < until_s:
                producer.poll(SLICE_S)
            producer.close(0)

    def _send(self, producer: SiteProducer, keys: list[bytes]) -> None:
        number, value = self.seen.next_value()

        def settled(error: KafkaError | None, _: Message) -> None:
            if error is None:
                self.seen.acknowledged.append(Sighting(monotonic_ms(), producer.site, number))
            else:
                self.seen.refused.append(str(error))

        producer.produce(REHEARSAL_TOPIC, value, keys[number % len(keys)], on_delivery=settled)

    def read(self) -> None:
        """Read and commit until told to stop; runs in a thread."""
        settings = {
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": COMMIT_EVERY_MS,
            "session.timeout.ms": SESSION_MS,
            **QUIET,
        }
        with SiteConsumer(
            self.configuration, REHEARSAL_GROUP, [REHEARSAL_TOPIC], consumer_config=settings
        ) as consumer:
            while not self._stop_reading.is_set():
                for number in self._numbers(consumer.consume(500, SLICE_S)):
                    self.seen.delivered.append(Sighting(monotonic_ms(), consumer.site, number))

    def _numbers(self, messages: list[Message]) -> Iterator[int]:
        for message in messages:
            error = message.error()
            if error is not None:
                _LOG.warning("the canary group: %s", error)
                continue
            value = message.value()
            number = self.seen.number_of(value if isinstance(value, bytes) else None)
            if number is not None:
                yield number

    async def wait_both_on(self, site: str, patience_ms: int) -> None:
        """Wait until records have been written to and read from a site, or for so long.

        Raises LoadFailed where a client has given up.
        """
        with trio.move_on_after(patience_ms / 1_000):
            while self.seen.sites_seen() != (site, site):
                self.require_at_work()
                await trio.sleep(LOOK_S)

    async def last(self, duration_ms: int) -> None:
        """Let the load go on for a while; raises LoadFailed."""
        until_ms = monotonic_ms() + duration_ms
        while monotonic_ms() < until_ms:
            self.require_at_work()
            await trio.sleep(LOOK_S)

    async def finish(self) -> None:
        """Write nothing more, and wait until all that was acknowledged has been read, or long."""
        self._stop_writing.set()
        with trio.move_on_after(LAST_RECORDS_S):
            while self.seen.unsettled or self._unread():
                self.require_at_work()
                await trio.sleep(LOOK_S)

    def _unread(self) -> bool:
        handed_out = {one.number for one in self.seen.delivered}
        return any(one.number not in handed_out for one in self.seen.acknowledged)

    def require_at_work(self) -> None:
        """Raise LoadFailed where a client has given up."""
        if self.fault is not None:
            raise LoadFailed(self.fault)

    def stop(self) -> None:
        """Have both clients leave."""
        self._stop_writing.set()
        self._stop_reading.set()


@asynccontextmanager
async def run_load(
    configuration: Configuration, *, partition_count: int, records_per_second: int, run: str
) -> AsyncIterator[RehearsalLoad]:
    """Write and read until the block ends; what keeps a client from it is in `fault`."""
    load = RehearsalLoad(
        configuration=configuration,
        partition_count=partition_count,
        records_per_second=records_per_second,
        seen=LoadSeen(run=run),
    )
    ended = trio.Semaphore(0)

    async def work(what: str, act: Callable[[], None]) -> None:
        try:
            await trio.to_thread.run_sync(act, abandon_on_cancel=True)
        except (KafkaException, WitnessUnreachable) as error:
            load.fault = f"{what}: {error}"
        finally:
            ended.release()

    async with background_tasks() as tasks:
        tasks.start_soon(work, "the load's producer", load.write)
        tasks.start_soon(work, "the canary group", load.read)
        try:
            yield load
        finally:
            load.stop()
            with trio.move_on_after(CLOSE_S, shield=True):
                await ended.acquire()
                await ended.acquire()
