"""The new group protocol (KIP-848) of `broker up` with Java consumers and tools, and its records.

Kafka's tools read what bundled coordinators write, and bundled coordinators what Kafka's write.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from broker.groups.records import LatestRecords, UnreadableRecord
from tests.clusters import RunningCluster, run_cluster
from tests.interop.foreign.clients import franz_go
from tests.interop.matrix import Peer
from tests.interop.peers import NEWEST_3, NEWEST_4, KafkaCluster, run_tool
from tests.interop.peers.child import Child, start_child
from tests.interop.peers.java_program import JavaProgram
from tests.interop.peers.tools import (
    GROUPS,
    TOPICS,
    VERIFIABLE_CONSUMER,
    VERIFIABLE_PRODUCER,
    dump_log_segments,
)
from wire.consumer_group_records import CurrentKey, GroupKey, MemberKey, TargetKey
from wire.record_batch import iterate_batches

pytestmark = pytest.mark.matrix(subject="The bundled broker with foreign clients")

PATIENCE_S: Final = 120
COUNT: Final = 600
SETTINGS: Final = {
    "offsets.topic.num.partitions": "4",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
both_javas = pytest.mark.parametrize(
    "java",
    [Peer(name="Java clients", version=version) for version in (NEWEST_3, NEWEST_4)],
    ids=str,
)


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(tmp_path_factory.mktemp("bundled"), brokers=3, overrides=SETTINGS) as cluster:
        yield cluster


StartMember = Callable[..., Child]


@pytest.fixture
def start_member(tmp_path: Path) -> Iterator[StartMember]:
    """Start VerifiableConsumers of the new protocol; all are stopped at the end."""
    with ExitStack() as started:

        def start(bootstrap: str, topic: str, group: str, version: str, *more: str) -> Child:
            folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            program = JavaProgram(version=version, main_class=VERIFIABLE_CONSUMER, heap_mb=256)
            arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--verbose"]
            arguments += ["--group-id", group, "--reset-policy", "earliest"]
            arguments += ["--group-protocol", "consumer", *more]
            command = program.command(folder, *arguments, is_quiet=True)
            child = start_child("VerifiableConsumer", command, log=folder / "consumer.out")
            started.callback(child.stop, patience_s=PATIENCE_S)
            return child

        yield start


def events(child: Child, name: str) -> list[dict[str, Any]]:
    lines = [line for line in child.said().splitlines() if line.startswith("{")]
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return [event for event in found if event["name"] == name]


def owned(child: Child) -> set[int]:
    """Return the partitions that a member has been assigned and not revoked."""
    held: set[int] = set()
    lines = [line for line in child.said().splitlines() if line.startswith("{")]
    for event in (json.loads(line) for line in lines if line.endswith("}")):
        if event["name"] in {"partitions_assigned", "partitions_revoked"}:
            numbers = {place["partition"] for place in event["partitions"]}
            held = held | numbers if event["name"].endswith("_assigned") else held - numbers
    return held


def produce(bootstrap: str, topic: str, version: str) -> None:
    where = ("--bootstrap-server", bootstrap, "--topic", topic)
    run_tool(version, VERIFIABLE_PRODUCER, *where, "--max-messages", str(COUNT))


@both_javas
def test_java_consumers_of_the_new_protocol_share_a_topic_and_read_each_record_once(
    bundled: RunningCluster, java: Peer, start_member: StartMember
) -> None:
    topic = f"shared-{java.version}"
    group = f"{topic}-group"
    where = ("--bootstrap-server", bundled.bootstrap)
    run_tool(java.version, TOPICS, *where, "--create", "--topic", topic, "--partitions", "4")
    produce(bundled.bootstrap, topic, java.version)
    first = start_member(bundled.bootstrap, topic, group, java.version)
    first.wait_until(lambda: owned(first) == {0, 1, 2, 3}, timeout_s=PATIENCE_S)
    second = start_member(
        bundled.bootstrap, topic, group, java.version, "--group-remote-assignor", "range"
    )
    second.wait_until(lambda: len(owned(second)) == 2, timeout_s=PATIENCE_S)
    first.wait_until(lambda: len(owned(first)) == 2, timeout_s=PATIENCE_S)
    assert owned(first) | owned(second) == {0, 1, 2, 3}

    told = run_tool(java.version, GROUPS, *where, "--describe", "--group", group, "--members")
    assert len([line for line in told.splitlines() if line.startswith(group)]) == 2
    state = run_tool(java.version, GROUPS, *where, "--describe", "--group", group, "--state")
    assert "Stable" in state
    listed = run_tool(java.version, GROUPS, *where, "--list", "--type", "consumer")
    assert group in listed.split()

    produce(bundled.bootstrap, topic, java.version)
    second.stop(patience_s=PATIENCE_S)
    first.wait_until(lambda: owned(first) == {0, 1, 2, 3}, timeout_s=PATIENCE_S)

    def read() -> Counter[tuple[int, int]]:
        return Counter(
            (record["partition"], record["offset"])
            for child in (first, second)
            for record in events(child, "record_data")
        )

    first.wait_until(lambda: len(read()) == 2 * COUNT, timeout_s=PATIENCE_S)
    assert set(read().values()) == {1}


def test_a_group_of_java_consumers_changes_its_protocol_in_use_and_back(
    bundled: RunningCluster, start_member: StartMember
) -> None:
    topic, group = "movers", "movers-group"
    where = ("--bootstrap-server", bundled.bootstrap)
    run_tool(NEWEST_4, TOPICS, *where, "--create", "--topic", topic, "--partitions", "4")
    produce(bundled.bootstrap, topic, NEWEST_4)
    classic = ("--group-protocol", "classic")
    old = start_member(bundled.bootstrap, topic, group, NEWEST_4, *classic)
    old.wait_until(lambda: owned(old) == {0, 1, 2, 3}, timeout_s=PATIENCE_S)
    new = start_member(bundled.bootstrap, topic, group, NEWEST_4)
    new.wait_until(lambda: len(owned(new)) == 2, timeout_s=PATIENCE_S)
    old.wait_until(lambda: len(owned(old)) == 2, timeout_s=PATIENCE_S)
    assert owned(old) | owned(new) == {0, 1, 2, 3}
    listed = run_tool(NEWEST_4, GROUPS, *where, "--list", "--type", "consumer")
    assert group in listed.split()

    produce(bundled.bootstrap, topic, NEWEST_4)
    new.stop(patience_s=PATIENCE_S)
    old.wait_until(lambda: owned(old) == {0, 1, 2, 3}, timeout_s=PATIENCE_S)

    def read() -> Counter[tuple[int, int]]:
        return Counter(
            (record["partition"], record["offset"])
            for child in (old, new)
            for record in events(child, "record_data")
        )

    old.wait_until(lambda: len(read()) == 2 * COUNT, timeout_s=PATIENCE_S)
    assert set(read().values()) == {1}
    listed = run_tool(NEWEST_4, GROUPS, *where, "--list", "--type", "classic")
    assert group in listed.split()


@pytest.mark.parametrize("how", ["new-name", "new-pattern"])
def test_franz_go_reads_in_a_group_of_the_new_protocol_and_reads_nothing_twice(
    bundled: RunningCluster, record_property: Callable[[str, object], None], how: str
) -> None:
    record_property("against", "franz-go")
    client = franz_go()
    record_property("against", client.name)
    topic = f"go-{how}"
    where = ("--bootstrap-server", bundled.bootstrap)
    run_tool(NEWEST_4, TOPICS, *where, "--create", "--topic", topic, "--partitions", "4")
    assert client.work(bundled.bootstrap, topic, COUNT, how) == {
        "produced": COUNT,
        "consumed": COUNT,
        "duplicated": 0,
        "out_of_order": 0,
        "reread": 0,
    }
    listed = run_tool(NEWEST_4, GROUPS, *where, "--list", "--type", "consumer")
    assert f"{topic}-go" in listed.split()


def test_kafkas_tool_reads_the_records_that_a_bundled_coordinator_writes(
    bundled: RunningCluster, start_member: StartMember
) -> None:
    topic, group = "dumped", "dumped-group"
    where = ("--bootstrap-server", bundled.bootstrap)
    run_tool(NEWEST_4, TOPICS, *where, "--create", "--topic", topic, "--partitions", "2")
    member = start_member(bundled.bootstrap, topic, group, NEWEST_4)
    member.wait_until(lambda: owned(member) == {0, 1}, timeout_s=PATIENCE_S)
    logs = sorted(bundled.data.glob("broker-*/**/__consumer_offsets-*/*.log"))
    names = ",".join(map(str, logs))
    said = run_tool(NEWEST_4, dump_log_segments(NEWEST_4), "--files", names, "--offsets-decoder")
    about = [line for line in said.splitlines() if group in line]
    kinds = {number: any(f'"type":"{number}"' in line for line in about) for number in range(3, 9)}
    assert kinds == dict.fromkeys(range(3, 9), True), "\n".join(about)
    assert "Could not decode" not in said


def test_a_bundled_coordinator_reads_the_records_that_kafka_4_writes(
    kafka: KafkaCluster, start_member: StartMember
) -> None:
    version = kafka.kind.version
    if not version.startswith("4."):
        pytest.skip("only Kafka 4 has the new group protocol by default")
    topic, group = "written", "written-group"
    where = ("--bootstrap-server", kafka.bootstrap)
    run_tool(version, TOPICS, *where, "--create", "--topic", topic, "--partitions", "2")
    member = start_member(kafka.bootstrap, topic, group, version)
    member.wait_until(lambda: owned(member) == {0, 1}, timeout_s=PATIENCE_S)
    latest = LatestRecords()
    for log in sorted(kafka.data.glob("broker-*/**/__consumer_offsets-*/*.log")):
        for header, batch in iterate_batches(log.read_bytes()):
            latest.add(header, batch)
    records = list(latest.decoded())
    assert not [one for one in records if isinstance(one, UnreadableRecord)]
    kinds = {type(one[0]) for one in records if not isinstance(one, UnreadableRecord)}
    assert {GroupKey, MemberKey, TargetKey, CurrentKey} <= kinds
