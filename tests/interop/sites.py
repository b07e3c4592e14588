"""Two sites of any kind, bundled or Apache Kafka, and a witness: what mirror and failover need."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, cast

import trio
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from demo.doors import LISTENER, Doors
from tests.clusters import RunningCluster, cluster_in, run_cluster, run_together
from tests.dc_yaml import dc_yaml, flow
from tests.interop.client_calls import wait_leaders
from tests.interop.matrix import Peer
from tests.interop.peers import (
    KAFKA_3_KRAFT,
    KAFKA_3_ZOOKEEPER,
    KAFKA_4_KRAFT,
    KafkaCluster,
    Kind,
    run_kafka,
)
from tests.interop.peers.child import pause
from tests.interop.secured import run_secured
from tests.mirror import daemon
from tests.secured_cluster import SecuredCluster
from tests.zookeeper import run_witness
from wire.net import open_cluster
from wire.net.security import Mechanism

Site: TypeAlias = RunningCluster | KafkaCluster
T = TypeVar("T")

BUNDLED: Final = Peer(name="bundled", version="broker")
TIMEOUT_S: Final = 90
QUIET: Final[dict[str, Any]] = {"log_level": 0}
QUICK: Final = {"group.initial.rebalance.delay.ms": "0"}
SECURED: Final = "INTEROP_SECURED"
OFTEN: Final[dict[str, Any]] = {"discovery_interval_ms": 300, "group_offsets_interval_ms": 300}
TIMEOUTS: Final = {
    "drain_timeout_ms": 20_000,
    "group_drain_timeout_ms": 5_000,
    "stop_timeout_ms": 15_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Kinds of the source and of the target."""

    source: Kind | Peer
    target: Kind | Peer

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"

    @property
    def has_apache_source(self) -> bool:
        return isinstance(self.source, Kind)


