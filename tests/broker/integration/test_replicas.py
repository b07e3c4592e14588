"""Replicas on three brokers: moved, led by whom they should be, and given away before a stop."""

import os
import signal
from collections.abc import Iterator
from shutil import rmtree

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.broker.integration.cluster_steps import (
    ask_controller,
    controller_of,
    create,
    folder,
    live_brokers,
    move,
    partitions_of,
    produce_all,
    read_all,
    replicas_of,
    until,
)
from tests.clusters import RunningCluster, is_alive, run_cluster
from wire.errors import ErrorCode
from wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopicPartitions
from wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

pytestmark = pytest.mark.integration


SETTINGS = {
    "zookeeper.session.timeout.ms": "3000",
    "default.replication.factor": "3",
    "auto.leader.rebalance.enable": "false",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    folder = tmp_path_factory.mktemp("replicas")
    with run_cluster(folder, brokers=3, overrides=SETTINGS, shares_zookeeper=True) as running:
        yield running


@pytest.fixture
def admin(cluster: RunningCluster) -> AdminClient:
    """Connect when the brokers that an earlier test started again have come."""
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    until(lambda: live_brokers(client) == 3)
    return client


def stop(cluster: RunningCluster, broker: int, how: signal.Signals) -> None:
    pid = cluster.pids[broker]
    os.kill(pid, how)
    until(lambda: not is_alive(pid))


def test_a_moved_partition_has_its_records_where_it_went_and_nowhere_else(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    create(admin, "moved", [0, 1])
    sent = [b"%d" % number for number in range(500)]
    assert len(produce_all(cluster.bootstrap, "moved", sent)) == 500
    move(cluster, "moved", (2, 1))
    until(lambda: replicas_of(admin, "moved")[1:] == ([2, 1], [1, 2]))
    listed = ask_controller(cluster, ListPartitionReassignmentsRequest())
    assert listed.topics == ()
    assert read_all(cluster.bootstrap, "moved", 1, 500) == sent
    until(lambda: not folder(cluster, 0, "moved-0").exists())


def test_the_preferred_leader_leads_again_when_somebody_asks(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    create(admin, "preferred", [1, 2, 0])
    stop(cluster, 1, signal.SIGKILL)
    until(lambda: replicas_of(admin, "preferred") == (2, [1, 2, 0], [0, 2]))
    cluster.start_broker(1)
    until(lambda: replicas_of(admin, "preferred") == (2, [1, 2, 0], [0, 1, 2]))
    asked = ElectLeadersTopicPartitions(topic="preferred", partitions=(0,))
    answer = ask_controller(
        cluster, ElectLeadersRequest(topic_partitions=(asked,), timeout_ms=5_000)
    )
    results = answer.replica_election_results
    assert results[0].partition_result[0].error_code == ErrorCode.NONE
    until(lambda: replicas_of(admin, "preferred")[0] == 1)


def test_a_stopping_broker_gives_its_leaders_away_and_costs_no_producer_a_record(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    """The controller stops, so that another has to take over as well."""
    create(admin, "rolling", [0, 1, 2], [1, 2, 0], [2, 0, 1])
    victim = controller_of(admin)
    failed: list[object] = []
    done: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 1})
    pid = cluster.pids[victim]
    for number in range(1_500):
        if number == 300:
            os.kill(pid, signal.SIGTERM)
        producer.produce(
            "rolling",
            b"%d" % number,
            on_delivery=lambda error, _: (failed if error else done).append(error),
        )
        producer.poll(0.002)
    assert producer.flush(60) == 0
    assert (len(failed), len(done)) == (0, 1_500)
    until(lambda: not is_alive(pid))
    log = (cluster.data / f"broker-{victim}" / "broker.log").read_text() + cluster.log
    assert f"broker {victim} leads nothing any more" in log
    cluster.start_broker(victim)
    until(lambda: in_sync_counts(admin, "rolling") == [3, 3, 3])


@pytest.mark.story
def test_a_controller_that_dies_during_a_move_leaves_it_to_the_next(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    controller = controller_of(admin)
    stays, target = [broker for broker in range(3) if broker != controller]
    create(admin, "inherited", [stays])
    sent = [b"%d" % number for number in range(100)]
    assert len(produce_all(cluster.bootstrap, "inherited", sent)) == 100
    pid = cluster.pids[target]
    os.kill(pid, signal.SIGSTOP)
    try:
        move(cluster, "inherited", (target,))
        stop(cluster, controller, signal.SIGKILL)
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: replicas_of(admin, "inherited") == (target, [target], [target]))
    assert read_all(cluster.bootstrap, "inherited", 1, 100) == sent
    cluster.start_broker(controller)
    until(lambda: not folder(cluster, stays, "inherited-0").exists())


@pytest.mark.story
def test_a_controller_that_comes_back_with_an_empty_disk_takes_nobodys_records_along(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    """Its registration is renewed at once, before the next controller, or itself, has looked."""
    controller = controller_of(admin)
    others = [broker for broker in range(3) if broker != controller]
    create(admin, "kept", [controller, *others])
    until(lambda: in_sync_counts(admin, "kept") == [3])
    sent = [b"%d" % number for number in range(100)]
    assert len(produce_all(cluster.bootstrap, "kept", sent)) == 100
    stop(cluster, controller, signal.SIGKILL)
    rmtree(folder(cluster, controller, "kept-0").parent)
    cluster.start_broker(controller)
    until(lambda: replicas_of(admin, "kept")[0] in others)
    until(lambda: in_sync_counts(admin, "kept") == [3])
    assert read_all(cluster.bootstrap, "kept", 1, 100) == sent


@pytest.mark.story
def test_a_broker_with_an_empty_disk_that_was_alone_in_sync_takes_nobodys_records_along(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    """The records are there again when somebody allows that a replica leads that may lack some."""
    victim = controller_of(admin)
    others = [broker for broker in range(3) if broker != victim]
    create(admin, "lonely", [victim, *others])
    until(lambda: in_sync_counts(admin, "lonely") == [3])
    sent = [b"%d" % number for number in range(100)]
    assert len(produce_all(cluster.bootstrap, "lonely", sent)) == 100
    pids = [cluster.pids[broker] for broker in others]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: in_sync_counts(admin, "lonely") == [1])
        stop(cluster, victim, signal.SIGKILL)
        rmtree(folder(cluster, victim, "lonely-0").parent)
        cluster.start_broker(victim)
        until(lambda: replicas_of(admin, "lonely")[0] == -1)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    until(lambda: live_brokers(admin) == 3)
    assert replicas_of(admin, "lonely") == (-1, [victim, *others], [victim])
    allow_unclean(admin, "lonely")
    until(lambda: replicas_of(admin, "lonely")[0] in others)
    until(lambda: in_sync_counts(admin, "lonely") == [3])
    assert read_all(cluster.bootstrap, "lonely", 1, 100) == sent


def allow_unclean(admin: AdminClient, topic: str) -> None:
    setting = ConfigEntry(
        "unclean.leader.election.enable",
        "true",
        incremental_operation=AlterConfigOpType.SET,
    )
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[setting])
    for future in admin.incremental_alter_configs([asked]).values():
        future.result(60)


@pytest.mark.story
def test_after_a_restart_of_all_the_quiet_partitions_are_in_sync_again_everywhere(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    """Nothing is written to them: a follower that could not join at once must ask again."""
    create(admin, "quiet", *([index % 3, (index + 1) % 3, (index + 2) % 3] for index in range(30)))
    cluster.restart()
    again = AdminClient({"bootstrap.servers": cluster.bootstrap})
    until(lambda: in_sync_counts(again, "quiet") == [3] * 30)


@pytest.mark.story
def test_a_replica_that_was_moved_away_while_its_broker_was_down_is_set_aside(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    create(admin, "stays", [1, 0])
    create(admin, "left", [0, 1])
    sent = [b"%d" % number for number in range(100)]
    for topic in ("stays", "left"):
        assert len(produce_all(cluster.bootstrap, topic, sent)) == 100
    stop(cluster, 1, signal.SIGKILL)
    until(lambda: live_brokers(admin) == 2)
    move(cluster, "left", (0, 2))
    until(lambda: replicas_of(admin, "left") == (0, [0, 2], [0, 2]))
    cluster.start_broker(1)
    until(lambda: replicas_of(admin, "stays")[2] == [0, 1])
    logs = folder(cluster, 1, "left-0").parent
    (stray,) = logs.glob("left-0.*-stray")
    assert (stray / f"{0:020}.log").stat().st_size > 0
    assert (logs / "stays-0").exists()
    assert not (logs / "left-0").exists()
    assert sorted(read_all(cluster.bootstrap, "left", 1, 100)) == sorted(sent)


def delete_before(admin: AdminClient, topic: str, offset: int, timeout_s: float) -> int:
    """Delete records of the first partition; return the low watermark that is answered."""
    place = TopicPartition(topic, 0, offset)
    deleted = admin.delete_records([place], operation_timeout=timeout_s, request_timeout=60)
    return int(deleted[place].result(60).low_watermark)


def earliest(cluster: RunningCluster, topic: str) -> int:
    """Return where the first partition starts, -1 while a client is sent to a former leader."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "earliest"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)[0])
    except KafkaException:
        return -1
    finally:
        consumer.close()


@pytest.mark.story
def test_records_are_deleted_when_no_living_replica_has_them_any_more(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    create(admin, "shortened", [0, 1, 2])
    sent = [b"%d" % number for number in range(100)]
    assert len(produce_all(cluster.bootstrap, "shortened", sent)) == 100
    assert delete_before(admin, "shortened", 10, 20) == 10
    pid = cluster.pids[2]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(KafkaException) as late:
            delete_before(admin, "shortened", 20, 0.5)
    finally:
        os.kill(pid, signal.SIGCONT)
    error = late.value.args[0]
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError.REQUEST_TIMED_OUT
    until(lambda: earliest(cluster, "shortened") == 20)
    assert delete_before(admin, "shortened", 50, 20) == 50
    stop(cluster, 0, signal.SIGKILL)
    until(lambda: replicas_of(admin, "shortened")[0] == 1)
    until(lambda: earliest(cluster, "shortened") == 50)  # the follower had moved its log's start
    until(lambda: live_brokers(admin) == 2)
    assert delete_before(admin, "shortened", 80, 20) == 80
    cluster.start_broker(0)
    until(lambda: replicas_of(admin, "shortened")[2] == [0, 1, 2])


def in_sync_counts(admin: AdminClient, topic: str) -> list[int]:
    return [len(partition.isrs) for partition in partitions_of(admin, topic)]
