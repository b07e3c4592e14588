"""Two bundled clusters and a witness, and a mirror that does what the test says."""

import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic
from types import MappingProxyType
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from failover.client import SiteConsumer, SiteProducer
from failover.client.faults import code_of
from offset_translation.map_records import map_topic_name, piece_start, seal
from offset_translation.runs import Place
from runtime.coordination.witness import ActiveSite, WitnessPaths
from tests.clusters import RunningCluster, cluster_in, run_together
from tests.dc_yaml import Topics, dc_yaml, flow
from tests.zookeeper import look

READ_TIMEOUT_S = 60
QUIET: dict[str, Any] = {"log_level": 0}

TIMEOUTS = {
    "drain_timeout_ms": 20_000,
    "group_drain_timeout_ms": 5_000,
    "stop_timeout_ms": 15_000,
}


def promotable(
    dc1: str, dc2: str, witness: str, path: str, topics: Topics, *, is_both_ways: bool = False
) -> str:
    """Return a configuration in which promotions do not take long, with a way back or without."""
    ways = [("dc1", "dc2"), ("dc2", "dc1")] if is_both_ways else [("dc1", "dc2")]
    initial = {"initial_active": "dc1"} if is_both_ways else {}
    return dc_yaml(
        *(flow(*way, topics, discovery_interval_ms=200) for way in ways),
        dc1=dc1,
        dc2=dc2,
        witness=witness,
        path=path,
        coordination={"session_timeout_ms": 4_000},
        failover={**initial, **TIMEOUTS},
    )


@dataclass(frozen=True, slots=True)
class Sites:
    """What runs; several tests may share it, each with its own topics, groups and path."""

    dc1: RunningCluster
    dc2: RunningCluster
    witness: str

    def configure(
        self, folder: Path, path: str, topics: str = ".*", *, is_both_ways: bool = False
    ) -> Path:
        """Write a configuration file and return it."""
        file = folder / "dc.yaml"
        sites = (self.dc1.bootstrap, self.dc2.bootstrap)
        file.write_text(promotable(*sites, self.witness, path, topics, is_both_ways=is_both_ways))
        return file

    @contextmanager
    def active_site(self, path: str) -> Iterator["ActiveSiteByHand"]:
        """Set the active site as a promotion would; dc1 is where nobody has said anything yet."""
        client = look(self.witness)
        client.start()
        try:
            active = WitnessPaths(root=path).active
            if client.exists(active) is None:
                client.create(active, ActiveSite(site="dc1", epoch=0).encode(), makepath=True)
            yield ActiveSiteByHand(client, active)
        finally:
            client.stop()
            client.close()


@dataclass(frozen=True, slots=True)
class ActiveSiteByHand:
    """The node of the active site."""

    client: KazooClient
    path: str

    def set(
        self,
        site: str,
        epoch: int,
        *heard_by: SiteConsumer | SiteProducer,
        moving_to: str | None = None,
    ) -> None:
        """Write it, whatever it was, and wait until these clients have heard of it."""
        wanted = ActiveSite(site=site, epoch=epoch, moving_to=moving_to)
        self.client.ensure_path(self.path)
        self.client.set(self.path, wanted.encode())
        deadline = monotonic() + READ_TIMEOUT_S
        while any(client._watch.current() != wanted for client in heard_by):
            assert monotonic() < deadline, "the clients have not heard of the change"
            pause(0.01)


@contextmanager
def run_sites(
    folder: Path, witness: str, brokers: int = 1, *, shares_zookeeper: bool = False
) -> Iterator[Sites]:
    """Run two clusters until the block ends; they may be killed unless they share a ZooKeeper."""
    overrides = {
        "offsets.topic.num.partitions": "5",  # not 50, which mirrors and promotions read
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "500",
    }
    dc1, dc2 = (
        cluster_in(folder, brokers, name, overrides, shares_zookeeper=shares_zookeeper)
        for name in ("dc1", "dc2")
    )
    with run_together(dc1, dc2):
        yield Sites(dc1, dc2, witness)


