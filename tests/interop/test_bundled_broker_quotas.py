"""Quotas of the bundled brokers beside Apache Kafka's own tool."""

import time
from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka import Producer

from tests.clusters import RunningCluster, run_cluster
from tests.interop.matrix import Peer
from tests.interop.peers import run_tool
from tests.interop.peers.tools import configs
from tests.interop.secured import JAVA
from tests.interop.sites import QUIET, create_topic

SUBJECT: Final = "Quotas of the bundled broker"
RATE: Final = "producer_byte_rate=100000"


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(tmp_path_factory.mktemp("bundled")) as running:
        yield running


def seconds_to_write(bundled: RunningCluster, client_id: str, topic: str, size: int) -> float:
    """Return how long a producer takes for so many bytes."""
    settings = {"bootstrap.servers": bundled.bootstrap, "client.id": client_id, **QUIET}
    producer = Producer({**settings, "batch.size": 50_000, "linger.ms": 0})
    began = time.monotonic()
    for _ in range(size // 50_000):
        producer.produce(topic, b"x" * 50_000)
        producer.flush(60)
    return time.monotonic() - began


@pytest.mark.matrix(subject=SUBJECT)
@pytest.mark.parametrize("java", JAVA, ids=str)
def test_kafkas_tool_sets_describes_and_removes_quotas_that_hold(
    bundled: RunningCluster, java: Peer
) -> None:
    name = f"c {java.version}"
    topic = f"quota-{java.version}"
    create_topic(bundled, topic)
    at = ("--bootstrap-server", bundled.bootstrap)
    entity = ("--entity-type", "clients", "--entity-name", name)
    run_tool(java.version, configs(java.version), *at, "--alter", *entity, "--add-config", RATE)
    told = run_tool(java.version, configs(java.version), *at, "--describe", *entity)
    assert f"client-id '{name}'" in told
    assert "producer_byte_rate=100000.0" in told
    # A million bytes may come at once, and the other million take ten seconds.
    assert seconds_to_write(bundled, name, topic, 2_000_000) > 8
    user = ("--entity-type", "users", "--entity-default", "--entity-type", "clients")
    both = (*user, "--entity-name", name)
    run_tool(
        java.version,
        configs(java.version),
        *at,
        "--alter",
        *both,
        "--add-config",
        "consumer_byte_rate=9",
    )
    told = run_tool(java.version, configs(java.version), *at, "--describe", *both)
    assert "consumer_byte_rate=9.0" in told
    others = "request_percentage=12.5,controller_mutation_rate=0.5"
    run_tool(java.version, configs(java.version), *at, "--alter", *entity, "--add-config", others)
    told = run_tool(java.version, configs(java.version), *at, "--describe", *entity)
    assert all(one in told for one in others.split(","))
    names = "request_percentage,controller_mutation_rate"
    run_tool(java.version, configs(java.version), *at, "--alter", *entity, "--delete-config", names)
    for one, key in ((entity, "producer_byte_rate"), (both, "consumer_byte_rate")):
        run_tool(java.version, configs(java.version), *at, "--alter", *one, "--delete-config", key)
        assert "_byte_rate" not in run_tool(
            java.version, configs(java.version), *at, "--describe", *one
        )
