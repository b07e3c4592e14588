"""Settings that change at run time: what wins, what is refused, and the fence they carry."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pytest

from broker.apis.incremental_alter_configs import OpType, apply_operations
from broker.config import BrokerConfig, parse_config
from broker.dynamic_config import (
    FENCE_SETTINGS,
    FOLLOWER_RATE,
    LEADER_RATE,
    NAMES_KEPT,
    DynamicConfig,
    Source,
    Synonym,
    WriteFence,
    check_default_broker,
    check_no_fence,
    check_one_broker,
    may_be_secret,
)
from broker.listeners import SecurityProtocol
from broker.log.config import InvalidConfig
from runtime.configuration.properties import parse_override
from tests.broker.rig import config
from wire.messages.incremental_alter_configs import IncrementalAlterConfigsAlterableConfig

PROTOCOLS = (
    "listener.security.protocol.map=CLIENTS:SASL_PLAINTEXT,BROKERS:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name=BROKERS",
    "sasl.enabled.mechanisms=SCRAM-SHA-256",
)


def parsed(*lines: str) -> BrokerConfig:
    given = ("broker.id=1", "zookeeper.connect=z:1", *lines)
    return parse_config(map(parse_override, given), file="f")


def described(dynamic: DynamicConfig, topic: str, name: str) -> tuple[str | None, Source]:
    (entry,) = [entry for entry in dynamic.describe_topic(topic) if entry.name == name]
    return entry.value, entry.source


def test_the_topic_wins_over_all_brokers_and_those_over_the_file() -> None:
    static = replace(config(), log_retention_ms=7, provided=MappingProxyType({}))
    dynamic = DynamicConfig(static)
    assert described(dynamic, "t", "retention.ms") == ("7", Source.STATIC_BROKER)
    assert described(dynamic, "t", "segment.bytes") == ("1073741824", Source.KAFKA_DEFAULT)
    dynamic.set_default_broker({"log.retention.ms": "8"})
    assert described(dynamic, "t", "retention.ms") == ("8", Source.DEFAULT_BROKER)
    dynamic.set_topic("t", {"retention.ms": "9"})
    assert described(dynamic, "t", "retention.ms") == ("9", Source.TOPIC)
    assert dynamic.log_config("t").retention_ms == 9
    assert dynamic.log_config("other").retention_ms == 8
    dynamic.forget("t")
    assert not dynamic.knows("t")
    assert dynamic.log_config("t").retention_ms == 8


def test_what_cannot_be_changes_nothing() -> None:
    dynamic = DynamicConfig(config())
    dynamic.set_default_broker({"write.fence.topics": "a"})
    with pytest.raises(InvalidConfig):
        dynamic.set_default_broker({"log.retention.ms": "soon", "write.fence.topics": ""})
    with pytest.raises(InvalidConfig):
        dynamic.set_topic("t", {"no.such": "1"})
    assert dynamic.fence.topics == {"a"}
    assert not dynamic.knows("t")


@pytest.mark.parametrize(
    ("topics", "allowed", "client", "topic", "refuses"),
    [
        ("", "", "anyone", "a", False),
        ("a, b ,", "", "anyone", "a", True),
        ("a, b ,", "", "anyone", "c", False),
        ("a", "mirror-x, failover", "mirror-x", "a", False),
        ("a", "mirror-x", "mirror-xx", "a", True),
        ("a", "", None, "a", True),
    ],
)
def test_a_fence_holds_against_all_but_the_named(
    topics: str, allowed: str, client: str | None, topic: str, refuses: bool
) -> None:
    dynamic = DynamicConfig(config())
    assert dynamic.fence == WriteFence()
    dynamic.set_default_broker(
        {"write.fence.topics": topics, "write.fence.allowed.client.ids": allowed}
    )
    assert dynamic.fence.refuses(client, topic) is refuses


PATTERNS = '{"include":["orders.*"],"exclude":["orders-test"]}'


def test_a_topic_that_is_made_behind_a_fence_of_its_pattern_is_closed() -> None:
    dynamic = DynamicConfig(config())
    dynamic.set_default_broker(
        {"write.fence.patterns": PATTERNS, "write.fence.allowed.client.ids": "mirror-x"}
    )
    refused = {
        topic: dynamic.fence.refuses("anyone", topic)
        for topic in ("orders", "orders-new", "orders-test", "other")
    }
    assert refused == {"orders": True, "orders-new": True, "orders-test": False, "other": False}
    assert not dynamic.fence.refuses("mirror-x", "orders-new")
    for number in range(3 * NAMES_KEPT):
        assert dynamic.fence.refuses("anyone", f"orders-{number}")
    assert len(dynamic.fence._matched) <= NAMES_KEPT


@pytest.mark.parametrize(
    "value", ["orders.*", "[]", '{"include":["("],"exclude":[]}', '{"include":[5],"exclude":[]}']
)
def test_patterns_that_cannot_be_read_are_refused_and_leave_the_fence_as_it_is(value: str) -> None:
    dynamic = DynamicConfig(config())
    dynamic.set_default_broker({"write.fence.patterns": PATTERNS})
    for take in (check_default_broker, dynamic.set_default_broker):
        with pytest.raises(InvalidConfig, match=r"^write\.fence\.patterns="):
            take({"write.fence.patterns": value})
    assert dynamic.fence.refuses("anyone", "orders-new")


def test_only_what_every_broker_can_follow_may_be_changed() -> None:
    check_default_broker({"write.fence.topics": "a", "log.retention.ms": "5"})
    with pytest.raises(InvalidConfig, match=r"^num\.partitions=5: cannot be changed"):
        check_default_broker({"num.partitions": "5"})


def test_what_is_somebody_elses_is_kept_and_shown_to_nobody() -> None:
    """Kafka takes names that it does not know, and hides their values: they may be passwords."""
    check_default_broker({"plugin.password": "x"})
    dynamic = DynamicConfig(config())
    dynamic.set_default_broker({"plugin.password": "x"})
    assert dynamic.running == config()
    assert may_be_secret("plugin.password")
    shown = ("max.connections", "log.retention.ms", LEADER_RATE, "num.io.threads", *FENCE_SETTINGS)
    assert not any(map(may_be_secret, shown))


def test_what_a_broker_has_for_itself_is_what_it_runs_by() -> None:
    dynamic = DynamicConfig(config(max_connections=7, log_cleaner_backoff_ms=8))
    dynamic.set_broker({"max.connections": "9"})
    dynamic.set_default_broker({"max.connections": "10", "log.cleaner.backoff.ms": "11"})
    assert (dynamic.running.max_connections, dynamic.running.log_cleaner_backoff_ms) == (9, 11)
    dynamic.set_broker({})
    assert dynamic.running.max_connections == 10
    dynamic.set_default_broker({})
    assert dynamic.running.max_connections == 7


def test_a_default_that_kafka_has_in_another_unit_is_no_synonym() -> None:
    """Clients' suites hold the list of synonyms against Kafka's, where it is empty."""
    dynamic = DynamicConfig(parsed())
    shown = {one.name: one for one in dynamic.describe_topic("t")}
    for name, value in (("retention.ms", "604800000"), ("flush.ms", str(2**63 - 1))):
        assert (shown[name].value, shown[name].source) == (value, Source.KAFKA_DEFAULT)
        assert shown[name].synonyms == ()
    assert shown["segment.bytes"].synonyms == (
        Synonym("log.segment.bytes", "1073741824", Source.KAFKA_DEFAULT),
    )


def test_what_is_not_set_is_shown_as_nothing_and_a_file_of_a_secret_as_its_path(
    tmp_path: Path,
) -> None:
    """An empty text would be a value."""
    file = tmp_path / "zookeeper.secret"
    file.write_text("x")
    file.chmod(0o600)
    static = parsed(f"zookeeper.password.file={file}", "num.io.threads=4")
    shown = {one.name: one.value for one in DynamicConfig(static).describe_broker(static)}
    assert (shown["broker.rack"], shown["advertised.listeners"]) == (None, None)
    assert shown["zookeeper.password.file"] == str(file)
    assert (shown["num.io.threads"], shown["num.network.threads"]) == ("4", "3")
    assert shown["log.cleaner.io.max.bytes.per.second"] == "1.7976931348623157E308"
    assert shown["write.fence.topics"] == ""


def test_a_broker_is_reached_where_it_was_told_last_and_speaks_there_what_it_spoke() -> None:
    static = parsed("listeners=CLIENTS://:1,BROKERS://:2", *PROTOCOLS)
    dynamic = DynamicConfig(static)
    told = {"advertised.listeners": "clients://far.example:9,BROKERS://127.0.0.1:2"}
    dynamic.set_broker(told)
    dynamic.set_default_broker({"advertised.listeners": "CLIENTS://all-the-same:1"})
    advertised = {str(one): one.protocol for one in dynamic.running.advertised_listeners}
    assert advertised == {
        "CLIENTS://far.example:9": SecurityProtocol.SASL_PLAINTEXT,
        "BROKERS://127.0.0.1:2": SecurityProtocol.PLAINTEXT,
    }
    dynamic.set_broker({})
    assert dynamic.running == static


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("CLIENTS://h:1", "BROKERS is missing: brokers use it"),
        ("BROKERS://0.0.0.0:1", "BROKERS://0.0.0.0:1: clients need a real host"),
        ("BROKERS://h:1,OTHER://h:2", "OTHER://h:2: listener.security.protocol.map does not name"),
        ("BROKERS://h:1,PLAINTEXT://h:2", "PLAINTEXT://h:2: no listener has this name"),
        ("BROKERS", "'BROKERS' is not of the form"),
    ],
)
def test_a_broker_is_not_told_to_be_where_nobody_could_come(value: str, reason: str) -> None:
    static = parsed("listeners=CLIENTS://:1,BROKERS://:2", *PROTOCOLS)
    dynamic = DynamicConfig(static)
    changed = {"advertised.listeners": value}
    for take in (dynamic.set_broker, partial(check_one_broker, static)):
        with pytest.raises(InvalidConfig) as wrong:
            take(changed)
        assert str(wrong.value).startswith(f"advertised.listeners={value}: {reason}")
    assert dynamic.running == static


def test_all_brokers_are_not_told_to_be_at_one_address() -> None:
    with pytest.raises(InvalidConfig, match="holds for one broker"):
        check_default_broker({"advertised.listeners": "PLAINTEXT://h:1"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.connections", "-1"),
        ("max.connections.per.ip.overrides", "localhost"),
        ("log.cleaner.io.buffer.load.factor", "much"),
        ("producer.id.expiration.ms", "0"),
        ("num.io.threads", "many"),
        ("num.network.threads", "0"),
    ],
)
def test_a_value_that_cannot_be_is_refused_and_changes_nothing(name: str, value: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{name}={value}: "):
        check_one_broker(config(), {name: value})
    dynamic = DynamicConfig(config())
    if "threads" not in name:
        with pytest.raises(InvalidConfig):
            dynamic.set_broker({name: value, "log.retention.ms": "5"})
    assert dynamic.running == config()
    assert dynamic.log_config("t").retention_ms != 5


@pytest.mark.parametrize(
    "name", ["broker.id", "num.partitions", "queued.max.requests", "listeners"]
)
def test_what_a_broker_keeps_until_it_starts_again_is_read_only(name: str) -> None:
    with pytest.raises(InvalidConfig, match="cannot be changed while brokers run"):
        check_one_broker(config(), {name: "1"})


@pytest.mark.parametrize("name", ["ssl.key.password", "sasl.jaas.config"])
def test_a_refusal_does_not_repeat_what_is_secret(name: str) -> None:
    for check in (check_default_broker, partial(check_one_broker, config())):
        with pytest.raises(InvalidConfig, match="cannot be changed while brokers run") as caught:
            check({name: "s3cret"})
        assert "s3cret" not in f"{caught.value} {caught.value!r}"


def operation(name: str, kind: OpType, value: str | None) -> IncrementalAlterConfigsAlterableConfig:
    return IncrementalAlterConfigsAlterableConfig(name=name, config_operation=kind, value=value)


def test_operations_are_kafkas() -> None:
    present = {"write.fence.topics": "a,b", "retention.ms": "5"}
    changed = apply_operations(
        present,
        [
            operation("write.fence.topics", OpType.APPEND, "b,c"),
            operation("retention.ms", OpType.DELETE, None),
            operation("segment.ms", OpType.SET, "7"),
        ],
    )
    assert changed == {"write.fence.topics": "a,b,c", "segment.ms": "7"}
    subtracted = apply_operations(
        changed, [operation("write.fence.topics", OpType.SUBTRACT, "a,c")]
    )
    assert subtracted["write.fence.topics"] == "b"
    assert present == {"write.fence.topics": "a,b", "retention.ms": "5"}


def test_a_list_that_is_not_set_begins_as_its_default() -> None:
    compact = [operation("cleanup.policy", OpType.APPEND, "compact")]
    defaults = {"cleanup.policy": "delete"}
    assert apply_operations({}, compact, defaults) == {"cleanup.policy": "delete,compact"}
    deletes = {"cleanup.policy": "compact"}
    assert apply_operations(deletes, compact, defaults) == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    "operations",
    [
        [operation("retention.ms", OpType.APPEND, "5")],
        [operation("retention.ms", OpType.SET, None)],
        [
            operation("retention.ms", OpType.SET, "5"),
            operation("retention.ms", OpType.DELETE, None),
        ],
    ],
)
def test_operations_that_cannot_be_are_refused(
    operations: list[IncrementalAlterConfigsAlterableConfig],
) -> None:
    with pytest.raises(InvalidConfig):
        apply_operations({}, operations)


def described_of_broker(dynamic: DynamicConfig, name: str) -> tuple[str | None, Source]:
    (entry,) = [entry for entry in dynamic.describe_broker(config()) if entry.name == name]
    return entry.value, entry.source


def test_what_a_broker_has_for_itself_wins_over_what_all_have() -> None:
    dynamic = DynamicConfig(config())
    dynamic.set_default_broker({"log.retention.ms": "8", "log.segment.bytes": "1000"})
    dynamic.set_broker({"log.retention.ms": "9"})
    dynamic.set_topic("own", {"retention.ms": "10"})
    assert described(dynamic, "t", "retention.ms") == ("9", Source.BROKER)
    assert described(dynamic, "t", "segment.bytes") == ("1000", Source.DEFAULT_BROKER)
    assert described(dynamic, "own", "retention.ms") == ("10", Source.TOPIC)
    assert described_of_broker(dynamic, "log.retention.ms") == ("9", Source.BROKER)
    dynamic.set_default_broker({"log.retention.ms": "11"})
    assert dynamic.log_config("t").retention_ms == 9
    with pytest.raises(InvalidConfig):
        dynamic.set_broker({"log.retention.ms": "soon"})
    dynamic.set_broker({})
    assert dynamic.log_config("t").retention_ms == 11
    assert described_of_broker(dynamic, "log.retention.ms") == ("11", Source.DEFAULT_BROKER)


def test_a_setting_names_all_that_give_it_a_value() -> None:
    """Also those in other units, as Apache Kafka 3.9.2 tells `kafka-configs --describe`."""
    given = MappingProxyType({"log.retention.hours": "1"})
    static = replace(config(), log_retention_ms=3_600_000, provided=given)
    dynamic = DynamicConfig(static)
    dynamic.set_default_broker({"log.retention.ms": "8"})
    dynamic.set_broker({"log.retention.ms": "9"})
    dynamic.set_topic("t", {"retention.ms": "10"})
    default = ("log.retention.hours", "168", Source.KAFKA_DEFAULT)
    broker = [
        ("log.retention.ms", "9", Source.BROKER),
        ("log.retention.ms", "8", Source.DEFAULT_BROKER),
    ]
    (entry,) = [one for one in dynamic.describe_topic("t") if one.name == "retention.ms"]
    file = ("log.retention.ms", "3600000", Source.STATIC_BROKER)
    assert entry.synonyms == (("retention.ms", "10", Source.TOPIC), *broker, file, default)
    (entry,) = [one for one in dynamic.describe_broker(static) if one.name == "log.retention.ms"]
    in_hours = ("log.retention.hours", "1", Source.STATIC_BROKER)
    assert entry.synonyms == (*broker, in_hours, default)
    assert entry.value == "9"
    names = {one.name for one in dynamic.describe_broker(static) if not one.read_only}
    assert {"log.segment.bytes", "write.fence.topics"} <= names
    assert "broker.id" not in names


def test_a_list_is_described_in_the_order_in_which_it_was_given() -> None:
    dynamic = DynamicConfig(config())
    dynamic.set_topic("t", {"cleanup.policy": "delete, compact"})
    described = {entry.name: entry for entry in dynamic.describe_topic("t")}
    assert described["cleanup.policy"].value == "delete,compact"
    assert described["cleanup.policy"].synonyms[0].value == "delete,compact"
    dynamic.set_topic("t", {"cleanup.policy": ""})
    assert {one.name: one.value for one in dynamic.describe_topic("t")}["cleanup.policy"] == ""


def test_whether_a_fence_sends_clients_away_is_true_or_false() -> None:
    dynamic = DynamicConfig(config())
    dynamic.set_default_broker({"write.fence.rebootstrap": "true"})
    for take in (dynamic.set_default_broker, check_default_broker):
        with pytest.raises(InvalidConfig, match=r"^write\.fence\.rebootstrap=.*true or false"):
            take({"write.fence.rebootstrap": "yes"})
    assert dynamic.fence.sends_away


def test_a_fence_is_not_for_one_broker_and_a_throttle_is_a_number() -> None:
    check_one_broker(config(), {LEADER_RATE: "1000", "log.retention.ms": "5"})
    with pytest.raises(InvalidConfig, match="holds for all brokers or none"):
        check_one_broker(config(), {"write.fence.topics": "a"})
    for wrong in ("-1", "fast", str(2**63)):
        with pytest.raises(InvalidConfig, match="whole number"):
            check_one_broker(config(), {FOLLOWER_RATE: wrong})
    dynamic = DynamicConfig(config())
    assert dynamic.replication_rate(LEADER_RATE) == 2**63 - 1
    dynamic.set_default_broker({LEADER_RATE: "7"})
    assert dynamic.replication_rate(LEADER_RATE) == 7
    dynamic.set_broker({LEADER_RATE: "5"})
    assert dynamic.replication_rate(LEADER_RATE) == 5


@pytest.mark.parametrize("text", ["0:1,12:3", "*", ""])
def test_throttled_replicas_are_partition_and_broker(text: str) -> None:
    dynamic = DynamicConfig(config())
    name = "leader.replication.throttled.replicas"
    dynamic.set_topic("t", {name: text})
    assert described(dynamic, "t", name) == (text, Source.TOPIC)
    for wrong in ("0", "a:1", "0:1,*", "0:1:2"):
        with pytest.raises(InvalidConfig, match="partition:broker"):
            dynamic.set_topic("t", {name: wrong})


@pytest.mark.parametrize("own_first", [True, False])
def test_what_conflicts_with_a_default_holds_all_the_same_and_takes_nothing_else_away(
    own_first: bool,
) -> None:
    dynamic = DynamicConfig(config())
    own = {"min.compaction.lag.ms": "20", "retention.ms": "-1"}
    defaults = {"log.cleaner.max.compaction.lag.ms": "10"}
    check_default_broker(defaults)
    if own_first:
        dynamic.set_topic("t", own)
        dynamic.set_default_broker(defaults)
    else:
        dynamic.set_default_broker(defaults)
        dynamic.set_topic("t", own)
    now = dynamic.log_config("t")
    assert (now.min_compaction_lag_ms, now.max_compaction_lag_ms) == (20, 10)
    assert now.retention_ms == -1


def test_a_default_that_conflicts_with_a_brokers_own_does_not_lift_the_fence() -> None:
    dynamic = DynamicConfig(config())
    dynamic.set_broker({"log.cleaner.max.compaction.lag.ms": "10"})
    shared = {"log.cleaner.min.compaction.lag.ms": "20", "write.fence.topics": "t"}
    check_default_broker(shared)
    dynamic.set_default_broker(shared)
    assert dynamic.fence.topics == {"t"}
    with pytest.raises(InvalidConfig, match="must be at most"):
        check_default_broker({**shared, "log.cleaner.max.compaction.lag.ms": "10"})


def test_brokers_that_are_closed_by_rights_show_no_fence_and_take_none() -> None:
    """By what is shown `failover` tells how a site is closed. A fence of before stays in force."""
    dynamic = DynamicConfig(config(write_fence_enable=False))
    assert dynamic.describe_default_broker() == []
    named = {entry.name for entry in dynamic.describe_broker(config())}
    assert not named.intersection(FENCE_SETTINGS)
    with pytest.raises(InvalidConfig, match=r"write\.fence\.enable is false"):
        check_no_fence({"write.fence.topics": "a"})
    check_no_fence({"write.fence.topics": "", "log.retention.ms": "7"})
    dynamic.set_default_broker({"write.fence.topics": "a"})
    assert dynamic.fence.topics == {"a"}
    assert [entry.name for entry in dynamic.describe_default_broker()] == ["write.fence.topics"]
