"""Secured bundled brokers beside Apache Kafka: the mirror both ways, and Kafka's own tools."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.dc_yaml import dc_yaml, flow
from tests.interop.matrix import Peer
from tests.interop.peers import (
    KAFKA_3_ZOOKEEPER,
    KAFKA_4_KRAFT,
    NEWEST_3,
    NEWEST_4,
    Kind,
    ToolFailed,
    run_tool,
)
from tests.interop.peers.tools import CONSOLE_CONSUMER, TOPICS, configs
from tests.interop.secured import JAVA, SESSION_MS, SecuredKafka, run_secured
from tests.interop.sites import Site, by_plaintext, create_topic, read_committed, write
from tests.mirror.daemon import run_mirror
from tests.secured_cluster import RIGHT, WRONG, Secured, SecuredCluster, run_secured_cluster
from tests.zookeeper import run_witness
from wire.net.security import Mechanism

SUBJECT: Final = "TLS and SASL of the bundled broker"
WAYS: Final = (
    ("SSL", Mechanism.PLAIN),
    ("SASL_PLAINTEXT", Mechanism.PLAIN),
    ("SASL_SSL", Mechanism.SCRAM_SHA_512),
)
IDS: Final = [f"{way}-{how.value}" for way, how in WAYS]
CONSOLE_PRODUCER: Final = {
    NEWEST_3: "kafka.tools.ConsoleProducer",
    NEWEST_4: "org.apache.kafka.tools.ConsoleProducer",
}
COUNT: Final = 3_000


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    # Kafka's own tools, which write into ZooKeeper here, have no login there.
    settings = {"connections.max.reauth.ms": str(SESSION_MS), "zookeeper.set.acl": "false"}
    with run_secured_cluster(tmp_path_factory.mktemp("bundled"), more=settings) as running:
        yield running


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_witness(tmp_path_factory.mktemp("witness")) as address:
        yield address


@pytest.fixture(scope="module", params=(KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT), ids=str)
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredKafka]:
    kind: Kind = request.param
    with run_secured(tmp_path_factory.mktemp(kind.label), kind) as running:
        yield running


@pytest.mark.matrix(subject=SUBJECT)
@pytest.mark.parametrize("direction", ["from the bundled broker", "to the bundled broker"])
@pytest.mark.parametrize("protocol", [protocol for protocol, _ in WAYS])
def test_the_mirror_runs_over(
    kafka: SecuredKafka,
    bundled: SecuredCluster,
    witness: str,
    tmp_path: Path,
    protocol: str,
    direction: str,
) -> None:
    """Both sites speak the same way; the records are looked at without it."""
    mechanism = dict(WAYS)[protocol]
    sites: list[tuple[Secured, Site]] = [
        (bundled, by_plaintext(bundled)),
        (kafka, kafka.cluster),
    ]
    if direction.startswith("to"):
        sites.reverse()
    (source, plain_source), (target, plain_target) = sites
    topic = f"{protocol}-{direction[:2]}-{kafka.cluster.kind.label}".replace(" ", "-")
    file = tmp_path / "dc.yaml"
    file.write_text(
        dc_yaml(
            flow(topics=topic, discovery_interval_ms=300),
            dc1=source.section(protocol, mechanism),
            dc2=target.section(protocol, mechanism),
            witness=witness,
            path=f"/{topic}",
            coordination={"session_timeout_ms": 4_000},
        )
    )
    create_topic(plain_source, topic)
    write(plain_source, topic, 0, COUNT, value_bytes=200)
    with run_mirror(file) as mirror:
        mirror.wait_mirrored(topic, COUNT)
        write(plain_source, topic, COUNT, 100)
        mirror.wait_mirrored(topic, COUNT + 100)
        assert mirror.stop() == 0
        assert RIGHT not in mirror.log
    written = read_committed(plain_source, topic)
    assert len(written) == COUNT + 100
    assert read_committed(plain_target, topic) == written


@pytest.mark.matrix(subject=SUBJECT)
@pytest.mark.parametrize("java", JAVA, ids=str)
@pytest.mark.parametrize(("protocol", "mechanism"), WAYS, ids=IDS)
def test_kafkas_tools_create_write_and_read_over(
    bundled: SecuredCluster, tmp_path: Path, java: Peer, protocol: str, mechanism: Mechanism
) -> None:
    client = str(bundled.java_properties(protocol, mechanism, tmp_path))
    host, port = bundled.address(protocol)
    server = ("--bootstrap-server", f"{host}:{port}")
    topic = f"tools-{protocol}-{java.version}"
    made = ("--create", "--topic", topic, "--command-config", client)
    run_tool(java.version, TOPICS, *server, *made)
    lines = [f"line {number}" for number in range(500)]
    written = ("--topic", topic, "--producer.config", client)
    producer = CONSOLE_PRODUCER[java.version]
    run_tool(java.version, producer, *server, *written, given="\n".join(lines) + "\n")
    wanted = ("--topic", topic, "--from-beginning", "--max-messages", "500")
    read = run_tool(java.version, CONSOLE_CONSUMER, *server, *wanted, "--consumer.config", client)
    # Kafka 4's tools also say that their options have newer names.
    assert [line for line in read.splitlines() if line.startswith("line")] == lines


@pytest.mark.matrix(subject=SUBJECT)
@pytest.mark.parametrize("java", JAVA, ids=str)
def test_kafkas_tools_set_scram_users(bundled: SecuredCluster, tmp_path: Path, java: Peer) -> None:
    client = bundled.java_properties("SASL_SSL", Mechanism.SCRAM_SHA_512, tmp_path)
    host, port = bundled.address("SASL_SSL")
    server = ("--bootstrap-server", f"{host}:{port}")
    name = f"dave-{java.version}"
    entity = ("--entity-type", "users", "--entity-name", name)
    setting = "SCRAM-SHA-512=[iterations=4096,password=swordfish]"
    command = ("--command-config", str(client))
    run_tool(
        java.version,
        configs(java.version),
        *server,
        *command,
        "--alter",
        *entity,
        "--add-config",
        setting,
    )
    client.write_text(
        client.read_text().replace('"mirror"', f'"{name}"').replace(RIGHT, "swordfish")
    )
    run_tool(java.version, TOPICS, *server, *command, "--list")
    client.write_text(client.read_text().replace("swordfish", WRONG))
    with pytest.raises(ToolFailed, match="SaslAuthenticationException"):
        run_tool(java.version, TOPICS, *server, *command, "--list")


@pytest.mark.matrix(subject=SUBJECT, against=str(JAVA[0]))
def test_users_that_kafka_3_writes_into_zookeeper_are_let_in(
    bundled: SecuredCluster, tmp_path: Path
) -> None:
    entity = ("--entity-type", "users", "--entity-name", "erin smith")
    setting = "SCRAM-SHA-512=[iterations=5000,password=swordfish]"
    written = ("--zookeeper", bundled.zookeeper, "--alter", *entity, "--add-config", setting)
    run_tool(NEWEST_3, configs(NEWEST_3), *written)
    client = bundled.java_properties("SASL_SSL", Mechanism.SCRAM_SHA_512, tmp_path)
    client.write_text(
        client.read_text().replace('"mirror"', '"erin smith"').replace(RIGHT, "swordfish")
    )
    host, port = bundled.address("SASL_SSL")
    server = ("--bootstrap-server", f"{host}:{port}", "--command-config", str(client))
    run_tool(NEWEST_3, TOPICS, *server, "--list")
