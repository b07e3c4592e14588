"""The newest librdkafka, through confluent-kafka, against `broker up`: groups and admin."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

import confluent_kafka
import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
)

from tests.clusters import RunningCluster, run_cluster
from tests.interop.matrix import Peer
from tests.interop.sites import (
    QUIET,
    TIMEOUT_S,
    create_topic,
    read_committed,
    write,
    write_transactions,
)

LIBRARY: Final = Peer(name="librdkafka", version=confluent_kafka.libversion()[0])
pytestmark = pytest.mark.matrix(
    subject="The bundled broker with foreign clients", against=str(LIBRARY)
)

PARTITIONS: Final = 6
RECORDS: Final = 600


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    overrides = {"group.initial.rebalance.delay.ms": "0", "default.replication.factor": "3"}
    with run_cluster(tmp_path_factory.mktemp("bundled"), brokers=3, overrides=overrides) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(bundled: RunningCluster) -> Any:
    """An AdminClient; its types take futures of answers for answers."""
    return AdminClient({"bootstrap.servers": bundled.bootstrap, **QUIET})


@dataclass(slots=True)
class Member:
    """A consumer, what it was given and has lost, and what it has read."""

    consumer: Consumer
    topics: list[str]
    held: set[tuple[str, int]] = field(default_factory=set)
    given: list[set[tuple[str, int]]] = field(default_factory=list)
    revoked: list[set[tuple[str, int]]] = field(default_factory=list)
    read: list[bytes | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Subscribe."""
        self.consumer.subscribe(self.topics, on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.given.append(places(partitions))
        self.held |= places(partitions)

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.revoked.append(places(partitions))
        self.held -= places(partitions)

    def poll(self) -> None:
        """Read a few records."""
        for message in self.consumer.consume(50, 0.05):
            assert message.error() is None, message.error()
            self.read.append(message.value())


def places(partitions: list[TopicPartition]) -> set[tuple[str, int]]:
    return {(place.topic, place.partition) for place in partitions}


def poll_until(what: str, members: list[Member], is_done: Callable[[], bool]) -> None:
    """Poll all until it is so."""
    deadline = monotonic() + TIMEOUT_S
    while not is_done():
        assert monotonic() < deadline, f"not {what}: {[member.held for member in members]}"
        for member in members:
            member.poll()


def member(cluster: RunningCluster, group: str, topic: str, **settings: Any) -> Member:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    times = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 300}
    return Member(
        Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                **({} if "group_protocol" in settings else times),  # then the broker has them
                **QUIET,
                **named,
            }
        ),
        [topic],
    )


