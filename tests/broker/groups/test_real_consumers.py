"""confluent-kafka's consumers in groups of the bundled brokers: rebalances, crashes, restarts."""

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, NewTopic

from tests.broker.groups.real_members import PATIENCE_S, Member, committed, poll_until
from tests.clusters import RunningCluster, run_cluster

pytestmark = pytest.mark.integration

PARTITIONS = 6
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "8"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(
        tmp_path_factory.mktemp("groups"), brokers=2, overrides=SETTINGS, shares_zookeeper=True
    ) as running:
        yield running


@pytest.fixture
def admin(cluster: RunningCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


@pytest.fixture
def topic(cluster: RunningCluster, admin: AdminClient, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own with 50 records in each partition."""
    name = re.sub(r"[^\w.-]", "-", request.node.name)
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(PATIENCE_S)
    produce(cluster, name, 50)
    return name


def produce(cluster: RunningCluster, topic: str, per_partition: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(per_partition):
        for partition in range(PARTITIONS):
            producer.produce(topic, f"{partition}:{number}", partition=partition)
    assert producer.flush(PATIENCE_S) == 0


@pytest.fixture
def join(cluster: RunningCluster) -> Iterator[Callable[..., Member]]:
    """Open consumers that are closed at the end of the test."""
    with ExitStack() as opened:

        def open_member(group: str, topic: str, **settings: str | int) -> Member:
            chosen = {name.replace("_", "."): value for name, value in settings.items()}
            consumer = Consumer(
                {
                    "bootstrap.servers": cluster.bootstrap,
                    "group.id": group,
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "session.timeout.ms": 6_000,
                    "heartbeat.interval.ms": 300,
                    **chosen,
                }
            )
            opened.callback(consumer.close)
            member = Member(consumer)
            member.subscribe(topic)
            return member

        yield open_member


def shares(*members: Member) -> Callable[[], bool]:
    """Return whether these members hold all partitions evenly, none twice."""

    def even() -> bool:
        sizes = [len(member.assigned) for member in members]
        together = set().union(*(member.assigned for member in members))
        return together == set(range(PARTITIONS)) and sizes == [PARTITIONS // len(members)] * len(
            members
        )

    return even


def describe(admin: AdminClient, group: str) -> ConsumerGroupDescription:
    # The library's own annotation claims that the result is a dictionary.
    described: Any = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
    assert isinstance(described, ConsumerGroupDescription)
    return described


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_partitions_are_shared_as_members_come_and_go(
    join: Callable[..., Member], admin: AdminClient, topic: str, assignor: str
) -> None:
    group = f"come-and-go-{assignor}"
    first = join(group, topic, partition_assignment_strategy=assignor)
    poll_until(shares(first), first)
    second = join(group, topic, partition_assignment_strategy=assignor)
    poll_until(shares(first, second), first, second)
    third = join(group, topic, partition_assignment_strategy=assignor)
    poll_until(shares(first, second, third), first, second, third)

    described = describe(admin, group)
    assert described.state is ConsumerGroupState.STABLE
    assert described.partition_assignor == assignor
    assert (
        sorted(len(member.assignment.topic_partitions) for member in described.members) == [2] * 3
    )
    assert {member.host for member in described.members} == {"/127.0.0.1"}

    third.consumer.close()
    poll_until(shares(first, second), first, second)
    second.consumer.close()
    poll_until(shares(first), first)
    everything = {f"{p}:{n}".encode() for p in range(PARTITIONS) for n in range(50)}
    poll_until(lambda: first.values | second.values | third.values == everything, first)


def test_a_cooperative_member_keeps_what_it_need_not_give(
    join: Callable[..., Member], topic: str
) -> None:
    first = join("keep", topic, partition_assignment_strategy="cooperative-sticky")
    poll_until(shares(first), first)
    second = join("keep", topic, partition_assignment_strategy="cooperative-sticky")
    poll_until(shares(first, second), first, second)
    assert [len(gone) for gone in first.revoked if gone] == [3]


def test_members_that_share_no_assignor_are_refused(
    join: Callable[..., Member], topic: str
) -> None:
    first = join("mixed", topic, partition_assignment_strategy="range")
    poll_until(shares(first), first)
    second = join("mixed", topic, partition_assignment_strategy="roundrobin")
    poll_until(lambda: bool(second.errors), first, second)
    assert second.errors[0].code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL
    assert shares(first)()


CRASHING_CONSUMER = textwrap.dedent(
    """
    import sys
    from confluent_kafka import Consumer
    bootstrap, group, topic = sys.argv[1:]
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group,
                         "session.timeout.ms": 6000, "heartbeat.interval.ms": 300})
    consumer.subscribe([topic], on_assign=lambda c, p: print(len(p), flush=True))
    while True:
        consumer.poll(0.1)
    """
)


def test_a_killed_member_is_replaced_when_its_session_ends(
    join: Callable[..., Member], cluster: RunningCluster, topic: str
) -> None:
    first = join("killed", topic)
    poll_until(shares(first), first)
    arguments = [sys.executable, "-c", CRASHING_CONSUMER, cluster.bootstrap, "killed", topic]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as other:
        poll_until(lambda: len(first.assigned) == 3, first)
        other.kill()
    poll_until(shares(first), first)


def test_a_static_member_restarts_without_disturbing_the_others(
    join: Callable[..., Member], admin: AdminClient, topic: str
) -> None:
    first = join("static", topic, group_instance_id="a")
    second = join("static", topic, group_instance_id="b")
    poll_until(shares(first, second), first, second)
    had, rebalances = set(second.assigned), first.rebalances
    second.consumer.close()
    second = join("static", topic, group_instance_id="b")
    poll_until(lambda: second.assigned == had, first, second)
    assert first.rebalances == rebalances
    members = describe(admin, "static").members
    assert {member.group_instance_id for member in members} == {"a", "b"}


def test_the_former_holder_of_an_instance_id_is_fenced(
    join: Callable[..., Member], topic: str
) -> None:
    first = join("fenced", topic, group_instance_id="a")
    poll_until(shares(first), first)
    second = join("fenced", topic, group_instance_id="a")
    poll_until(lambda: bool(first.errors) and shares(second)(), first, second)
    assert first.errors[0].code() in {KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID}


def test_offsets_are_where_they_were_left(
    join: Callable[..., Member], admin: AdminClient, topic: str
) -> None:
    first = join("resume", topic)
    poll_until(lambda: len(first.read) == 50 * PARTITIONS, first)
    positions = [TopicPartition(topic, partition, 20) for partition in range(PARTITIONS)]
    first.consumer.commit(offsets=positions, asynchronous=False)
    first.consumer.close()
    assert committed(admin, "resume") == {(topic, p): 20 for p in range(PARTITIONS)}
    second = join("resume", topic)
    poll_until(lambda: len(second.read) == 30 * PARTITIONS, second)
    assert {message.offset() for message in second.read} == set(range(20, 50))


def test_a_tool_moves_offsets_only_of_a_group_without_members(
    join: Callable[..., Member], admin: AdminClient, topic: str
) -> None:
    def move(offset: int) -> TopicPartition:
        place = TopicPartition(topic, 0, offset)
        request = ConsumerGroupTopicPartitions("moved", [place])
        answer = admin.alter_consumer_group_offsets([request])["moved"]
        moved: list[TopicPartition] = answer.result(PATIENCE_S).topic_partitions
        return moved[0]

    assert move(7).error is None
    member = join("moved", topic)
    poll_until(shares(member), member)
    moved = move(9)
    assert moved.error is not None
    assert moved.error.code() == KafkaError.UNKNOWN_MEMBER_ID
    assert committed(admin, "moved") == {(topic, 0): 7}


def test_groups_are_listed_and_deleted(
    join: Callable[..., Member], admin: AdminClient, topic: str
) -> None:
    member = join("doomed", topic)
    poll_until(shares(member), member)
    listed = admin.list_consumer_groups().result(PATIENCE_S).valid
    assert {entry.group_id: entry.state for entry in listed}["doomed"] is ConsumerGroupState.STABLE
    stable = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(PATIENCE_S)
    assert "doomed" in {entry.group_id for entry in stable.valid}

    assert _deletion_error(admin, "doomed") == KafkaError.NON_EMPTY_GROUP
    member.consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    member.consumer.close()
    assert _deletion_error(admin, "doomed") is None
    assert committed(admin, "doomed") == {}
    assert describe(admin, "doomed").state is ConsumerGroupState.DEAD
    assert _deletion_error(admin, "doomed") == KafkaError.GROUP_ID_NOT_FOUND


def _deletion_error(admin: AdminClient, group: str) -> int | None:
    try:
        admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    except KafkaException as error:
        return code_of(error)
    return None


@pytest.mark.story
def test_groups_and_offsets_survive_the_death_of_their_broker(tmp_path: Path) -> None:
    with run_cluster(tmp_path, brokers=1, overrides=SETTINGS, shares_zookeeper=True) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("events", PARTITIONS, 1)])["events"].result(PATIENCE_S)
        produce(cluster, "events", 50)
        groups = [f"tool-{number}" for number in range(30)]
        for number, group in enumerate(groups):
            place = TopicPartition("events", number % PARTITIONS, number)
            request = ConsumerGroupTopicPartitions(group, [place])
            admin.alter_consumer_group_offsets([request])[group].result(PATIENCE_S)
        settings = {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 20_000,
        }
        consumer = Consumer(settings)
        try:
            member = Member(consumer)
            member.subscribe("events")
            poll_until(lambda: len(member.read) == 50 * PARTITIONS, member)
            consumer.commit(asynchronous=False)
            generation_before = member.rebalances
            before = {group: committed(admin, group) for group in [*groups, "readers"]}
            described = _described_members(admin, "readers")

            cluster.kill_broker(0)
            cluster.start_broker(0)
            # A new client: of one that knew the broker, librdkafka 2.16 gives a request to what it
            # is just dropping to bootstrap again, and never answers any more.
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
            poll_until(lambda: _answers(admin), member)

            assert {group: committed(admin, group) for group in before} == before
            assert _described_members(admin, "readers") == described
            produce(cluster, "events", 10)
            poll_until(lambda: len(member.read) == 60 * PARTITIONS, member)
            consumer.commit(asynchronous=False)
            assert committed(admin, "readers") == {("events", p): 60 for p in range(PARTITIONS)}
            assert len({(m.partition(), m.offset()) for m in member.read}) == len(member.read)
            assert member.rebalances == generation_before
        finally:
            consumer.close()


def _described_members(admin: AdminClient, group: str) -> list[tuple[str, list[int]]]:
    members = describe(admin, group).members
    return sorted(
        (member.member_id, sorted(p.partition for p in member.assignment.topic_partitions))
        for member in members
    )


def code_of(error: KafkaException) -> int:
    (fault,) = error.args
    assert isinstance(fault, KafkaError)
    return fault.code()


def _answers(admin: AdminClient) -> bool:
    try:
        return describe(admin, "readers").state is ConsumerGroupState.STABLE
    except KafkaException:
        return False
