"""Apache Kafka's tools and Java clients, of Kafka 3 and 4, against `broker up`."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clusters import RunningCluster, run_cluster
from tests.interop.matrix import Peer
from tests.interop.peers import NEWEST_3, NEWEST_4, ToolFailed, run_tool
from tests.interop.peers.child import Child, start_child
from tests.interop.peers.java_program import JavaProgram
from tests.interop.peers.tools import (
    CLUSTER,
    CONSUMER_PERFORMANCE,
    DELETE_RECORDS,
    GET_OFFSETS,
    GROUPS,
    LOG_DIRS,
    PRODUCER_PERFORMANCE,
    TOPICS,
    VERIFIABLE_CONSUMER,
    VERIFIABLE_PRODUCER,
    broker_api_versions,
    configs,
    dump_log_segments,
)

pytestmark = [
    pytest.mark.matrix(subject="The bundled broker with foreign clients"),
    pytest.mark.parametrize(
        "java",
        [Peer(name="Java clients", version=version) for version in (NEWEST_3, NEWEST_4)],
        ids=str,
    ),
]

BROKERS: Final = 3
PATIENCE_S: Final = 120


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    overrides = {"offsets.topic.num.partitions": "4", "log.index.interval.bytes": "1024"}
    with run_cluster(
        tmp_path_factory.mktemp("bundled"), brokers=BROKERS, overrides=overrides
    ) as cluster:
        yield cluster


class Tools:
    """Kafka's tools of one version, pointed at the bundled cluster."""

    def __init__(self, cluster: RunningCluster, java: Peer) -> None:
        self.bootstrap = cluster.bootstrap
        self.version = java.version
        self.topic = f"tools-{java.version}"

    def run(self, main_class: str, *arguments: str) -> str:
        return run_tool(self.version, main_class, "--bootstrap-server", self.bootstrap, *arguments)

    def create(self, name: str, *, partitions: int = 3) -> str:
        topic = f"{self.topic}-{name}"
        self.run(TOPICS, "--create", "--topic", topic, "--partitions", str(partitions))
        return topic

    def produce(self, topic: str, count: int) -> list[dict[str, Any]]:
        """Return what VerifiableProducer says of each acknowledged record."""
        said = self.run(
            VERIFIABLE_PRODUCER,
            *("--topic", topic, "--max-messages", str(count), "--repeating-keys", "40"),
        )
        events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        return [event for event in events if event["name"] == "producer_send_success"]

    def perform(self, topic: str, count: int, *settings: str) -> str:
        """Return what ProducerPerformance says of `count` records of 200 bytes."""
        return run_tool(
            self.version,
            PRODUCER_PERFORMANCE,
            *("--topic", topic, "--num-records", str(count), "--record-size", "200"),
            *("--throughput", "-1", "--producer-props", f"bootstrap.servers={self.bootstrap}"),
            *("acks=all", *settings),
        )


@pytest.fixture
def tools(bundled: RunningCluster, java: Peer) -> Tools:
    return Tools(bundled, java)


