"""The table of topic settings: Kafka's names, types, bounds, defaults and broker synonyms.

From Apache Kafka 3.9 (`TopicConfig`, `LogConfig`, `ServerTopicConfigSynonyms`). Of tiered storage
there are the names alone, so that topics of a cluster that has it can be made here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

Value: TypeAlias = int | float | bool | str | frozenset[str]

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1


class ConfigType(Enum):
    """How a value is written, with the number that DescribeConfigs v3+ sends for it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class InvalidConfig(ValueError):
    """A topic setting that cannot be: `key` and `value` as given (INVALID_CONFIG)."""

    def __init__(self, key: str, value: str | None, reason: str) -> None:
        super().__init__(key, value, reason)
        self.key = key
        self.value = value
        self.reason = reason

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.key}: {self.reason}"
        return f"{self.key}={self.value}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """One setting: what a topic may say, and what holds when it says nothing."""

    name: str
    type: ConfigType
    default: str
    doc: str
    broker_name: str = ""
    """The broker's setting that changes the default for all topics; none for some."""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    replicas: bool = False
    """Whether it lists `partition:broker`, or `*` for all, or nothing."""

    @property
    def attribute(self) -> str:
        """The field of LogConfig that holds it."""
        return self.name.replace(".", "_")

    def parse(self, text: str) -> Value:
        """Return the typed value. Raises InvalidConfig naming key and value."""
        if self.type in (ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE):
            return self._parse_number(text.strip())
        if self.type is ConfigType.BOOLEAN:
            choices = self.choices or ("true", "false")
            if text.strip().lower() not in choices:
                raise InvalidConfig(self.name, text, f"must be {' or '.join(choices)}")
            return text.strip().lower() == "true"
        if self.type is ConfigType.LIST:
            return self._parse_list(text)
        if self.choices and text not in self.choices:
            raise InvalidConfig(self.name, text, f"must be one of {', '.join(self.choices)}")
        if self.pattern is not None and self.pattern.fullmatch(text) is None:
            raise InvalidConfig(self.name, text, "must be a version of Kafka, as 3.0-IV1")
        return text

    def _parse_number(self, text: str) -> int | float:
        kind = float if self.type is ConfigType.DOUBLE else int
        try:
            value = kind(text)
        except ValueError:
            expected = "a number" if kind is float else "a whole number"
            raise InvalidConfig(self.name, text, f"must be {expected}") from None
        limit = INT_MAX if self.type is ConfigType.INT else LONG_MAX
        low = -limit - 1 if self.minimum is None else self.minimum
        high = limit if self.maximum is None else self.maximum
        if not low <= value <= high:
            bound = f"at least {low}" if value < low else f"at most {high}"
            raise InvalidConfig(self.name, text, f"must be {bound}")
        return value

    def _parse_list(self, text: str) -> frozenset[str]:
        items = frozenset(item.strip() for item in text.split(",") if item.strip())
        if self.replicas:
            if items != {"*"} and not all(_REPLICA.fullmatch(item) for item in items):
                raise InvalidConfig(self.name, text, "must be * or list partition:broker")
            return items
        if not items <= frozenset(self.choices):
            raise InvalidConfig(self.name, text, f"must list {' or '.join(self.choices)}")
        return items


_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+")
_VERSION: Final = re.compile(r"(?:0\.(?:8|9|10|11)|[1-9])(?:\.[0-9]){1,2}(?:-IV[0-9])?")
_NO_TIERS: Final = "of no effect, this broker has no tiered storage"


def _table(*entries: TopicConfig) -> Mapping[str, TopicConfig]:
    return {entry.name: entry for entry in entries}


_INT, _LONG = ConfigType.INT, ConfigType.LONG

