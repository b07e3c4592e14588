"""Apache Kafka's tools for replicas, of Kafka 3 and 4, against three bundled brokers."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest

from tests.clusters import RunningCluster, is_alive, run_cluster
from tests.interop.matrix import Peer
from tests.interop.peers import NEWEST_3, NEWEST_4, ToolFailed, run_tool
from tests.interop.peers.child import pause, start_child
from tests.interop.peers.java_program import JavaProgram
from tests.interop.peers.tools import GET_OFFSETS, TOPICS, VERIFIABLE_PRODUCER

pytestmark = [
    pytest.mark.matrix(subject="The bundled broker with foreign clients"),
    pytest.mark.parametrize(
        "java",
        [Peer(name="Java clients", version=version) for version in (NEWEST_3, NEWEST_4)],
        ids=str,
    ),
]

LEADER_ELECTION: Final = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGN: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
PATIENCE_S: Final = 120
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": "3000",
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": "5000",
}


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    folder = tmp_path_factory.mktemp("replicas")
    with run_cluster(folder, brokers=3, overrides=SETTINGS) as cluster:
        yield cluster


class Tools:
    """Kafka's tools of one version, and what they say of one topic."""

    def __init__(self, cluster: RunningCluster, java: Peer, folder: Path) -> None:
        self.cluster = cluster
        self.version = java.version
        self._folder = folder

    def run(self, main_class: str, *arguments: str) -> str:
        bootstrap = ("--bootstrap-server", self.cluster.bootstrap)
        return run_tool(self.version, main_class, *bootstrap, *arguments)

    def create(self, name: str, assignment: str) -> str:
        """Create a topic on the brokers of `0:1,1:2`, one partition for each part."""
        topic = f"replicas-{self.version}-{name}"
        self.run(TOPICS, "--create", "--topic", topic, "--replica-assignment", assignment)
        return topic

    def describe(self, topic: str, *only: str) -> list[dict[str, str]]:
        """Return what is said of each partition: Leader, Replicas, Isr."""
        said = self.run(TOPICS, "--describe", "--topic", topic, *only)
        lines = [line.split("\t") for line in said.splitlines() if "Partition: " in line]
        return [dict(part.split(": ", 1) for part in line if ": " in part) for line in lines]

    def wait_described(self, topic: str, expected: Callable[[list[dict[str, str]]], bool]) -> None:
        until(lambda: expected(self.describe(topic)))

    def elect(self, kind: str, *which: str) -> str:
        return self.run(LEADER_ELECTION, "--election-type", kind, *which)

    def reassign(self, topic: str, replicas: list[int], action: str, *more: str) -> str:
        """Run kafka-reassign-partitions on the topic's only partition."""
        plan = {
            "version": 1,
            "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}],
        }
        file = self._folder / "plan.json"
        file.write_text(json.dumps(plan))
        return self.run(REASSIGN, action, "--reassignment-json-file", str(file), *more)

    def produce(self, topic: str, count: int) -> None:
        self.run(
            VERIFIABLE_PRODUCER,
            *("--topic", topic, "--max-messages", str(count), "--acks", "-1"),
        )

    def end_offset(self, topic: str) -> int:
        said = self.run(GET_OFFSETS, "--topic", topic)
        return sum(int(line.split(":")[2]) for line in said.splitlines() if line.count(":") == 2)

    def stop_broker(self, broker: int, how: signal.Signals) -> None:
        pid = self.cluster.pids[broker]
        os.kill(pid, how)
        until(lambda: not is_alive(pid))

    def start_broker(self, topic: str, broker: int) -> None:
        """Start a broker again and wait until it is in sync."""
        self.cluster.start_broker(broker)
        self.wait_described(
            topic, lambda parts: all(str(broker) in part["Isr"].split(",") for part in parts)
        )


@pytest.fixture
def tools(bundled: RunningCluster, java: Peer, tmp_path: Path) -> Tools:
    return Tools(bundled, java, tmp_path)