def test_cooperative_members_keep_what_they_do_not_give_away(bundled: RunningCluster) -> None:
    create_topic(bundled, "cooperative", PARTITIONS)
    write(bundled, "cooperative", 0, RECORDS)
    strategy = {"partition_assignment_strategy": "cooperative-sticky"}
    one = member(bundled, "cooperative", "cooperative", **strategy)
    poll_until("all with one", [one], lambda: len(one.held) == PARTITIONS)
    poll_until("all read", [one], lambda: len(one.read) == RECORDS)
    other = member(bundled, "cooperative", "cooperative", **strategy)
    poll_until("shared", [one, other], lambda: len(one.held) == len(other.held) == PARTITIONS // 2)
    assert [len(lost) for lost in one.revoked if lost] == [PARTITIONS // 2]
    write(bundled, "cooperative", RECORDS, RECORDS)
    poll_until("the rest", [one, other], lambda: len(one.read + other.read) >= 2 * RECORDS)
    one.consumer.close()
    poll_until("all with the other", [other], lambda: len(other.held) == PARTITIONS)
    assert not any(other.revoked)
    other.consumer.close()
    numbers = sorted(int(value or b"") for value in one.read + other.read)
    assert numbers == list(range(2 * RECORDS))


def test_a_static_member_comes_back_to_its_partitions_unnoticed(bundled: RunningCluster) -> None:
    create_topic(bundled, "static", PARTITIONS)
    one = member(bundled, "static", "static", group_instance_id="one")
    poll_until("all with one", [one], lambda: len(one.held) == PARTITIONS)
    other = member(bundled, "static", "static", group_instance_id="other")
    poll_until("shared", [one, other], lambda: len(one.held) == len(other.held) == PARTITIONS // 2)
    before, gone = len(one.given), set(other.held)
    other.consumer.close()
    again = member(bundled, "static", "static", group_instance_id="other")
    poll_until("back", [one, again], lambda: again.held == gone)
    write(bundled, "static", 0, RECORDS)
    poll_until("read", [one, again], lambda: len(one.read + again.read) == RECORDS)
    assert len(one.given) == before
    assert not again.revoked
    one.consumer.close()
    again.consumer.close()


def test_a_pattern_finds_topics_that_are_created_later(bundled: RunningCluster) -> None:
    create_topic(bundled, "found-1")
    reader = member(bundled, "patterns", "^found-.*", topic_metadata_refresh_interval_ms=500)
    poll_until("the first", [reader], lambda: reader.held == {("found-1", 0)})
    create_topic(bundled, "found-2", 2)
    expected = {("found-1", 0), ("found-2", 0), ("found-2", 1)}
    poll_until("the second", [reader], lambda: reader.held == expected)
    reader.consumer.close()


def test_a_transactional_producer_is_read_as_far_as_it_commits(bundled: RunningCluster) -> None:
    create_topic(bundled, "transacted")
    write_transactions(bundled, "transacted", count=9, each=5)
    read = [int(value or b"-1") for _, _, value in read_committed(bundled, "transacted")]
    assert read == [number for number in range(45) if number // 5 % 3 != 2]


def test_members_of_the_new_protocol_share_a_topic(bundled: RunningCluster) -> None:
    create_topic(bundled, "newer", PARTITIONS)
    settings = {"group_protocol": "consumer"}
    one = member(bundled, "newer-readers", "newer", **settings)
    poll_until("all of it", [one], lambda: len(one.held) == PARTITIONS)
    other = member(bundled, "newer-readers", "newer", **settings)
    both = [one, other]
    poll_until("a half", both, lambda: len(one.held) == len(other.held) == PARTITIONS // 2)
    assert not one.held & other.held
    one.consumer.close()
    other.consumer.close()


def test_the_admin_client_describes_the_cluster_topics_and_groups(
    bundled: RunningCluster, admin: Any
) -> None:
    create_topic(bundled, "described", 2, copies=3)
    reader = member(bundled, "described", "described", client_id="describer")
    poll_until("assigned", [reader], lambda: len(reader.held) == 2)
    cluster = admin.describe_cluster(request_timeout=TIMEOUT_S).result()
    assert len(cluster.nodes) == 3
    assert cluster.controller.id in {node.id for node in cluster.nodes}
    described = admin.describe_topics(TopicCollection(["described"]))["described"].result()
    assert [len(partition.replicas) for partition in described.partitions] == [3, 3]
    assert [len(partition.isr) for partition in described.partitions] == [3, 3]
    group = admin.describe_consumer_groups(["described"])["described"].result()
    assert group.state.name == "STABLE"
    [found] = group.members
    assert found.client_id == "describer"
    assert len(found.assignment.topic_partitions) == 2
    listed = admin.list_consumer_groups(request_timeout=TIMEOUT_S).result()
    assert "described" in {one.group_id for one in listed.valid}
    reader.consumer.close()
    admin.delete_consumer_groups(["described"])["described"].result(TIMEOUT_S)
    listed = admin.list_consumer_groups(request_timeout=TIMEOUT_S).result()
    assert "described" not in {one.group_id for one in listed.valid}


def test_the_admin_client_changes_configs_records_and_positions(
    bundled: RunningCluster, admin: Any
) -> None:
    create_topic(bundled, "changed")
    write(bundled, "changed", 0, 100)
    change = ConfigResource(
        ConfigResource.Type.TOPIC,
        "changed",
        incremental_configs=[
            ConfigEntry(
                "cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND
            ),
            ConfigEntry(
                "max.message.bytes", "2000000", incremental_operation=AlterConfigOpType.SET
            ),
        ],
    )
    admin.incremental_alter_configs([change])[change].result(TIMEOUT_S)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "changed")
    found = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    assert set(found["cleanup.policy"].value.split(",")) == {"compact", "delete"}
    assert found["max.message.bytes"].value == "2000000"
    place = TopicPartition("changed", 0, 40)
    low = admin.delete_records([place])[place].result(TIMEOUT_S)
    assert low.low_watermark == 40
    asked = TopicPartition("changed", 0)
    spec_of: Any = OffsetSpec  # these two of its methods have no types
    for spec, offset in ((spec_of.earliest(), 40), (spec_of.latest(), 100)):
        answer = admin.list_offsets({asked: spec}, isolation_level=IsolationLevel.READ_COMMITTED)
        assert answer[asked].result(TIMEOUT_S).offset == offset
    moved = ConsumerGroupTopicPartitions("moved", [TopicPartition("changed", 0, 77)])
    admin.alter_consumer_group_offsets([moved])["moved"].result(TIMEOUT_S)
    request = ConsumerGroupTopicPartitions("moved", [asked])
    told = admin.list_consumer_group_offsets([request])["moved"].result(TIMEOUT_S)
    assert [place.offset for place in told.topic_partitions] == [77]