TOPIC_CONFIGS: Final[Mapping[str, TopicConfig]] = _table(
    TopicConfig(
        name="cleanup.policy",
        type=ConfigType.LIST,
        default="delete",
        choices=("delete", "compact"),
        broker_name="log.cleanup.policy",
        doc="delete old segments, or compact to the last record per key, or both",
    ),
    TopicConfig(
        name="compression.gzip.level",
        type=_INT,
        default="-1",
        minimum=-1,
        maximum=9,
        broker_name="compression.gzip.level",
        doc="level for compression.type=gzip; of no effect, batches are not recompressed",
    ),
    TopicConfig(
        name="compression.lz4.level",
        type=_INT,
        default="9",
        minimum=1,
        maximum=17,
        broker_name="compression.lz4.level",
        doc="level for compression.type=lz4; of no effect, batches are not recompressed",
    ),
    TopicConfig(
        name="compression.type",
        type=ConfigType.STRING,
        default="producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        broker_name="compression.type",
        doc="codec of the stored batches; this broker stores them as the producer sent them",
    ),
    TopicConfig(
        name="compression.zstd.level",
        type=_INT,
        default="3",
        minimum=-131072,
        maximum=22,
        broker_name="compression.zstd.level",
        doc="level for compression.type=zstd; of no effect, batches are not recompressed",
    ),
    TopicConfig(
        name="delete.retention.ms",
        type=_LONG,
        default="86400000",
        minimum=0,
        broker_name="log.cleaner.delete.retention.ms",
        doc="how long compaction keeps a tombstone",
    ),
    TopicConfig(
        name="file.delete.delay.ms",
        type=_LONG,
        default="60000",
        minimum=0,
        broker_name="log.segment.delete.delay.ms",
        doc="how long a deleted segment's file stays",
    ),
    TopicConfig(
        name="flush.messages",
        type=_LONG,
        default=str(LONG_MAX),
        minimum=1,
        broker_name="log.flush.interval.messages",
        doc="fsync after so many records",
    ),
    TopicConfig(
        name="flush.ms",
        type=_LONG,
        default=str(LONG_MAX),
        minimum=0,
        broker_name="log.flush.interval.ms",
        doc="fsync after so many milliseconds",
    ),
    TopicConfig(
        name="follower.replication.throttled.replicas",
        type=ConfigType.LIST,
        default="",
        replicas=True,
        doc="replicas, as partition:broker or *, held to follower.replication.throttled.rate",
    ),
    TopicConfig(
        name="index.interval.bytes",
        type=_INT,
        default="4096",
        minimum=0,
        broker_name="log.index.interval.bytes",
        doc="bytes of records between two entries of the offset index",
    ),
    TopicConfig(
        name="leader.replication.throttled.replicas",
        type=ConfigType.LIST,
        default="",
        replicas=True,
        doc="replicas, as partition:broker or *, held to leader.replication.throttled.rate",
    ),
    TopicConfig(
        name="local.retention.bytes",
        type=_LONG,
        default="-2",
        minimum=-2,
        broker_name="log.local.retention.bytes",
        doc=f"retention.bytes for the local part of a tiered log; {_NO_TIERS}",
    ),
    TopicConfig(
        name="local.retention.ms",
        type=_LONG,
        default="-2",
        minimum=-2,
        broker_name="log.local.retention.ms",
        doc=f"retention.ms for the local part of a tiered log; {_NO_TIERS}",
    ),
    TopicConfig(
        name="max.compaction.lag.ms",
        type=_LONG,
        default=str(LONG_MAX),
        minimum=1,
        broker_name="log.cleaner.max.compaction.lag.ms",
        doc="the longest a record may stay uncompacted",
    ),
    TopicConfig(
        name="max.message.bytes",
        type=_INT,
        default="1048588",
        minimum=0,
        broker_name="message.max.bytes",
        doc="the largest record batch that is accepted, after compression",
    ),
    TopicConfig(
        name="message.downconversion.enable",
        type=ConfigType.BOOLEAN,
        default="true",
        broker_name="log.message.downconversion.enable",
        doc="convert for consumers older than Kafka 0.11; of no effect",
    ),
    TopicConfig(
        name="message.format.version",
        type=ConfigType.STRING,
        default="3.0-IV1",
        pattern=_VERSION,
        broker_name="log.message.format.version",
        doc="the version whose format is stored; of no effect, it is always that of Kafka 0.11",
    ),
    TopicConfig(
        name="message.timestamp.after.max.ms",
        type=_LONG,
        default=str(LONG_MAX),
        minimum=0,
        broker_name="log.message.timestamp.after.max.ms",
        doc="how far in the future a record's timestamp may lie",
    ),
    TopicConfig(
        name="message.timestamp.before.max.ms",
        type=_LONG,
        default=str(LONG_MAX),
        minimum=0,
        broker_name="log.message.timestamp.before.max.ms",
        doc="how far in the past a record's timestamp may lie",
    ),
    TopicConfig(
        name="message.timestamp.difference.max.ms",
        type=_LONG,
        default=str(LONG_MAX),
        minimum=0,
        broker_name="log.message.timestamp.difference.max.ms",
        doc="how far from now a record's timestamp may lie, where before and after are not set",
    ),
    TopicConfig(
        name="message.timestamp.type",
        type=ConfigType.STRING,
        default="CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        broker_name="log.message.timestamp.type",
        doc="whose clock stamps the records: the producer's or the broker's",
    ),
    TopicConfig(
        name="min.cleanable.dirty.ratio",
        type=ConfigType.DOUBLE,
        default="0.5",
        minimum=0,
        maximum=1,
        broker_name="log.cleaner.min.cleanable.ratio",
        doc="the share of uncompacted bytes at which compaction starts",
    ),
    TopicConfig(
        name="min.compaction.lag.ms",
        type=_LONG,
        default="0",
        minimum=0,
        broker_name="log.cleaner.min.compaction.lag.ms",
        doc="how long a record stays uncompacted at least",
    ),
    TopicConfig(
        name="min.insync.replicas",
        type=_INT,
        default="1",
        minimum=1,
        broker_name="min.insync.replicas",
        doc="in-sync replicas without which acks=all is refused",
    ),
    TopicConfig(
        name="preallocate",
        type=ConfigType.BOOLEAN,
        default="false",
        broker_name="log.preallocate",
        doc="reserve a segment's whole file at once; not done by this broker",
    ),
    TopicConfig(
        name="remote.log.copy.disable",
        type=ConfigType.BOOLEAN,
        default="false",
        doc=f"copy nothing more to the remote tier; {_NO_TIERS}",
    ),
    TopicConfig(
        name="remote.log.delete.on.disable",
        type=ConfigType.BOOLEAN,
        default="false",
        doc=f"delete the remote part when tiering ends; {_NO_TIERS}",
    ),
    TopicConfig(
        name="remote.storage.enable",
        type=ConfigType.BOOLEAN,
        default="false",
        choices=("false",),
        doc="keep old segments in a remote tier; this broker has none",
    ),
    TopicConfig(
        name="retention.bytes",
        type=_LONG,
        default="-1",
        broker_name="log.retention.bytes",
        doc="delete the oldest segments beyond this size of the partition; -1 is no limit",
    ),
    TopicConfig(
        name="retention.ms",
        type=_LONG,
        default="604800000",
        minimum=-1,
        broker_name="log.retention.ms",
        doc="delete segments whose newest record is older; -1 is no limit",
    ),
    TopicConfig(
        name="segment.bytes",
        type=_INT,
        default="1073741824",
        minimum=14,
        broker_name="log.segment.bytes",
        doc="the size at which a new segment is begun",
    ),
    TopicConfig(
        name="segment.index.bytes",
        type=_INT,
        default="10485760",
        minimum=4,
        broker_name="log.index.size.max.bytes",
        doc="the size of an index at which a new segment is begun",
    ),
    TopicConfig(
        name="segment.jitter.ms",
        type=_LONG,
        default="0",
        minimum=0,
        broker_name="log.roll.jitter.ms",
        doc="random part taken off segment.ms, so that segments do not roll all at once",
    ),
    TopicConfig(
        name="segment.ms",
        type=_LONG,
        default="604800000",
        minimum=1,
        broker_name="log.roll.ms",
        doc="the age at which a new segment is begun",
    ),
    TopicConfig(
        name="unclean.leader.election.enable",
        type=ConfigType.BOOLEAN,
        default="false",
        broker_name="unclean.leader.election.enable",
        doc="let a replica that misses records lead when no other is left",
    ),
)
