"""confluent-kafka's consumers of the new group protocol (KIP-848) in groups of bundled brokers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.broker.groups.real_members import PATIENCE_S, Member, committed, poll_until
from tests.clusters import RunningCluster, run_cluster

pytestmark = pytest.mark.integration

PER_PARTITION = 50
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "20000",
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "replica.lag.time.max.ms": "5000",
    "auto.leader.rebalance.enable": "false",
}
"""A new controller gives leaders back 5 s after it began, as Kafka's does. librdkafka tells a
coordinator that has just resigned that it leaves, and tells no other: a member's place then stays
taken for a session. So the death of one test's broker moves no coordinator in the next."""
JoinGroup = Callable[..., Member]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(
        tmp_path_factory.mktemp("members"), brokers=3, overrides=SETTINGS, shares_zookeeper=True
    ) as running:
        yield running


@pytest.fixture
def admin(cluster: RunningCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


@pytest.fixture
def join(cluster: RunningCluster) -> Iterator[JoinGroup]:
    """Open consumers that are closed at the end of the test."""
    with ExitStack() as opened:

        def open_member(group: str, topic: str, **settings: str | int) -> Member:
            chosen = {name.replace("_", "."): value for name, value in settings.items()}
            consumer = Consumer(
                {
                    "bootstrap.servers": cluster.bootstrap,
                    "group.id": group,
                    "group.protocol": "consumer",
                    "auto.offset.reset": "earliest",
                    "topic.metadata.refresh.interval.ms": 1_000,
                    **chosen,
                }
            )
            opened.callback(consumer.close)
            member = Member(consumer)
            member.subscribe(topic)
            return member

        yield open_member


def make_topic(admin: AdminClient, name: str, partitions: int) -> None:
    admin.create_topics([NewTopic(name, partitions, 2)])[name].result(PATIENCE_S)


def produce(cluster: RunningCluster, topic: str, partitions: range, numbers: range) -> set[bytes]:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    values = {(p, f"{topic}:{p}:{number}".encode()) for p in partitions for number in numbers}
    for partition, value in sorted(values):
        producer.produce(topic, value, partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    return {value for _, value in values}


def describe(admin: AdminClient, group: str) -> Any:
    """Return a group's description; the library's annotations lack its type."""
    return admin.describe_consumer_groups([group])[group].result(PATIENCE_S)


def share(count: int, *members: Member) -> Callable[[], bool]:
    """Return whether these members hold so many partitions together, evenly, and none twice."""

    def even() -> bool:
        sizes = [len(member.consumer.assignment()) for member in members]
        held = {(p.topic, p.partition) for m in members for p in m.consumer.assignment()}
        return len(held) == sum(sizes) == count and max(sizes) - min(sizes) <= 1

    return even


@pytest.mark.story
def test_every_record_is_read_once_through_rebalances_and_the_death_of_the_coordinator(
    join: JoinGroup, admin: AdminClient, cluster: RunningCluster
) -> None:
    make_topic(admin, "events", 6)
    sent = produce(cluster, "events", range(6), range(PER_PARTITION))
    first = join("events-readers", "events")
    poll_until(share(6, first), first)
    second = join("events-readers", "events", group_remote_assignor="range")
    poll_until(share(6, first, second), first, second)
    third = join("events-readers", "events")
    members = [first, second, third]
    poll_until(share(6, *members), *members)

    admin.create_partitions([NewPartitions("events", 9)])["events"].result(PATIENCE_S)
    sent |= produce(cluster, "events", range(6, 9), range(PER_PARTITION))
    poll_until(share(9, *members), *members)

    described = describe(admin, "events-readers")
    assert (described.state, described.type.name) == (
        ConsumerGroupState.STABLE,
        "CONSUMER",
    )
    assert len(described.members) == 3
    cluster.kill_broker(described.coordinator.id)
    sent |= produce(cluster, "events", range(9), range(PER_PARTITION, 2 * PER_PARTITION))
    poll_until(lambda: {value for one in members for value in one.values} == sent, *members)
    cluster.start_broker(described.coordinator.id)

    third.consumer.close()
    sent |= produce(cluster, "events", range(9), range(2 * PER_PARTITION, 3 * PER_PARTITION))
    poll_until(share(9, first, second), first, second)
    poll_until(lambda: {value for one in members for value in one.values} == sent, first, second)
    read = [message.value() for one in members for message in one.read]
    assert len(read) == len(sent), "read twice"

    first.consumer.close()
    second.consumer.close()
    ends = {("events", partition): 3 * PER_PARTITION for partition in range(9)}
    # A new client: librdkafka 2.16 crashes where one that knew the broker asks again.
    again = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert committed(again, "events-readers") == ends


def test_a_pattern_takes_in_a_topic_that_is_made_later(
    join: JoinGroup, admin: AdminClient, cluster: RunningCluster
) -> None:
    make_topic(admin, "eu-orders", 2)
    member = join("eu-readers", "^eu-.*")
    poll_until(share(2, member), member)
    make_topic(admin, "eu-payments", 3)
    sent = produce(cluster, "eu-payments", range(3), range(10))
    poll_until(lambda: member.values == sent, member)


def test_a_static_member_comes_back_to_its_partitions(join: JoinGroup, admin: AdminClient) -> None:
    make_topic(admin, "places", 4)
    first = join("places-readers", "places", group_instance_id="a")
    second = join("places-readers", "places", group_instance_id="b")
    poll_until(share(4, first, second), first, second)
    had, rebalances = second.consumer.assignment(), first.rebalances
    second.consumer.close()
    second = join("places-readers", "places", group_instance_id="b")
    poll_until(lambda: len(second.consumer.assignment()) == 2, first, second)
    assert second.consumer.assignment() == had
    assert first.rebalances == rebalances


def test_a_group_in_use_changes_its_protocol_and_back(
    join: JoinGroup, admin: AdminClient, cluster: RunningCluster
) -> None:
    make_topic(admin, "moving", 4)
    sent = produce(cluster, "moving", range(4), range(PER_PARTITION))
    classic = {"group_protocol": "classic", "partition_assignment_strategy": "cooperative-sticky"}
    old = join("movers", "moving", session_timeout_ms=6_000, heartbeat_interval_ms=300, **classic)
    poll_until(share(4, old), old)
    assert describe(admin, "movers").type.name == "CLASSIC"

    new = join("movers", "moving")
    poll_until(share(4, old, new), old, new)
    assert describe(admin, "movers").type.name == "CONSUMER"

    new.consumer.close()
    poll_until(share(4, old), old)
    assert describe(admin, "movers").type.name == "CLASSIC"
    sent |= produce(cluster, "moving", range(4), range(PER_PARTITION, 2 * PER_PARTITION))
    poll_until(lambda: old.values | new.values == sent, old)
    old.consumer.commit(offsets=[TopicPartition("moving", 0, 5)], asynchronous=False)
    assert committed(admin, "movers")["moving", 0] == 5