def create_topic(
    cluster: RunningCluster,
    name: str,
    partitions: int = 1,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Create a topic and wait for it; while no controller is known, ask again."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    deadline = monotonic() + READ_TIMEOUT_S
    while True:
        try:
            admin.create_topics([NewTopic(name, partitions, 1, config=dict(settings))])[
                name
            ].result(60)
        except KafkaException as error:
            is_moving = code_of(error) == KafkaError.NOT_CONTROLLER
            if not is_moving or monotonic() > deadline:
                raise
            pause(0.2)
        else:
            return


def produce(
    cluster: RunningCluster, topic: str, numbers: Iterable[int], partition: int = 0
) -> None:
    """Write one record for each number, in all its parts, and wait for all."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **QUIET})
    for number in numbers:
        producer.produce(
            topic,
            b"%d" % number,
            b"k",
            partition,
            timestamp=1_000 + number,
            headers={"n": b"%d" % number},
        )
    assert producer.flush(READ_TIMEOUT_S) == 0


def read_all(cluster: RunningCluster, topic: str, partition: int = 0) -> list[Message]:
    """Read a partition from its start to its present end."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    start, end = _ends(consumer, TopicPartition(topic, partition))
    consumer.assign([TopicPartition(topic, partition, start)])
    found: list[Message] = []
    deadline = monotonic() + READ_TIMEOUT_S
    while (not found or (found[-1].offset() or 0) < end - 1) and end > start:
        assert monotonic() < deadline, f"{topic}-{partition}: {len(found)} of {end} records read"
        found += [message for message in consumer.consume(500, 0.02) if message.error() is None]
    consumer.close()
    return found


def _ends(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """Ask on while a leader that others know of has not heard of it: librdkafka does not."""
    deadline = monotonic() + READ_TIMEOUT_S
    while True:
        try:
            start, end = consumer.get_watermark_offsets(partition, timeout=READ_TIMEOUT_S)
        except KafkaException as error:
            if code_of(error) != KafkaError.NOT_LEADER_FOR_PARTITION or monotonic() > deadline:
                raise
        else:
            return start, end
        pause(0.1)


MISSING = {
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.UNKNOWN_TOPIC_OR_PART,  # the leader says so while a copy is deleted and made again
}


def read_what_is_there(cluster: RunningCluster, topic: str, partition: int = 0) -> list[Message]:
    """Read a partition of a topic that a mirror may not have made, or is making anew."""
    try:
        return read_all(cluster, topic, partition)
    except KafkaException as error:
        if code_of(error) in MISSING:
            return []
        raise


def wait_length(cluster: RunningCluster, topic: str, count: int, partition: int = 0) -> None:
    """Wait until the log holds so many records."""
    deadline = monotonic() + READ_TIMEOUT_S
    while len(read_what_is_there(cluster, topic, partition)) < count:
        assert monotonic() < deadline, f"not {count} records in {topic}"
        pause(0.1)


def values_of(messages: Sequence[Message]) -> list[int]:
    """Return the numbers that produce() wrote."""
    return [int(message.value() or b"-1") for message in messages]


def committed(cluster: RunningCluster, group: str, topic: str, partition: int = 0) -> int:
    """Return a group's position, negative for none."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, **QUIET})
    [found] = consumer.committed([TopicPartition(topic, partition)], timeout=READ_TIMEOUT_S)
    consumer.close()
    return found.offset


def commit_by_hand(cluster: RunningCluster, group: str, topic: str, offset: int) -> None:
    """Set a group's position in partition 0, as a promotion does."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, **QUIET})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


@dataclass(frozen=True, slots=True)
class HandMirror:
    """Copies partition 0 of one topic as far as it is told, and keeps the map like the mirror."""

    sites: Sites
    topic: str

    def copy(self, count: int) -> None:
        """Write what produce() wrote for range(count) to dc2, and the map; call once."""
        map_topic = map_topic_name("dc1")
        if map_topic not in self._admin().list_topics(timeout=READ_TIMEOUT_S).topics:
            create_topic(self.sites.dc2, map_topic)
        self._say(*piece_start(self.topic, 0, source_start=0, place=Place(0)))
        produce(self.sites.dc2, self.topic, range(count))
        self._say(*seal(self.topic, 0, source_end=count, target_end=count))

    def _say(self, key: bytes, value: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.sites.dc2.bootstrap, **QUIET})
        producer.produce(map_topic_name("dc1"), value, key, 0)
        assert producer.flush(READ_TIMEOUT_S) == 0

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.sites.dc2.bootstrap, **QUIET})


def pause(seconds: float) -> None:
    """Let time pass."""
    Event().wait(seconds)


def prepare(
    sites: Sites, topic: str, count: int, settings: Mapping[str, str] = MappingProxyType({})
) -> HandMirror:
    """Create a topic on both sites and fill it on dc1."""
    create_topic(sites.dc1, topic, settings=settings)
    create_topic(sites.dc2, topic, settings=settings)
    produce(sites.dc1, topic, range(count))
    return HandMirror(sites, topic)


@contextmanager
def hanging(cluster: RunningCluster) -> Iterator[None]:
    """Stop a cluster's brokers without closing their connections."""
    for pid in cluster.pids.values():
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in cluster.pids.values():
            os.kill(pid, signal.SIGCONT)


def delete_records(cluster: RunningCluster, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result()


def delete_topic(cluster: RunningCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.delete_topics([topic]).values():
        future.result()
