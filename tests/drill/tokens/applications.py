"""A producer and a consumer that follow the active site, and a reader of the target.

Each runs in a thread of its own, and only appends to its lists.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from failover.client import SiteConsumer, SiteProducer
from runtime.process.clock import wall_ms
from tests.drill.tokens.arrivals import Arrival
from tests.drill.tokens.stage import TOPIC

PARTITIONS: Final = 4
EVERY_S: Final = 0.02
FLUSH_S: Final = 60.0
GROUP: Final = "drilled-group"


@dataclass(slots=True, kw_only=True)
class Applications:
    """What they were told."""

    file: Path
    target: Mapping[str, Any]
    """Settings of a plain client of the target."""
    acked: list[str] = field(default_factory=list)
    delivered: list[Arrival] = field(default_factory=list)
    mirrored: list[Arrival] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """Errors that any of the clients has told of."""
    _no_more: Event = field(default_factory=Event)
    _ended: Event = field(default_factory=Event)
    _futures: list[Future[None]] = field(default_factory=list)

    def stop_writing(self) -> None:
        """Have no more records written; those that were are read on."""
        self._no_more.set()

    def raise_faults(self) -> None:
        """Raise what has ended one of them."""
        for future in self._futures:
            if future.done():
                future.result()

    def follow(self) -> None:
        """Produce to whichever site is active."""
        settings = {"log_level": 0, "error_cb": partial(self._complain, "producer")}
        with SiteProducer(self.file, producer_config=settings) as producer:
            number = 0
            while not self._no_more.wait(EVERY_S):
                told = partial(self._tell, f"{number}")
                producer.produce(TOPIC, f"{number}", f"{number % 100}", on_delivery=told)
                producer.poll(0)
                number += 1
            producer.flush(FLUSH_S)

    def consume(self) -> None:
        """Read as a member of the group that follows the active site."""
        settings = {
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
            "log_level": 0,
            "error_cb": partial(self._complain, "consumer"),
        }
        with SiteConsumer(self.file, GROUP, [TOPIC], consumer_config=settings) as consumer:
            while not self._ended.is_set():
                self._take("consumer", self.delivered, consumer.poll(0.2))

    def watch_target(self) -> None:
        """Read all that comes to the target, by whichever hand."""
        consumer = Consumer(
            {
                **self.target,
                "group.id": "watching",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
                "error_cb": partial(self._complain, "reader of the target"),
            }
        )
        consumer.assign(
            [TopicPartition(TOPIC, index, OFFSET_BEGINNING) for index in range(PARTITIONS)]
        )
        while not self._ended.is_set():
            self._take("reader of the target", self.mirrored, consumer.poll(0.2))
        consumer.close()

    def _take(self, who: str, arrivals: list[Arrival], message: Message | None) -> None:
        if message is None:
            return
        fault = message.error()
        if fault is not None:
            self._complain(who, fault)
            return
        _, sent_ms = message.timestamp()
        value = (message.value() or b"").decode()
        arrivals.append(Arrival(value=value, sent_s=sent_ms / 1_000, at_s=wall_ms() / 1_000))

    def _tell(self, value: str, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.acked.append(value)
        else:
            self._complain(f"record {value}", error)

    def _complain(self, who: str, error: KafkaError) -> None:
        self.complaints.append(f"{wall_ms()} {who}: {error.str()}")


@contextmanager
def run_applications(file: Path, target: Mapping[str, Any]) -> Iterator[Applications]:
    """Run all of them until the block ends."""
    them = Applications(file=file, target=target)
    work: list[Callable[[], None]] = [them.follow, them.consume, them.watch_target]
    with ThreadPoolExecutor(len(work)) as threads:
        them._futures += [threads.submit(one) for one in work]
        try:
            yield them
        finally:
            them._no_more.set()
            them._ended.set()
    them.raise_faults()