PAIRS: Final = (
    Pair(source=BUNDLED, target=KAFKA_3_ZOOKEEPER),
    Pair(source=KAFKA_3_ZOOKEEPER, target=BUNDLED),
    Pair(source=KAFKA_3_KRAFT, target=KAFKA_4_KRAFT),
    Pair(source=KAFKA_4_KRAFT, target=KAFKA_4_KRAFT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPair:
    """What runs; tests of a module share it, each with its own topics, groups and witness path."""

    pair: Pair
    dc1: Site
    dc2: Site
    witness: str
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What a file says of each site that programs reach over TLS and SASL."""

    def configure(self, folder: Path, topics: str, more: str = "") -> Path:
        """Write a configuration for these topics with a witness tree of its own."""
        file = folder / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow("dc1", "dc2", topics, more, **OFTEN),
                dc1=self.sections.get("dc1", self.dc1.bootstrap),
                dc2=self.sections.get("dc2", self.dc2.bootstrap),
                witness=self.witness,
                path=f"/{folder.name}",
                coordination={"session_timeout_ms": 4_000},
                failover=TIMEOUTS,
                audit={"output": str(folder / "audit")},
            )
        )
        return file


@contextmanager
def run_sites(folder: Path, pair: Pair) -> Iterator[RunningPair]:
    """Run both sites and the witness until the block ends."""
    kinds, running = {"dc1": pair.source, "dc2": pair.target}, dict[str, Site]()
    sections: dict[str, Mapping[str, Any]] = {}
    with ExitStack() as stack:
        for name, kind in kinds.items():
            if is_secured():
                guarded = stack.enter_context(_run_secured_site(folder, kind, name))
                running[name], sections[name] = guarded
            else:
                running[name] = stack.enter_context(_run_site(folder, kind, name))
        witness = stack.enter_context(run_witness(folder / "witness"))
        dc1, dc2 = running["dc1"], running["dc2"]
        yield RunningPair(pair=pair, dc1=dc1, dc2=dc2, witness=witness, sections=sections)


def is_secured() -> bool:
    """Tell whether our programs come over TLS and SCRAM; the tests' own clients do not."""
    return os.environ.get(SECURED) == "1"


@contextmanager
def _run_site(folder: Path, kind: Kind | Peer, name: str) -> Iterator[Site]:
    if isinstance(kind, Kind):
        with run_kafka(folder, kind, name=name, overrides=QUICK) as apache:
            yield apache
    else:
        with run_cluster(folder, name=name, overrides=QUICK) as bundled:
            yield bundled


@contextmanager
def _run_secured_site(
    folder: Path, kind: Kind | Peer, name: str
) -> Iterator[tuple[Site, Mapping[str, Any]]]:
    if isinstance(kind, Kind):
        with run_secured(folder, kind, name, QUICK) as guarded:
            yield guarded.cluster, guarded.section(LISTENER, Mechanism.SCRAM_SHA_512)
        return
    doors, bundled = Doors(folder / f"{name}-doors"), cluster_in(folder, 1, name, QUICK)
    bundled.also, bundled.properties = LISTENER, doors.of_brokers_file
    with run_together(bundled):
        yield bundled, doors.cluster(bundled.secured_bootstrap)


def by_plaintext(bundled: SecuredCluster) -> Site:
    """Stand in for what is asked of a site: its addresses without security."""
    return cast("Site", bundled)


def create_topic(
    site: Site,
    name: str,
    partitions: int = 1,
    *,
    copies: int = 1,
    config: Mapping[str, str] = MappingProxyType({}),
    **settings: str,
) -> None:
    """Create a topic that keeps records of any age, unless `settings` say otherwise."""
    admin = AdminClient({"bootstrap.servers": site.bootstrap, **QUIET})
    named = {k.replace("_", "."): v for k, v in settings.items()}
    topic = NewTopic(name, partitions, copies, config={"retention.ms": "-1", **named, **config})
    admin.create_topics([topic])[name].result(TIMEOUT_S)


def write(site: Site, topic: str, first: int, count: int, *, value_bytes: int = 0) -> None:
    """Produce numbered records of at least this size, key `number % 10`; all are acknowledged."""
    refused: list[KafkaError] = []

    def delivered(fault: KafkaError | None, _: object) -> None:
        if fault is not None:  # `flush` counts it as done
            refused.append(fault)

    producer = Producer({"bootstrap.servers": site.bootstrap, **QUIET})
    for number in range(first, first + count):
        value = str(number).encode().ljust(value_bytes, b".")
        producer.produce(topic, value, str(number % 10).encode(), on_delivery=delivered)
        producer.poll(0)
    unsent = producer.flush(TIMEOUT_S)
    assert (unsent, refused) == (0, []), f"{topic}: {unsent} unsent, {len(refused)} refused"


def write_transactions(site: Site, topic: str, count: int, each: int) -> None:
    """Write transactions of `each` numbered records; every third is aborted."""
    producer = Producer(
        {"bootstrap.servers": site.bootstrap, "transactional.id": topic, "linger.ms": 1, **QUIET}
    )
    producer.init_transactions(TIMEOUT_S)
    for number in range(count):
        producer.begin_transaction()
        for place in range(number * each, (number + 1) * each):
            producer.produce(topic, str(place).encode(), str(place % 10).encode(), partition=0)
        producer.flush(TIMEOUT_S)
        if number % 3 == 2:
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)


def append_batches(site: Site, topic: str, batches: Sequence[bytes]) -> None:
    """Produce whole batches to partition 0 as they are, once it has a leader."""
    trio.run(_wait_leader, site, topic)
    # Only `addresses` is used, which both kinds of sites have.
    daemon.append_batches(cast("RunningCluster", site), topic, batches)


async def _wait_leader(site: Site, topic: str) -> None:
    async with open_cluster(site.addresses, client_id="interop") as cluster:
        with trio.fail_after(TIMEOUT_S):
            await wait_leaders(cluster, topic, 1)


def read_batches(site: Site, topic: str) -> list[daemon.StoredBatch]:
    """Return all batches of partition 0."""
    return daemon.read_batches(cast("RunningCluster", site), topic)


Seen: TypeAlias = tuple[int, bytes | None, bytes | None]


def read_committed(site: Site, topic: str, partition: int = 0) -> list[Seen]:
    """Return (offset, key, value) of all committed records of a partition, as librdkafka does."""
    consumer = Consumer(
        {
            "bootstrap.servers": site.bootstrap,
            "group.id": "interop-reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[Seen] = []
    while True:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"{topic}-{partition}: no end within {TIMEOUT_S} s"
        if message.error() is not None:
            break
        found.append((message.offset() or 0, message.key(), message.value()))
    consumer.close()
    return found


def end_of(site: Site, topic: str, partition: int = 0) -> int:
    """Return the high watermark of a partition."""
    consumer = Consumer({"bootstrap.servers": site.bootstrap, "group.id": "interop-end", **QUIET})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
    consumer.close()
    return end


def commit(site: Site, group: str, topic: str, offset: int, partition: int = 0) -> None:
    """Set a group's position."""
    consumer = Consumer({"bootstrap.servers": site.bootstrap, "group.id": group, **QUIET})
    place = TopicPartition(topic, partition, offset)
    _patiently(lambda: consumer.commit(offsets=[place], asynchronous=False))
    consumer.close()


def committed(site: Site, group: str, topic: str, partition: int = 0) -> int:
    """Return a group's position, negative for none."""
    consumer = Consumer({"bootstrap.servers": site.bootstrap, "group.id": group, **QUIET})
    place = TopicPartition(topic, partition)
    [found] = _patiently(lambda: consumer.committed([place], timeout=TIMEOUT_S))
    consumer.close()
    return int(found.offset)


def _patiently(ask: Callable[[], T]) -> T:
    """Ask again while the cluster makes its offsets topic."""
    deadline = monotonic() + TIMEOUT_S
    while True:
        try:
            return ask()
        except KafkaException as error:
            if not _is_starting(error) or monotonic() > deadline:
                raise
        pause(0.2)


def _is_starting(error: KafkaException) -> bool:
    fault = error.args[0]
    return isinstance(fault, KafkaError) and fault.code() in {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError._WAIT_COORD,
    }
