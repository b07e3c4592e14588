"""`broker topics` and its like ask Apache Kafka as they ask the bundled brokers."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, Final, cast

import pytest
from confluent_kafka import Producer

from tests.broker.commands.commanding import Commands
from tests.interop.peers import KINDS, KafkaCluster, Kind, run_kafka
from tests.interop.peers.kinds import Mode
from tests.interop.rights import KRAFT_AUTHORIZER, ZOOKEEPER_AUTHORIZER
from tests.interop.sites import QUIET, create_topic, write

pytestmark = pytest.mark.matrix(subject="Commands of the bundled broker's program")

PATIENCE_S: Final = 60


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.label)
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    kind: Kind = request.param
    rights = KRAFT_AUTHORIZER if kind.mode is Mode.KRAFT else ZOOKEEPER_AUTHORIZER
    with run_kafka(tmp_path_factory.mktemp(kind.label), kind, overrides=rights) as cluster:
        yield cluster


@pytest.fixture
def commands(kafka: KafkaCluster) -> Commands:
    return Commands(kafka.bootstrap)


def test_topics_and_settings(commands: Commands) -> None:
    said = commands.said
    said("topics", "create", "cli", "--partitions", "2", "--set", "retention.ms=3600000")
    assert said("topics", "alter", "cli", "3") == "topic cli: has 3 partitions\n"
    described = _described(commands, "cli", partitions=3)
    assert (described["settings"], described["replicas"]) == ({"retention.ms": "3600000"}, 1)
    assert [one["end"] for one in described["partitions"]] == [0, 0, 0]
    said("configs", "set", "topic", "cli", "cleanup.policy=compact")
    [entry] = commands.told("configs", "describe", "topic", "cli", "--key", "cleanup.policy")
    assert (entry["value"], entry["source"]) == ("compact", "topic")
    said("configs", "unset", "topic", "cli", "cleanup.policy")
    said("configs", "set", "broker", "default", "log.retention.ms=7200000")
    [entry] = commands.told("configs", "describe", "broker", "default", "--key", "log.retention.ms")
    assert (entry["key"], entry["value"]) == ("log.retention.ms", "7200000")
    said("configs", "unset", "broker", "default", "log.retention.ms")
    assert "INVALID_CONFIG" in said("configs", "set", "topic", "cli", "retention.ms=x", status=1)
    said("topics", "delete", "cli", "--yes")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in said("topics", "describe", "cli", status=1)


def _described(commands: Commands, topic: str, partitions: int) -> dict[str, Any]:
    """Return what is told of a topic; KRaft's controller acknowledges what brokers tell later."""
    deadline_s = monotonic() + PATIENCE_S
    while True:
        [described] = commands.told("topics", "describe", topic)
        if len(described["partitions"]) == partitions or monotonic() > deadline_s:
            return cast("dict[str, Any]", described)


def test_groups(kafka: KafkaCluster, commands: Commands) -> None:
    create_topic(kafka, "cli-group")
    write(kafka, "cli-group", 0, 10)
    reset = ("groups", "reset-offsets", "cli", "--topic", "cli-group", "--yes")
    moved = commands.told(*reset, "--to-latest")
    assert sum(move["after"] for move in moved) == 10
    assert {one["group"] for one in commands.told("groups", "list")} == {"cli"}
    [described] = commands.told("groups", "describe", "cli")
    assert (described["state"], described["members"]) == ("Empty", [])
    assert {one["lag"] for one in described["positions"]} == {0}
    moved = commands.told(*reset, "--by-duration", "1h")
    assert {move["after"] for move in moved} == {0}
    commands.said("groups", "delete-offsets", "cli", "--yes")
    assert "no such group" in commands.said("groups", "delete", "lost", "--yes", status=1)


def test_rights_users_and_quotas(commands: Commands, tmp_path: Path) -> None:
    said = commands.said
    entry = ("--topic", "cli-", "--prefixed", "--principal", "User:a", "--operation", "read")
    said("acls", "add", *entry)
    [held] = commands.told("acls", "list", "--topic", "cli-x", "--matching")
    assert (held["pattern"], held["operation"], held["permission"]) == (
        "prefixed",
        "read",
        "allow",
    )
    assert "1 entries removed" in said("acls", "remove", *entry, "--yes")
    password = tmp_path / "password"
    password.write_text("secret")
    said("users", "add", "cli", "--password-file", str(password))
    assert [one["user"] for one in commands.told("users", "list")] == ["cli"]
    said("users", "remove", "cli", "--yes")
    assert commands.told("users", "list") == []
    said("quotas", "set", "--user", "cli", "producer_byte_rate=1e6")
    [quota] = commands.told("quotas", "list", "--user", "cli")
    assert (quota["quota"], quota["value"]) == ("producer_byte_rate", 1_000_000)
    said("quotas", "unset", "--user", "cli", "producer_byte_rate")
    assert commands.told("quotas", "list") == []


def test_transactions(kafka: KafkaCluster, commands: Commands) -> None:
    create_topic(kafka, "cli-transactions")
    settings = {"bootstrap.servers": kafka.bootstrap, **QUIET}
    producer = Producer({**settings, "transactional.id": "cli"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("cli-transactions", b"x", partition=0)
    producer.flush(30)
    [listed] = commands.told("transactions", "list", "--state", "Ongoing")
    assert listed["transactional_id"] == "cli"
    described = commands.told("transactions", "describe", "cli")
    assert described["partitions"] == ["cli-transactions-0"]
    hang = ("transactions", "find-hanging", "--max-transaction-minutes", "0")
    assert commands.told(*hang) == []
    aborted = commands.said("transactions", "abort", "cli-transactions:0", "0", "--yes")
    assert aborted.endswith("is aborted\n")