def until(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < deadline, "the condition never held"
        pause(0.2)


def test_replicas_that_are_missing_are_listed_until_they_are_back(tools: Tools) -> None:
    topic = tools.create("missing", "0:1:2,1:2:0")
    assert [part["Isr"] for part in tools.describe(topic)] == ["0,1,2", "1,2,0"]
    assert tools.describe(topic, "--under-replicated-partitions") == []
    tools.stop_broker(1, signal.SIGKILL)
    tools.wait_described(topic, lambda parts: all("1" not in part["Isr"] for part in parts))
    missing = tools.describe(topic, "--under-replicated-partitions")
    assert [part["Replicas"] for part in missing] == ["0,1,2", "1,2,0"]
    assert {part["Leader"] for part in missing} == {"0", "2"}
    assert tools.describe(topic, "--unavailable-partitions") == []
    tools.start_broker(topic, 1)
    assert tools.describe(topic, "--under-replicated-partitions") == []


def test_leader_election_gives_a_partition_back_to_its_preferred_leader(tools: Tools) -> None:
    topic = tools.create("preferred", "1:2:0")
    which = ("--topic", topic, "--partition", "0")
    assert "Valid replica already elected" in tools.elect("preferred", *which)
    tools.stop_broker(1, signal.SIGKILL)
    tools.wait_described(topic, lambda parts: parts[0]["Leader"] == "2")
    with pytest.raises(ToolFailed, match=r"PreferredLeaderNotAvailable|preferred"):
        tools.elect("preferred", *which)
    tools.start_broker(topic, 1)
    assert tools.describe(topic)[0]["Leader"] == "2"
    assert "Successfully completed leader election" in tools.elect("preferred", *which)
    assert tools.describe(topic)[0]["Leader"] == "1"


def test_an_unclean_election_is_made_by_request_only(tools: Tools) -> None:
    topic = tools.create("unclean", "1:2")
    tools.produce(topic, 10)
    tools.stop_broker(2, signal.SIGKILL)
    tools.wait_described(topic, lambda parts: parts[0]["Isr"] == "1")
    tools.produce(topic, 10)
    tools.stop_broker(1, signal.SIGKILL)
    tools.cluster.start_broker(2)
    until(lambda: len(tools.describe(topic, "--unavailable-partitions")) == 1)
    said = tools.elect("unclean", "--topic", topic, "--partition", "0")
    assert "Successfully completed leader election" in said
    tools.wait_described(topic, lambda parts: parts[0]["Leader"] == "2")
    assert tools.end_offset(topic) == 10
    tools.start_broker(topic, 1)
    assert tools.end_offset(topic) == 10


def test_a_partition_is_moved_with_all_its_records(tools: Tools) -> None:
    topic = tools.create("moved", "0:1")
    tools.produce(topic, 500)
    said = tools.reassign(topic, [2, 1], "--execute", "--throttle", "50000000")
    assert "The inter-broker throttle limit was set to 50000000 B/s" in said
    assert "Successfully started" in said
    until(lambda: "is completed" in tools.reassign(topic, [2, 1], "--verify"))
    assert "No partition reassignments found" in tools.run(REASSIGN, "--list")
    tools.wait_described(topic, lambda parts: parts[0]["Isr"] in {"1,2", "2,1"})
    assert tools.describe(topic)[0]["Replicas"] == "2,1"
    assert tools.end_offset(topic) == 500
    left = tools.cluster.data / "broker-0" / "logs" / f"{topic}-0"
    until(lambda: not left.exists())


def test_a_move_that_cannot_end_is_listed_and_cancelled(tools: Tools) -> None:
    """Its records are on a dead broker alone, so that nobody can catch up."""
    topic = tools.create("cancelled", "2")
    tools.produce(topic, 10)
    tools.stop_broker(2, signal.SIGKILL)
    tools.wait_described(topic, lambda parts: parts[0]["Leader"] in {"none", "-1"})
    tools.reassign(topic, [0], "--execute")
    assert f"{topic}-0" in tools.run(REASSIGN, "--list")
    tools.reassign(topic, [0], "--cancel")
    assert "No partition reassignments found" in tools.run(REASSIGN, "--list")
    tools.start_broker(topic, 2)
    assert tools.describe(topic)[0]["Replicas"] == "2"
    assert tools.end_offset(topic) == 10


def test_a_stopping_broker_costs_a_producer_nothing(tools: Tools, tmp_path: Path) -> None:
    """SIGTERM moves its leaders first: every record is acknowledged, if need be by a retry."""
    topic = tools.create("rolling", "0:1:2,1:2:0,2:0:1")
    program = JavaProgram(version=tools.version, main_class=VERIFIABLE_PRODUCER, heap_mb=256)
    arguments = ["--bootstrap-server", tools.cluster.bootstrap, "--topic", topic, "--acks", "-1"]
    settings = tmp_path / "producer.properties"
    settings.write_text("retries=1000\n")  # the tool's own 0 would show what clients never see
    arguments += ["--max-messages", "3000", "--throughput", "300"]
    arguments += ["--producer.config", str(settings)]
    command = program.command(tmp_path, *arguments, is_quiet=True)
    child = start_child("VerifiableProducer", command, log=tmp_path / "producer.out")
    try:
        child.wait_until(lambda: "producer_send_success" in child.said(), timeout_s=PATIENCE_S)
        tools.stop_broker(1, signal.SIGTERM)
        until(lambda: not child.is_running)
    finally:
        child.stop(patience_s=PATIENCE_S)
    events = _events(child.said())
    assert sum(event["name"] == "producer_send_success" for event in events) == 3_000
    assert not [event for event in events if event["name"] == "producer_send_error"]
    tools.start_broker(topic, 1)


def _events(said: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]
