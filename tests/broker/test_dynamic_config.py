"""Settings that change at run time: what wins, what is refused, and the fence they carry."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from broker.apis.incremental_alter_configs import Operation, apply_operations
from broker.dynamic_config import (
    DynamicConfig,
    Source,
    WriteFence,
    check_default_broker,
)
from broker.log.config import InvalidConfig
from tests.broker.rig import config
from wire.messages.incremental_alter_configs import IncrementalAlterConfigsAlterableConfig


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
    ("topics", "allowed", "client", "holds"),
    [
        ("", "", "anyone", False),
        ("a, b ,", "", "anyone", True),
        ("a", "mirror-x, failover", "mirror-x", False),
        ("a", "mirror-x", "mirror-xx", True),
        ("a", "", None, True),
    ],
)
def test_a_fence_holds_against_all_but_the_named(
    topics: str, allowed: str, client: str | None, holds: bool
) -> None:
    dynamic = DynamicConfig(config())
    assert dynamic.fence == WriteFence()
    dynamic.set_default_broker(
        {"write.fence.topics": topics, "write.fence.allowed.client.ids": allowed}
    )
    assert dynamic.fence.holds_against(client) is holds


def test_only_what_every_broker_can_follow_may_be_changed() -> None:
    check_default_broker({"write.fence.topics": "a", "log.retention.ms": "5"})
    with pytest.raises(InvalidConfig, match=r"^num\.partitions=5: cannot be changed"):
        check_default_broker({"num.partitions": "5"})


def operation(
    name: str, kind: Operation, value: str | None
) -> IncrementalAlterConfigsAlterableConfig:
    return IncrementalAlterConfigsAlterableConfig(name=name, config_operation=kind, value=value)


def test_operations_are_kafkas() -> None:
    present = {"write.fence.topics": "a,b", "retention.ms": "5"}
    changed = apply_operations(
        present,
        [
            operation("write.fence.topics", Operation.APPEND, "b,c"),
            operation("retention.ms", Operation.DELETE, None),
            operation("segment.ms", Operation.SET, "7"),
        ],
    )
    assert changed == {"write.fence.topics": "a,b,c", "segment.ms": "7"}
    subtracted = apply_operations(
        changed, [operation("write.fence.topics", Operation.SUBTRACT, "a,c")]
    )
    assert subtracted["write.fence.topics"] == "b"
    assert present == {"write.fence.topics": "a,b", "retention.ms": "5"}


def test_a_list_that_is_not_set_begins_as_its_default() -> None:
    compact = [operation("cleanup.policy", Operation.APPEND, "compact")]
    defaults = {"cleanup.policy": "delete"}
    assert apply_operations({}, compact, defaults) == {"cleanup.policy": "delete,compact"}
    deletes = {"cleanup.policy": "compact"}
    assert apply_operations(deletes, compact, defaults) == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    "operations",
    [
        [operation("retention.ms", Operation.APPEND, "5")],
        [operation("retention.ms", Operation.SET, None)],
        [
            operation("retention.ms", Operation.SET, "5"),
            operation("retention.ms", Operation.DELETE, None),
        ],
    ],
)
def test_operations_that_cannot_be_are_refused(
    operations: list[IncrementalAlterConfigsAlterableConfig],
) -> None:
    with pytest.raises(InvalidConfig):
        apply_operations({}, operations)
