"""The topic settings in use: typed, with defaults, parsed from Kafka's names.

CreateTopics, AlterConfigs and DescribeConfigs read the table `TOPIC_CONFIGS`; the log itself takes
a `LogConfig`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from broker.log.topic_configs import (
    LONG_MAX,
    TOPIC_CONFIGS,
    ConfigType,
    InvalidConfig,
    TopicConfig,
    Value,
)

__all__ = [
    "LONG_MAX",
    "TOPIC_CONFIGS",
    "ConfigType",
    "InvalidConfig",
    "LogConfig",
    "TopicConfig",
    "format_value",
    "from_broker_settings",
    "parse_overrides",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The settings of one topic, typed; every field is the Kafka name with underscores."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    follower_replication_throttled_replicas: frozenset[str] = frozenset()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: frozenset[str] = frozenset()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1_048_588
    message_downconversion_enable: bool = True
    message_format_version: str = "3.0-IV1"
    message_timestamp_after_max_ms: int = LONG_MAX
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_difference_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def stamps_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def oldest_ms(self) -> int:
        """How far in the past a stamp may lie; the older setting counts unless the newer says."""
        before = self.message_timestamp_before_max_ms
        return before if before < LONG_MAX else self.message_timestamp_difference_max_ms

    @property
    def newest_ms(self) -> int:
        """How far in the future a stamp may lie, in the same way."""
        after = self.message_timestamp_after_max_ms
        return after if after < LONG_MAX else self.message_timestamp_difference_max_ms

    def with_overrides(self, overrides: Mapping[str, str]) -> "LogConfig":
        """Return these settings with `overrides` (Kafka's topic setting names) on top.

        Raises InvalidConfig for an unknown name, a value out of its bounds, or two that conflict.
        """
        changed = self.applying(overrides)
        if changed.min_compaction_lag_ms > changed.max_compaction_lag_ms:
            raise InvalidConfig(
                "min.compaction.lag.ms",
                str(changed.min_compaction_lag_ms),
                f"must be at most max.compaction.lag.ms={changed.max_compaction_lag_ms}",
            )
        return changed

    def applying(self, overrides: Mapping[str, str]) -> "LogConfig":
        """Do as `with_overrides` does for what is in force already, two that conflict with it.

        A default may have changed since, and nobody was asked about each topic then.
        """
        return replace(self, **parse_overrides(overrides))  # type: ignore[arg-type]

    def as_strings(self) -> dict[str, str]:
        """Return every setting by its Kafka name, written as Kafka writes it."""
        return {
            name: format_value(getattr(self, entry.attribute))
            for name, entry in TOPIC_CONFIGS.items()
        }


def parse_overrides(overrides: Mapping[str, str]) -> dict[str, Value]:
    """Return typed values by LogConfig field. Raises InvalidConfig naming the first wrong key."""
    parsed: dict[str, Value] = {}
    for name, text in overrides.items():
        entry = TOPIC_CONFIGS.get(name)
        if entry is None:
            raise InvalidConfig(name, None, "unknown topic setting")
        parsed[entry.attribute] = entry.parse(text)
    return parsed


def from_broker_settings(settings: Mapping[str, str]) -> LogConfig:
    """Return the defaults of a broker whose `log.*` settings (server.properties) are given.

    Settings that are no topic's default are left alone. Raises InvalidConfig, but not for two that
    conflict: they may come from different places.
    """
    overrides = {
        entry.name: settings[entry.broker_name]
        for entry in TOPIC_CONFIGS.values()
        if entry.broker_name in settings
    }
    return LogConfig().applying(overrides)


def format_value(value: Value) -> str:
    """Return a setting's value as Kafka writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    return str(value).replace("e+", "E") if isinstance(value, float) else str(value)


assert {field.name for field in fields(LogConfig)} == {
    entry.attribute for entry in TOPIC_CONFIGS.values()
}
