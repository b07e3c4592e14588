"""Three brokers, factor 3, and leaders that are killed: nothing acknowledged is lost or doubled."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clusters import RunningCluster, run_cluster

PARTITIONS = 2
KILLS = 2
RECORDS_BEFORE_A_KILL = 400
RECORDS_AT_ONCE = 20
TIMEOUT_S = 120

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    folder: Path = tmp_path_factory.mktemp("killed")
    overrides = {
        "zookeeper.session.timeout.ms": "1500",
        "min.insync.replicas": "2",
        "replica.fetch.wait.max.ms": "100",
    }
    with run_cluster(folder, brokers=3, overrides=overrides, shares_zookeeper=True) as running:
        yield running


class Ledger:
    """What the producer was told, by partition: offset of each acknowledged record."""

    def __init__(self) -> None:
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.failed: list[KafkaError] = []

    def note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(error)
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert isinstance(value, bytes)
        self.acknowledged[partition, offset] = value


def leader_of(admin: AdminClient, topic: str, partition: int) -> int:
    return int(admin.list_topics(topic, timeout=60).topics[topic].partitions[partition].leader)


def wait_all_in_sync(admin: AdminClient, topic: str) -> None:
    deadline = monotonic() + TIMEOUT_S
    while monotonic() < deadline:
        partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions.values()
        if all(len(partition.isrs) == 3 for partition in partitions):
            return
        Event().wait(0.05)
    pytest.fail("not all replicas came back into the ISR")


@pytest.mark.story
def test_what_was_acknowledged_is_read_once_and_in_order(cluster: RunningCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("kept", PARTITIONS, 3)])["kept"].result(60)
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 2,
            "batch.num.messages": RECORDS_AT_ONCE,
            "reconnect.backoff.max.ms": 200,
        }
    )
    ledger = Ledger()
    sent = 0
    for kill in range(KILLS + 1):
        for number in range(RECORDS_BEFORE_A_KILL):
            if kill < KILLS and number == RECORDS_BEFORE_A_KILL // 2:
                victim = leader_of(admin, "kept", 0)
                cluster.kill_broker(victim)
            producer.produce(
                "kept", b"%d" % sent, partition=sent % PARTITIONS, on_delivery=ledger.note
            )
            sent += 1
            producer.poll(0)
        assert producer.flush(TIMEOUT_S) == 0, cluster.log
        if kill < KILLS:
            cluster.start_broker(victim)
            wait_all_in_sync(admin, "kept")
    assert ledger.failed == []
    assert len(ledger.acknowledged) == sent
    assert read_all(cluster, sent) == ledger.acknowledged
    for partition in range(PARTITIONS):
        ordered = [
            value for (index, _), value in sorted(ledger.acknowledged.items()) if index == partition
        ]
        assert ordered == sorted(ordered, key=int)


def read_all(cluster: RunningCluster, count: int) -> dict[tuple[int, int], bytes]:
    """Return every record of the topic, by place; more than `count` show as a difference."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
    found: dict[tuple[int, int], bytes] = {}
    consumer.assign([TopicPartition("kept", index, 0) for index in range(PARTITIONS)])
    ends = sum(
        consumer.get_watermark_offsets(TopicPartition("kept", index), timeout=60)[1]
        for index in range(PARTITIONS)
    )
    assert ends == count
    deadline = monotonic() + TIMEOUT_S
    while len(found) < count and monotonic() < deadline:
        for message in consumer.consume(500, 0.1):
            assert message.error() is None
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert isinstance(value, bytes)
            found[partition, offset] = value
    consumer.close()
    return found
