"""ACLs of the bundled brokers beside Apache Kafka's own tool, over the wire and in ZooKeeper."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.interop.matrix import Peer
from tests.interop.peers import NEWEST_3, ToolFailed, run_tool
from tests.interop.peers.tools import TOPICS, acls
from tests.interop.secured import JAVA
from tests.interop.sites import by_plaintext, create_topic
from tests.mirror.daemon import wait_until
from tests.secured_cluster import USER, SecuredCluster, run_secured_cluster
from wire.net.security import Mechanism

SUBJECT: Final = "ACLs of the bundled broker"
AUTHORIZER: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
HIDDEN: Final = ("does not exist", "Topic authorization failed")
"""The words of Kafka's tool for a topic that it may not see."""
ME: Final = f"User:{USER}"


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    # Kafka's own tools, which write into ZooKeeper here, have no login there.
    settings = {**AUTHORIZER, "zookeeper.set.acl": "false"}
    with run_secured_cluster(tmp_path_factory.mktemp("bundled"), more=settings) as running:
        yield running


def server(bundled: SecuredCluster, folder: Path) -> tuple[str, ...]:
    """Return how a tool reaches the broker."""
    client = bundled.java_properties("SASL_SSL", Mechanism.SCRAM_SHA_512, folder)
    host, port = bundled.address("SASL_SSL")
    return ("--bootstrap-server", f"{host}:{port}", "--command-config", str(client))


def is_described(at: tuple[str, ...], version: str, topic: str) -> bool:
    """Say whether Kafka's tool sees the topic."""
    try:
        return topic in run_tool(version, TOPICS, *at, "--describe", "--topic", topic)
    except ToolFailed as failed:
        if not any(words in str(failed) for words in HIDDEN):
            raise
        return False


@pytest.mark.matrix(subject=SUBJECT)
@pytest.mark.parametrize("java", JAVA, ids=str)
def test_kafkas_tool_adds_lists_and_removes_entries(
    bundled: SecuredCluster, tmp_path: Path, java: Peer
) -> None:
    topic = f"tool-{java.version}"
    create_topic(by_plaintext(bundled), topic)
    at, tool = server(bundled, tmp_path), acls(java.version)
    assert is_described(at, java.version, topic)
    literal = ("--topic", topic)
    prefixed = ("--topic", topic[:-1], "--resource-pattern-type", "prefixed")
    run_tool(java.version, tool, *at, "--add", "--allow-principal", "User:other", *literal)
    assert not is_described(at, java.version, topic)
    who = ("--allow-principal", ME, "--allow-host", "127.0.0.1")
    what = ("--operation", "Read", "--operation", "DescribeConfigs")  # the tool asks for both
    run_tool(java.version, tool, *at, "--add", *who, *what, *prefixed)
    assert is_described(at, java.version, topic)
    matching = ("--topic", topic, "--resource-pattern-type", "match")
    listed = run_tool(java.version, tool, *at, "--list", *matching)
    for told in (
        f"ResourcePattern(resourceType=TOPIC, name={topic}, patternType=LITERAL)",
        f"ResourcePattern(resourceType=TOPIC, name={topic[:-1]}, patternType=PREFIXED)",
        "(principal=User:other, host=*, operation=ALL, permissionType=ALLOW)",
        f"(principal={ME}, host=127.0.0.1, operation=READ, permissionType=ALLOW)",
    ):
        assert told in listed
    run_tool(java.version, tool, *at, "--remove", "--force", *matching)
    assert "ResourcePattern" not in run_tool(java.version, tool, *at, "--list", *matching)


@pytest.mark.matrix(subject=SUBJECT, against=str(JAVA[0]))
def test_entries_that_kafka_3_writes_into_zookeeper_hold(
    bundled: SecuredCluster, tmp_path: Path
) -> None:
    """Kafka's own AclAuthorizer writes them, tells of them, and reads those of the broker."""
    create_topic(by_plaintext(bundled), "by-kafka")
    at, tool = server(bundled, tmp_path), acls(NEWEST_3)
    direct = ("--authorizer-properties", f"zookeeper.connect={bundled.zookeeper}")
    entry = ("--deny-principal", ME, "--operation", "Describe")
    for name in (
        ("--topic", "by-kafka"),
        ("--topic", "by-", "--resource-pattern-type", "prefixed"),
    ):
        assert is_described(at, NEWEST_3, "by-kafka")
        run_tool(NEWEST_3, tool, *direct, "--add", *entry, *name)
        wait_until("closed", lambda: not is_described(at, NEWEST_3, "by-kafka"))
        run_tool(NEWEST_3, tool, *direct, "--remove", "--force", *entry, *name)
        wait_until("open", lambda: is_described(at, NEWEST_3, "by-kafka"))
    own = ("--allow-principal", ME, "--operation", "Write", "--transactional-id", "x")
    run_tool(NEWEST_3, tool, *at, "--add", *own)
    listed = run_tool(NEWEST_3, tool, *direct, "--list", "--transactional-id", "x")
    assert f"(principal={ME}, host=*, operation=WRITE, permissionType=ALLOW)" in listed
