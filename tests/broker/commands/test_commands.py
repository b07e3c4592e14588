"""`broker topics` and its like beside a bundled cluster that other modules use, too."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.broker.commands.commanding import Commands
from tests.commands import run_broker_command
from tests.failover.two_sites import QUIET, Sites

pytestmark = pytest.mark.integration


@pytest.fixture
def commands(shared_sites: Sites) -> Commands:
    return Commands(shared_sites.dc1.bootstrap)


def test_a_topic_is_created_grown_set_and_deleted(commands: Commands) -> None:
    said = commands.said
    setting = ("--set", "retention.ms=3600000")
    create = ("topics", "create", "cli-life", "--partitions", "2", *setting)
    assert "could be created" in said(*create, "--dry-run")
    assert said(*create) == "topic cli-life: created\n"
    assert "was there before" in said(*create, "--if-not-exists")
    assert "--if-not-exists" in said(*create, status=1)
    assert "INVALID_PARTITIONS" in said("topics", "alter", "cli-life", "1", status=1)
    assert said("topics", "alter", "cli-life", "3") == "topic cli-life: has 3 partitions\n"
    [described] = commands.told("topics", "describe", "cli-life")
    assert described["settings"] == {"retention.ms": "3600000"}
    assert [one["end"] for one in described["partitions"]] == [0, 0, 0]
    assert "PARTITION  LEADER" in said("topics", "describe", "cli-life")
    assert "cli-life" in {one["topic"] for one in commands.told("topics", "list")}
    assert "INVALID_CONFIG" in said("configs", "set", "topic", "cli-life", "nope=1", status=1)
    said("configs", "set", "topic", "cli-life", "cleanup.policy=compact", "retention.ms=7")
    said("configs", "unset", "topic", "cli-life", "retention.ms")
    [entry] = commands.told("configs", "describe", "topic", "cli-life")
    assert (entry["key"], entry["value"]) == ("cleanup.policy", "compact")
    assert [one["source"] for one in entry["synonyms"]] == ["topic", "default"]
    assert "--yes" in said("topics", "delete", "cli-life", status=2)
    assert said("topics", "delete", "cli-life", "--yes") == "topic cli-life: deleted\n"
    unknown = said("topics", "describe", "cli-life", status=1)
    assert unknown == "broker: topic cli-life: UNKNOWN_TOPIC_OR_PARTITION\n"


def test_a_group_is_described_moved_and_deleted(commands: Commands) -> None:
    said = commands.said
    reset = ("groups", "reset-offsets", "cli-group")
    said("topics", "create", "cli-read", "--partitions", "1")
    producer = Producer({"bootstrap.servers": commands.bootstrap, **QUIET})
    for number in range(10):
        producer.produce("cli-read", str(number), partition=0)
    producer.flush(30)
    settings = {"bootstrap.servers": commands.bootstrap, "group.id": "cli-group", **QUIET}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["cli-read"])
    assert len(consumer.consume(10, 60)) == 10
    consumer.commit(asynchronous=False)
    [described] = commands.told("groups", "describe", "cli-group")
    listed = ("groups", "list", "--group", "cli-gr.*")
    assert [one["group"] for one in commands.told(*listed, "--state", "stable")] == ["cli-group"]
    assert said(*listed, "--state", "Dead") == "no group matches\n"
    for chosen in (("--topic", "cli"), ("--lag-over", "0")):
        assert commands.told("groups", "describe", "cli-group", *chosen)[0]["positions"] == []
    [member] = described["members"]
    assert (described["state"], member["partitions"]) == ("Stable", ["cli-read-0"])
    assert "stop its members" in said(*reset, "--to-earliest", "--yes", status=1)
    assert "NON_EMPTY_GROUP" in said("groups", "delete", "cli-group", "--yes", status=1)
    consumer.close()
    assert commands.told(*reset, "--shift-by=-3", "--dry-run")[0]["after"] == 7
    assert "cli-read          0      10      4  -" in said(*reset, "--to-offset", "4", "--yes")
    [position] = commands.told("groups", "describe", "cli-group")[0]["positions"]
    assert (position["position"], position["end"], position["lag"]) == (4, 10, 6)
    later = ("--topic", "cli-read:0", "--by-duration", "1h", "--yes")
    assert commands.told(*reset, *later)[0]["after"] == 0
    assert "has no partition 5" in said(*reset, "--topic", "cli-read:5", "--to-latest", status=1)
    nobody = said("groups", "reset-offsets", "cli-nobody", "--to-latest", "--yes", status=1)
    assert "no position would change" in nobody
    forget = ("groups", "delete-offsets", "cli-group", "--yes")
    assert "1 positions forgotten" in said(*forget)
    said("topics", "delete", "cli-read", "--yes")


def test_users_and_quotas_come_and_go(commands: Commands, tmp_path: Path) -> None:
    said = commands.said
    password = tmp_path / "password"
    password.write_text("secret\n")
    said("users", "add", "cli-user", "--password-file", str(password))
    [user] = commands.told("users", "list", "cli-user")
    assert (user["mechanism"], user["iterations"]) == ("SCRAM-SHA-512", 8_192)
    other = ("--mechanism", "scram-sha-256", "--yes")
    assert "SCRAM-SHA-512 alone" in said("users", "remove", "cli-user", *other, status=1)
    said("users", "remove", "cli-user", "--yes")
    assert "no password" in said("users", "list", "cli-user", status=1)
    whose = ("--user", "cli-user", "--client-id-default")
    said("quotas", "set", *whose, "producer_byte_rate=2e6", "consumer_byte_rate=5")
    said("quotas", "unset", *whose, "consumer_byte_rate")
    [quota] = commands.told("quotas", "list", "--user", "cli-user")
    assert (quota["client-id"], quota["quota"], quota["value"]) == (
        "(default)",
        "producer_byte_rate",
        2_000_000,
    )
    said("quotas", "unset", *whose, "producer_byte_rate")


def test_a_cluster_without_an_authorizer_says_that_it_keeps_no_rights(commands: Commands) -> None:
    assert "authorizer.class.name" in commands.said("acls", "list", status=1)
    entry = ("--topic", "t", "--principal", "User:a", "--operation", "read")
    assert "SECURITY_DISABLED" in commands.said("acls", "add", *entry, status=1)


def test_a_transaction_without_its_coordinator_is_found_and_aborted(commands: Commands) -> None:
    said = commands.said
    said("topics", "create", "cli-transactions", "--partitions", "1")
    settings = {"bootstrap.servers": commands.bootstrap, **QUIET}
    producer = Producer({**settings, "transactional.id": "cli-transaction"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("cli-transactions", b"x", partition=0)
    producer.flush(30)
    described = commands.told("transactions", "describe", "cli-transaction")
    assert described["partitions"] == ["cli-transactions-0"]
    ongoing = commands.told("transactions", "list", "--state", "Ongoing")
    assert "cli-transaction" in {one["transactional_id"] for one in ongoing}
    hang = ("transactions", "find-hanging", "--topic", "cli-transactions")
    assert commands.told(*hang, "--max-transaction-minutes", "0") == []
    assert "no transaction is open since offset 5" in said(
        "transactions", "abort", "cli-transactions:0", "5", "--yes", status=1
    )
    aborted = said("transactions", "abort", "cli-transactions:0", "0", "--yes")
    assert aborted.endswith("is aborted\n")
    assert "open since: none" in said(
        "transactions", "abort", "cli-transactions:0", "0", "--yes", status=1
    )
    said("topics", "delete", "cli-transactions", "--yes")


def test_nobody_there_is_said_with_the_address() -> None:
    ended = run_broker_command("topics", "list", "--bootstrap", "127.0.0.1:1")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "broker: cluster 127.0.0.1:1: 127.0.0.1:1: Connection refused\n"
