"""Applications at one site: plain, compressed, transactional and keyed records, and a group."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from threading import Event
from typing import Any, Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS: Final = 2
PLAIN, TRANSACTIONAL, KEYED, SHORT = (
    "drilled-plain",
    "drilled-transactional",
    "drilled-keyed",
    "drilled-short",
)
TOPICS: Final[Mapping[str, Mapping[str, str]]] = {
    PLAIN: {},
    TRANSACTIONAL: {},
    KEYED: {
        "cleanup.policy": "compact",
        "segment.bytes": "65536",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "120000",
    },
    SHORT: {"segment.bytes": "65536", "retention.bytes": "2097152"},
}
"""The topics with their settings; the last one's beginning goes all the time, but not as soon as a
mirror on a busy machine falls behind."""
GROUP: Final = "drilled-readers"
KEYS: Final = 3_000
TOMBSTONES: Final = 0.05
ABORTED: Final = 0.2
EACH: Final = 40
"""So many records are sent at a time, and so many belong to a transaction."""
EVERY_S: Final = 0.05
FLUSH_EACH: Final = 50_000
"""So many records wait in a producer at most."""
FLUSH_S: Final = 60.0


def create_topics(client: Mapping[str, Any]) -> None:
    """Create the topics at a site; the mirror makes them at the other."""
    admin = AdminClient({**client, "log_level": 0})
    topics = [NewTopic(name, PARTITIONS, 1, config=dict(of)) for name, of in TOPICS.items()]
    for created in admin.create_topics(topics).values():
        created.result(FLUSH_S)


def write_keyed(client: Mapping[str, Any], luck: Random, records: int) -> None:
    """Write so many records of keys that come again, some of them tombstones."""
    producer = Producer({**client, "linger.ms": 5, "log_level": 0})
    for number in range(records):
        _produce_keyed(producer, luck, number)
        if number % FLUSH_EACH == FLUSH_EACH - 1:
            _require_flushed(producer)
    _require_flushed(producer)


def _produce_keyed(producer: Producer, luck: Random, number: int, whose: str = "") -> None:
    value = None if luck.random() < TOMBSTONES else f"{number} {luck.randbytes(20).hex()}"
    producer.produce(KEYED, value, f"{whose}k{luck.randrange(KEYS)}")


@dataclass(slots=True, kw_only=True)
class Load:
    """What works at a site until the block ends."""

    client: Mapping[str, Any]
    luck: Random
    whose: str = ""
    """What its keys begin with."""
    _ended: Event = field(default_factory=Event)

    def write(self) -> None:
        """Write to all topics but the transactional one."""
        producer = Producer({**self.client, "linger.ms": 5, "log_level": 0})
        packed = Producer(
            {**self.client, "linger.ms": 5, "compression.type": "lz4", "log_level": 0}
        )
        number = 0
        while not self._ended.wait(EVERY_S):
            for _ in range(EACH):
                number += 1
                value = f"{number} {self.luck.randbytes(40).hex()}"
                producer.produce(PLAIN, value, f"{number}")
                packed.produce(SHORT, value * 3, f"{number}")
                _produce_keyed(producer, self.luck, number, self.whose)
            producer.poll(0)
            packed.poll(0)
        _require_flushed(producer, packed)

    def transact(self) -> None:
        """Write transactions, of which some are aborted."""
        name = f"drill-{self.luck.randrange(10**9)}"
        producer = Producer({**self.client, "transactional.id": name, "log_level": 0})
        producer.init_transactions(FLUSH_S)
        while not self._ended.wait(EVERY_S):
            producer.begin_transaction()
            for _ in range(self.luck.randint(1, EACH)):
                producer.produce(TRANSACTIONAL, self.luck.randbytes(30).hex())
            if self.luck.random() < ABORTED:
                producer.flush(FLUSH_S)
                producer.abort_transaction(FLUSH_S)
            else:
                producer.commit_transaction(FLUSH_S)

    def read(self) -> None:
        """Read as a member of a group that commits what it has read."""
        consumer = Consumer(
            {
                **self.client,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 300,
                "session.timeout.ms": 6_000,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        consumer.subscribe([PLAIN, TRANSACTIONAL, KEYED])
        try:
            while not self._ended.is_set():
                consumer.consume(200, 0.1)
        finally:
            consumer.close()

    def end(self) -> None:
        """Have everybody leave."""
        self._ended.set()


def _require_flushed(*producers: Producer) -> None:
    if any(producer.flush(FLUSH_S) for producer in producers):
        raise RuntimeError("records that no broker took")


@contextmanager
def loaded(client: Mapping[str, Any], seed: str, whose: str = "") -> Iterator[None]:
    """Run applications at a site until the block ends; raises what has ended one of them.

    Their keys are `whose`: a key that two sites write at once ends differently on both by nature.
    """
    load = Load(client=client, luck=Random(seed), whose=whose)
    with ThreadPoolExecutor(3) as threads:
        futures = [threads.submit(one) for one in (load.write, load.transact, load.read)]
        try:
            yield
        finally:
            load.end()
    for future in futures:
        future.result()
