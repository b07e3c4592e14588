"""What tests of running clusters do: produce, read, move partitions, wait."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

from tests.clusters import RunningCluster
from wire.errors import ErrorCode
from wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.net import BrokerUnreachable, RequestRefused, open_cluster
from wire.schema import Request


def until(condition: Callable[[], bool], timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.05)  # noqa: TID251 - a test outside of trio


def produce_all(bootstrap: str, topic: str, values: list[bytes]) -> list[bytes]:
    """Return the values that were acknowledged."""
    acknowledged: list[bytes] = []
    client = Producer({"bootstrap.servers": bootstrap, "acks": "all", "message.timeout.ms": 60_000})
    for value in values:
        client.produce(
            topic,
            value,
            on_delivery=lambda error, message: (
                None if error else acknowledged.append(message.value() or b"")
            ),
        )
    client.flush(60)
    return acknowledged


def read_all(bootstrap: str, topic: str, partitions: int, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "r", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values: list[bytes] = []
    deadline = time.monotonic() + 120
    while len(values) < count and time.monotonic() < deadline:
        values += [message.value() or b"" for message in consumer.consume(1_000, 0.05)]
    consumer.close()
    return values


def controller_of(admin: AdminClient) -> int:
    """Return the controller as some broker sees it, -1 while the client asks a dead one."""
    try:
        return int(admin.list_topics(timeout=2).controller_id)
    except KafkaException:
        return -1


def live_brokers(admin: AdminClient) -> int:
    try:
        return len(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return -1


R = TypeVar("R")


def create(admin: AdminClient, name: str, *replicas: list[int]) -> None:
    assignment = [*replicas]
    topic = NewTopic(name, len(replicas), replica_assignment=assignment)
    admin.create_topics([topic])[name].result(60)
    until(lambda: len(partitions_of(admin, name)) == len(replicas))


def replicas_of(admin: AdminClient, topic: str) -> tuple[int, list[int], list[int]]:
    """Return leader, replicas and sorted ISR of the first partition; no leader if nobody says."""
    for partition in partitions_of(admin, topic)[:1]:
        return partition.leader, list(partition.replicas), sorted(partition.isrs)
    return -1, [], []


def ask_controller(cluster: RunningCluster, request: Request[R]) -> R:
    """Ask as a client does: a broker may go on naming the controller that was just killed."""

    async def ask() -> R:
        async with open_cluster(cluster.addresses, client_id="test") as connected:
            with trio.fail_after(60):
                while True:
                    try:
                        return await connected.request_controller(request)
                    except (BrokerUnreachable, RequestRefused):
                        await trio.sleep(0.1)

    return trio.run(ask)


def move(cluster: RunningCluster, topic: str, replicas: tuple[int, ...]) -> None:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    answer = ask_controller(
        cluster,
        AlterPartitionReassignmentsRequest(
            topics=(ReassignableTopic(name=topic, partitions=(partition,)),)
        ),
    )
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE


def folder(cluster: RunningCluster, broker: int, partition: str) -> Path:
    return cluster.data / f"broker-{broker}" / "logs" / partition


def partitions_of(admin: AdminClient, topic: str) -> list[PartitionMetadata]:
    """Return what some broker says, nothing while librdkafka asks one that has just died."""
    try:
        found = admin.list_topics(topic, timeout=2).topics[topic]
    except KafkaException:
        return []
    return [partition for _, partition in sorted(found.partitions.items())]
