"""Apache Kafka's producer and consumer while a bundled broker of three is killed and comes back."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clusters import run_cluster
from tests.interop.matrix import Peer
from tests.interop.peers import NEWEST_3, NEWEST_4, run_tool
from tests.interop.peers.child import Child, start_child
from tests.interop.peers.java_program import JavaProgram
from tests.interop.peers.tools import TOPICS, VERIFIABLE_CONSUMER, VERIFIABLE_PRODUCER
from tests.mirror.daemon import wait_until

pytestmark = pytest.mark.matrix(subject="The bundled broker with foreign clients")

PARTITIONS: Final = 6
PATIENCE_S: Final = 120
OVERRIDES: Final = {
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "3",
    "zookeeper.session.timeout.ms": "2000",
}


def events(child: Child, name: str) -> list[dict[str, Any]]:
    """Return what a verifiable client has said of one kind."""
    lines = [line for line in child.said().splitlines() if line.startswith("{")]
    return [
        event
        for line in lines
        if line.endswith("}") and (event := json.loads(line))["name"] == name
    ]


def acknowledged(producer: Child) -> int:
    """Return how many records it was promised."""
    return len(events(producer, "producer_send_success"))


def wait_acknowledged(producer: Child, count: int) -> None:
    """Wait until it was promised so many."""
    producer.wait_until(lambda: acknowledged(producer) >= count, timeout_s=PATIENCE_S)


@pytest.mark.parametrize(
    "java",
    [Peer(name="Java clients", version=version) for version in (NEWEST_3, NEWEST_4)],
    ids=str,
)
def test_what_was_acknowledged_outlives_the_broker_that_did_and_its_coordinator(
    java: Peer, tmp_path: Path
) -> None:
    def start(main_class: str, *arguments: str) -> Child:
        program = JavaProgram(version=java.version, main_class=main_class, heap_mb=256)
        name = main_class.rpartition(".")[2]
        at = ("--bootstrap-server", cluster.bootstrap, "--topic", "outliving")
        command = program.command(tmp_path, *at, *arguments, is_quiet=True)
        return start_child(name, command, log=tmp_path / f"{name}.out")

    def topics(*arguments: str) -> str:
        at = ("--bootstrap-server", cluster.bootstrap, "--topic", "outliving")
        return run_tool(java.version, TOPICS, *at, *arguments)

    with run_cluster(tmp_path, brokers=3, overrides=OVERRIDES) as cluster:
        topics("--create", "--partitions", str(PARTITIONS))
        consumer = start(
            VERIFIABLE_CONSUMER,
            "--group-id",
            "outliving",
            "--reset-policy",
            "earliest",
            "--verbose",
        )
        producer = start(VERIFIABLE_PRODUCER, "--throughput", "200", "--acks", "-1")
        try:
            for victim in range(3):
                cluster.kill_broker(victim)
                wait_acknowledged(producer, acknowledged(producer) + 300)
                cluster.start_broker(victim)
                wait_until(
                    "all replicas in sync",
                    lambda: not topics("--describe", "--under-replicated-partitions").split(),
                    PATIENCE_S,
                )
            producer.stop(patience_s=PATIENCE_S)
            sent = {place(event) for event in events(producer, "producer_send_success")}
            consumer.wait_until(
                lambda: sent <= {place(event) for event in events(consumer, "record_data")},
                timeout_s=PATIENCE_S,
            )
        finally:
            producer.kill()
            consumer.kill()
    assert len(sent) >= 900
    read = {place(event) for event in events(consumer, "record_data")}
    assert len({(partition, offset) for partition, offset, _ in read}) == len(read)


def place(event: dict[str, Any]) -> tuple[int, int, str]:
    """Return where a record is and what it is."""
    return event["partition"], event["offset"], event["value"]