def test_topics_are_created_described_grown_and_deleted(tools: Tools) -> None:
    topic = tools.create("life")
    with pytest.raises(ToolFailed, match="already exists"):
        tools.create("life")
    told = tools.run(TOPICS, "--describe", "--topic", topic)
    assert "PartitionCount: 3" in told
    assert told.count("Isr:") == 3
    tools.run(TOPICS, "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in tools.run(TOPICS, "--describe", "--topic", topic)
    tools.run(TOPICS, "--delete", "--topic", topic)
    assert topic not in tools.run(TOPICS, "--list").split()


def test_configs_are_described_changed_and_taken_back(tools: Tools) -> None:
    topic = tools.create("configured")
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tools.run(configs(tools.version), "--alter", *entity, "--add-config", "retention.ms=1234567")
    assert "retention.ms=1234567" in tools.run(configs(tools.version), "--describe", *entity)
    tools.run(configs(tools.version), "--alter", *entity, "--delete-config", "retention.ms")
    assert "retention.ms" not in tools.run(configs(tools.version), "--describe", *entity)
    assert "retention.ms=604800000" in tools.run(
        configs(tools.version), "--describe", "--all", *entity
    )


def test_every_acknowledged_record_of_the_java_producer_is_where_it_was_said_to_be(
    tools: Tools, tmp_path: Path
) -> None:
    topic = tools.create("verified")
    sent = tools.produce(topic, 3_000)
    assert len(sent) == 3_000
    with _verifiable_consumer(tools, topic, "verified-group", tmp_path) as consumer:
        _wait_consumed(consumer, 3_000)
    read = _consumed(consumer)
    assert Counter((record["partition"], record["offset"]) for record in read) == Counter(
        (record["partition"], record["offset"]) for record in sent
    )
    by_place = {(record["partition"], record["offset"]): record["value"] for record in sent}
    assert all(
        by_place[record["partition"], record["offset"]] == record["value"] for record in read
    )


def test_a_group_of_java_consumers_is_described_reset_and_deleted(
    tools: Tools, tmp_path: Path
) -> None:
    topic = tools.create("grouped")
    group = f"{topic}-group"
    tools.produce(topic, 600)
    with _verifiable_consumer(tools, topic, group, tmp_path) as consumer:
        _wait_consumed(consumer, 600)
        told = tools.run(GROUPS, "--describe", "--group", group, "--members", "--verbose")
        assert "(0,1,2)" in told or f"{topic}:0,1,2" in told
        told = tools.run(GROUPS, "--describe", "--group", group, "--state")
        assert "Stable" in told
    assert _lags(tools, group) == {0: 0, 1: 0, 2: 0}
    where = ("--group", group, "--topic", topic)
    tools.run(GROUPS, "--reset-offsets", *where, "--to-earliest", "--execute")
    assert sum(_lags(tools, group).values()) == 600
    tools.run(GROUPS, "--delete-offsets", *where)
    tools.run(GROUPS, "--delete", "--group", group)
    assert group not in tools.run(GROUPS, "--list").split()


def test_positions_are_moved_by_every_rule_of_the_tool(tools: Tools, tmp_path: Path) -> None:
    topic = tools.create("moved", partitions=1)
    tools.produce(topic, 60)
    assert tools.run(GET_OFFSETS, "--topic", topic).split() == [f"{topic}:0:60"]
    assert tools.run(GET_OFFSETS, "--topic", topic, "--time", "-2").split() == [f"{topic}:0:0"]
    where = ("--reset-offsets", "--group", f"{topic}-group", "--topic", topic)
    for rule, left in (
        (("--to-offset", "7"), 53),
        (("--shift-by", "-2"), 55),
        (("--to-datetime", "2020-01-01T00:00:00.000"), 60),
        (("--to-latest",), 0),
    ):
        tools.run(GROUPS, *where, *rule, "--execute")
        assert _lags(tools, f"{topic}-group") == {0: left}
    plan = tmp_path / "plan.csv"
    plan.write_text(tools.run(GROUPS, *where, "--to-offset", "11", "--export", "--dry-run"))
    tools.run(GROUPS, *where[:3], "--from-file", str(plan), "--execute")
    assert _lags(tools, f"{topic}-group") == {0: 49}


def test_records_are_deleted_up_to_an_offset(tools: Tools, tmp_path: Path) -> None:
    topic = tools.create("trimmed", partitions=1)
    tools.produce(topic, 60)
    wanted = tmp_path / "wanted.json"
    place = {"topic": topic, "partition": 0, "offset": 25}
    wanted.write_text(json.dumps({"partitions": [place], "version": 1}))
    said = tools.run(DELETE_RECORDS, "--offset-json-file", str(wanted))
    assert "low_watermark: 25" in said
    assert tools.run(GET_OFFSETS, "--topic", topic, "--time", "-2").split() == [f"{topic}:0:25"]


def test_the_cluster_and_its_brokers_are_described(tools: Tools, bundled: RunningCluster) -> None:
    said = run_tool(tools.version, CLUSTER, "cluster-id", "--bootstrap-server", tools.bootstrap)
    assert len(said.split()[-1]) == 22, said
    said = tools.run(broker_api_versions(tools.version))
    assert said.count("Produce(0): 0 to ") == BROKERS
    entity = ("--entity-type", "brokers", "--entity-name", "0")
    said = tools.run(configs(tools.version), "--describe", "--all", *entity)
    assert "log.index.interval.bytes=1024 sensitive=false" in said
    assert f" listeners=PLAINTEXT://{bundled.bootstrap.split(',')[0]}" in said


def test_a_broker_has_settings_of_its_own_until_they_are_taken_back(tools: Tools) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", "0")
    tools.run(
        configs(tools.version), "--alter", *entity, "--add-config", "log.retention.ms=1234567"
    )
    said = tools.run(configs(tools.version), "--describe", *entity)
    assert "log.retention.ms=1234567" in said
    assert (
        "{DYNAMIC_BROKER_CONFIG:log.retention.ms=1234567, DEFAULT_CONFIG:log.retention.hours=168}"
    ) in said
    tools.run(configs(tools.version), "--alter", *entity, "--delete-config", "log.retention.ms")
    assert "log.retention.ms" not in tools.run(configs(tools.version), "--describe", *entity)


def test_log_folders_are_described(tools: Tools, bundled: RunningCluster) -> None:
    topic = tools.create("sized", partitions=1)
    tools.produce(topic, 60)
    said = tools.run(LOG_DIRS, "--describe", "--topic-list", topic)
    told = json.loads(said.splitlines()[-1])
    folders = {folder["logDir"]: folder for one in told["brokers"] for folder in one["logDirs"]}
    assert set(folders) == {str(bundled.data / f"broker-{n}" / "logs") for n in range(BROKERS)}
    assert not any(folder["error"] for folder in folders.values())
    [found] = [place for folder in folders.values() for place in folder["partitions"]]
    assert (found["partition"], found["offsetLag"]) == (f"{topic}-0", 0)
    assert found["size"] > 60 * 10


def test_performance_tools_move_a_hundred_thousand_records(tools: Tools) -> None:
    topic = tools.create("fast", partitions=6)
    said = tools.perform(topic, 100_000, "compression.type=lz4")
    assert "100000 records sent" in said
    said = tools.run(
        CONSUMER_PERFORMANCE, "--topic", topic, "--messages", "100000", "--timeout", "30000"
    )
    header, figures = (line.split(",") for line in said.splitlines()[-2:])
    assert int(dict(zip(map(str.strip, header), figures, strict=True))["data.consumed.in.nMsg"])


def test_segments_and_indexes_are_read_by_dump_log_segments(java: Peer, tmp_path: Path) -> None:
    overrides = {"log.segment.bytes": "100000", "log.index.interval.bytes": "4096"}
    with run_cluster(tmp_path, overrides=overrides) as cluster:
        tools = Tools(cluster, java)
        topic = tools.create("dumped", partitions=1)
        tools.perform(topic, 3_000, "batch.size=2000", "linger.ms=1")
    (folder,) = cluster.data.glob(f"broker-*/logs/{topic}-0")
    logs = sorted(folder.glob("*.log"))
    indexes = [*folder.glob("*.index"), *folder.glob("*.timeindex")]
    assert len(logs) > 3
    assert len(indexes) == 2 * len(logs)
    said = _dump(java, logs, "--deep-iteration")
    assert said.count("| offset:") == 3_000
    assert said.count("isvalid: true") == said.count("baseOffset:")
    said = _dump(java, indexes, "--index-sanity-check")
    assert said.count("passed sanity check") == len(indexes)
    said = _dump(java, indexes, "--verify-index-only")
    assert "Mismatches" not in said
    assert "not found" not in said


def test_the_offsets_topic_on_disk_is_decoded_by_dump_log_segments(
    tools: Tools, bundled: RunningCluster, java: Peer, tmp_path: Path
) -> None:
    topic = tools.create("positions")
    group = f"{topic}-group"
    tools.produce(topic, 100)
    with _verifiable_consumer(tools, topic, group, tmp_path) as consumer:
        _wait_consumed(consumer, 100)
    logs = bundled.data.glob("broker-*/**/__consumer_offsets-*/*.log")
    said = _dump(java, list(logs), "--offsets-decoder")
    assert group in said
    assert "range" in said
    assert "Could not decode" not in said


def _dump(java: Peer, files: list[Path], *arguments: str) -> str:
    """Return what DumpLogSegments says of these files."""
    names = ",".join(map(str, sorted(files)))
    return run_tool(java.version, dump_log_segments(java.version), "--files", names, *arguments)


def _lags(tools: Tools, group: str) -> dict[int, int]:
    told = tools.run(GROUPS, "--describe", "--group", group)
    rows = [line.split() for line in told.splitlines() if line.startswith(group)]
    return {int(row[2]): int(row[5]) for row in rows}


@contextmanager
def _verifiable_consumer(tools: Tools, topic: str, group: str, folder: Path) -> Iterator[Child]:
    program = JavaProgram(version=tools.version, main_class=VERIFIABLE_CONSUMER, heap_mb=256)
    arguments = ["--bootstrap-server", tools.bootstrap, "--topic", topic, "--verbose"]
    arguments += ["--group-id", group, "--reset-policy", "earliest"]
    command = program.command(folder, *arguments, is_quiet=True)
    child = start_child("VerifiableConsumer", command, log=folder / "consumer.out")
    try:
        yield child
    finally:
        child.stop(patience_s=PATIENCE_S)


def _consumed(child: Child) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in child.said().splitlines() if line.startswith("{")]
    return [event for event in events if event["name"] == "record_data"]


def _wait_consumed(child: Child, count: int) -> None:
    """Return once that many records were read and committed."""

    def is_done() -> bool:
        lines = [line for line in child.said().splitlines() if line.endswith("}")]
        events = [json.loads(line) for line in lines]
        commits = [event for event in events if event["name"] == "offsets_committed"]
        last: dict[tuple[str, int], int] = {
            (place["topic"], place["partition"]): place["offset"]
            for event in commits
            if event["success"]
            for place in event["offsets"]
        }
        return sum(last.values()) >= count

    child.wait_until(is_done, timeout_s=PATIENCE_S)
