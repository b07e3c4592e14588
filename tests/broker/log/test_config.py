"""Topic settings by Kafka's names."""

import pytest

from broker.log.config import (
    LONG_MAX,
    TOPIC_CONFIGS,
    InvalidConfig,
    LogConfig,
    from_broker_settings,
)


def test_the_table_and_the_defaults_agree() -> None:
    assert LogConfig().with_overrides({n: e.default for n, e in TOPIC_CONFIGS.items()}) == (
        LogConfig()
    )
    assert LogConfig().as_strings() == {n: e.default for n, e in TOPIC_CONFIGS.items()}


def test_overrides_are_typed_and_written_back_as_kafka_does() -> None:
    texts = {
        "cleanup.policy": "compact,delete",
        "retention.ms": "-1",
        "min.cleanable.dirty.ratio": "0.25",
        "preallocate": "true",
        "message.timestamp.type": "LogAppendTime",
        "flush.messages": str(LONG_MAX),
    }
    config = LogConfig().with_overrides({**texts, "cleanup.policy": " delete , compact "})
    assert config.compacts
    assert config.deletes
    assert config.stamps_append_time
    assert (config.retention_ms, config.min_cleanable_dirty_ratio) == (-1, 0.25)
    written = config.as_strings()
    assert {name: written[name] for name in texts} == texts


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("retention.msec", "1", "retention.msec: unknown topic setting"),
        ("retention.ms", "soon", "retention.ms=soon: must be a whole number"),
        ("retention.ms", "1.5", "retention.ms=1.5: must be a whole number"),
        ("retention.ms", "-2", "retention.ms=-2: must be at least -1"),
        ("segment.bytes", str(2**31), f"segment.bytes={2**31}: must be at most {2**31 - 1}"),
        ("segment.bytes", "13", "segment.bytes=13: must be at least 14"),
        ("min.cleanable.dirty.ratio", "1.1", "min.cleanable.dirty.ratio=1.1: must be at most 1"),
        ("min.cleanable.dirty.ratio", "nan", "min.cleanable.dirty.ratio=nan: must be at most 1"),
        ("min.cleanable.dirty.ratio", "x", "min.cleanable.dirty.ratio=x: must be a number"),
        ("preallocate", "yes", "preallocate=yes: must be true or false"),
        ("cleanup.policy", "keep", "cleanup.policy=keep: must list delete or compact"),
        ("remote.storage.enable", "true", "remote.storage.enable=true: must be false"),
        (
            "message.format.version",
            "new",
            "message.format.version=new: must be a version of Kafka, as 3.0-IV1",
        ),
        (
            "message.timestamp.type",
            "Create",
            "message.timestamp.type=Create: must be one of CreateTime, LogAppendTime",
        ),
        (
            "max.compaction.lag.ms",
            "5",
            None,
        ),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(name: str, value: str, line: str | None) -> None:
    if line is None:
        assert LogConfig().with_overrides({name: value}).max_compaction_lag_ms == 5
        return
    with pytest.raises(InvalidConfig) as raised:
        LogConfig().with_overrides({name: value})
    assert str(raised.value) == line


def test_a_topic_may_have_no_policy_and_keeps_everything() -> None:
    config = LogConfig().with_overrides({"cleanup.policy": ""})
    assert (config.deletes, config.compacts) == (False, False)


@pytest.mark.parametrize("version", ["0.10.2", "0.11.0-IV2", "1.0", "2.8-IV1", "3.0", "3.9-IV0"])
def test_topics_of_a_cluster_that_was_once_older_can_be_made(version: str) -> None:
    settings = {"message.format.version": version, "local.retention.ms": "-2"}
    assert LogConfig().with_overrides(settings).message_format_version == version


@pytest.mark.parametrize(
    ("settings", "oldest_ms", "newest_ms"),
    [
        ({}, LONG_MAX, LONG_MAX),
        ({"difference": "5"}, 5, 5),
        ({"difference": "5", "before": "7"}, 7, 5),
        ({"difference": "5", "after": "0"}, 5, 0),
    ],
)
def test_the_older_limit_of_stamps_counts_where_the_newer_ones_are_not_set(
    settings: dict[str, str], oldest_ms: int, newest_ms: int
) -> None:
    names = {f"message.timestamp.{name}.max.ms": value for name, value in settings.items()}
    config = LogConfig().with_overrides(names)
    assert (config.oldest_ms, config.newest_ms) == (oldest_ms, newest_ms)


def test_two_settings_that_conflict_are_named() -> None:
    with pytest.raises(InvalidConfig) as raised:
        LogConfig().with_overrides({"max.compaction.lag.ms": "5", "min.compaction.lag.ms": "6"})
    assert str(raised.value) == "min.compaction.lag.ms=6: must be at most max.compaction.lag.ms=5"


def test_broker_settings_change_the_defaults() -> None:
    config = from_broker_settings(
        {"log.segment.bytes": "1000", "message.max.bytes": "500", "listeners": "x"}
    )
    assert (config.segment_bytes, config.max_message_bytes) == (1000, 500)
