"""A broker's settings: Kafka's names, defaults and property files, checked before it starts.

A field's property is its name with dots for underscores: `log_dirs` is `log.dirs`.
Defaults and limits are those of Apache Kafka 3.9's `server.properties` documentation.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from runtime.properties import ConfigurationError, Property

UNLIMITED: Final = -1
HOUR_MS: Final = 3_600_000
MAX_PORT: Final = 65_535
MAX_INT: Final = 2**31 - 1

_LISTENER: Final = re.compile(
    r"(?P<name>[A-Za-z0-9_]+)://(?P<host>\[[^\]]*\]|[^:/\[\]]*):(?P<port>\d+)"
)
_ZOOKEEPER: Final = re.compile(r"[^:,/\s]+:\d+(,[^:,/\s]+:\d+)*")

ACCEPTED_WITHOUT_EFFECT: Final = frozenset(
    {
        "background.threads",
        "log.cleaner.io.buffer.size",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "queued.max.requests",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "transaction.state.log.min.isr",
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
    }
)
"""Settings of Kafka's own sample file that have no counterpart in a single-threaded broker, or
whose part is not served yet: taken without complaint so that such a file starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One address to listen on or to advertise; an empty host means every interface."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def _at_least(minimum: float, default: float, *, maximum: float = 2**63 - 1) -> Any:  # noqa: ANN401
    """Declare a number with Kafka's limits; the annotation says whether it is whole."""
    return field(default=default, metadata={"minimum": minimum, "maximum": maximum})


def _one_of(default: str, *others: str) -> Any:  # noqa: ANN401 - a dataclass field, as `field` itself
    return field(default=default, metadata={"choices": (default, *others)})


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """One broker's settings; durations in the unit their names say, sizes in bytes."""

    broker_id: int = field(metadata={"minimum": 0, "maximum": MAX_INT})
    broker_rack: str | None = None
    listeners: tuple[Listener, ...] = (Listener(name="PLAINTEXT", host="", port=9092),)
    advertised_listeners: tuple[Listener, ...] = ()
    log_dirs: tuple[Path, ...] = (Path("/tmp/kafka-logs"),)  # noqa: S108 - Kafka's default
    metrics_port: int = _at_least(UNLIMITED, UNLIMITED, maximum=MAX_PORT)
    metrics_host: str = "127.0.0.1"

    zookeeper_connect: str = field(
        metadata={"pattern": _ZOOKEEPER, "form": "host:port[,host:port]"}
    )
    zookeeper_session_timeout_ms: int = _at_least(1_000, 18_000)
    zookeeper_connection_timeout_ms: int = _at_least(1, 18_000)

    num_partitions: int = _at_least(1, 1)
    default_replication_factor: int = _at_least(1, 1)
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    min_insync_replicas: int = _at_least(1, 1)
    unclean_leader_election_enable: bool = False
    replica_lag_time_max_ms: int = _at_least(1, 30_000)
    replica_fetch_max_bytes: int = _at_least(0, 1_048_576)
    replica_fetch_wait_max_ms: int = _at_least(1, 500)
    replica_fetch_min_bytes: int = _at_least(0, 1)
    replica_fetch_response_max_bytes: int = _at_least(0, 10_485_760, maximum=MAX_INT)
    replica_fetch_backoff_ms: int = _at_least(0, 1_000)
    replica_socket_timeout_ms: int = _at_least(1, 30_000)
    replica_high_watermark_checkpoint_interval_ms: int = _at_least(1, 5_000)
    replica_selector_class: str | None = None
    max_incremental_fetch_session_cache_slots: int = _at_least(0, 1_000, maximum=MAX_INT)
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = _at_least(1, 300)
    leader_imbalance_per_broker_percentage: int = _at_least(0, 10)
    controlled_shutdown_enable: bool = True
    request_timeout_ms: int = _at_least(1, 30_000)

    socket_request_max_bytes: int = _at_least(1, 104_857_600, maximum=MAX_INT)
    connections_max_idle_ms: int = _at_least(UNLIMITED, 600_000)
    max_connections: int = _at_least(0, MAX_INT)
    socket_listen_backlog_size: int = _at_least(1, 50)
    message_max_bytes: int = _at_least(0, 1_048_588, maximum=MAX_INT)
    fetch_max_bytes: int = _at_least(1_024, 57_671_680, maximum=MAX_INT)
    compression_type: str = _one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")

    log_segment_bytes: int = _at_least(14, 1_073_741_824, maximum=MAX_INT)
    log_roll_ms: int = _at_least(1, 168 * HOUR_MS)
    log_roll_jitter_ms: int = _at_least(0, 0)
    log_retention_ms: int = _at_least(UNLIMITED, 168 * HOUR_MS)
    log_retention_bytes: int = _at_least(UNLIMITED, UNLIMITED)
    log_retention_check_interval_ms: int = _at_least(1, 300_000)
    log_segment_delete_delay_ms: int = _at_least(0, 60_000)
    log_cleanup_policy: str = _one_of("delete", "compact", "compact,delete", "delete,compact")
    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = _at_least(0, 15_000)
    log_cleaner_dedupe_buffer_size: int = _at_least(0, 128 * 1024 * 1024)
    log_cleaner_io_buffer_load_factor: float = _at_least(0, 0.9, maximum=1)
    log_cleaner_io_max_bytes_per_second: float = _at_least(1, float("inf"), maximum=float("inf"))
    log_cleaner_min_compaction_lag_ms: int = _at_least(0, 0)
    log_cleaner_max_compaction_lag_ms: int = _at_least(1, 2**63 - 1)
    log_cleaner_delete_retention_ms: int = _at_least(0, 86_400_000)
    log_cleaner_min_cleanable_ratio: float = _at_least(0, 0.5, maximum=1)
    log_index_interval_bytes: int = _at_least(0, 4_096, maximum=MAX_INT)
    log_index_size_max_bytes: int = _at_least(4, 10_485_760, maximum=MAX_INT)
    log_flush_interval_messages: int = _at_least(1, 2**63 - 1)
    log_flush_interval_ms: int = _at_least(1, 2**63 - 1)
    log_flush_scheduler_interval_ms: int = _at_least(1, 2**63 - 1)
    log_message_timestamp_type: str = _one_of("CreateTime", "LogAppendTime")
    log_message_timestamp_before_max_ms: int = _at_least(0, 2**63 - 1)
    log_message_timestamp_after_max_ms: int = _at_least(0, 2**63 - 1)
    log_preallocate: bool = False
    producer_id_expiration_ms: int = _at_least(1, 86_400_000)
    transactional_id_expiration_ms: int = _at_least(1, 604_800_000)
    transaction_max_timeout_ms: int = _at_least(1, 900_000)

    offsets_topic_num_partitions: int = _at_least(1, 50)
    offsets_topic_replication_factor: int = _at_least(1, 3)
    offsets_topic_segment_bytes: int = _at_least(1, 104_857_600)
    offsets_topic_compression_codec: int = _at_least(0, 0, maximum=4)
    offsets_retention_minutes: int = _at_least(1, 10_080)
    offsets_retention_check_interval_ms: int = _at_least(1, 600_000)
    offsets_commit_timeout_ms: int = _at_least(1, 5_000)
    offsets_load_buffer_size: int = _at_least(1, 5_242_880)
    offset_metadata_max_bytes: int = _at_least(0, 4_096)
    group_initial_rebalance_delay_ms: int = _at_least(0, 3_000)
    group_min_session_timeout_ms: int = _at_least(0, 6_000)
    group_max_session_timeout_ms: int = _at_least(0, 1_800_000)
    group_max_size: int = _at_least(1, MAX_INT)

    provided: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What the file and the overrides said, by property name."""

    @property
    def endpoint(self) -> Listener:
        """Return the first address told to clients; port 0 until the listener is bound."""
        return (self.advertised_listeners or self.listeners)[0]


SETTINGS: Final = MappingProxyType(
    {
        entry.name.replace("_", "."): entry
        for entry in fields(BrokerConfig)
        if entry.name != "provided"
    }
)

_SCALED: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "log.retention.ms": (("log.retention.minutes", 60_000), ("log.retention.hours", HOUR_MS)),
    "log.roll.ms": (("log.roll.hours", HOUR_MS),),
    "log.dirs": (("log.dir", 1),),
}
"""Older names in other units: the first property given, in this order, holds."""


def parse_config(properties: Iterable[Property], *, file: str) -> BrokerConfig:
    """Return the settings; later properties of the same key win.

    Raises ConfigurationError naming file, line and key for the first unknown key or bad value.
    """
    given = {entry.key: entry for entry in properties}
    aliases = {older for pairs in _SCALED.values() for older, _ in pairs}
    for key, entry in given.items():
        if key not in SETTINGS and key not in aliases and key not in ACCEPTED_WITHOUT_EFFECT:
            raise entry.wrong("unknown setting")
    values: dict[str, Any] = {
        SETTINGS[name].name: value
        for name in SETTINGS
        if (value := _value_of(name, given)) is not None
    }
    for required in ("broker.id", "zookeeper.connect"):
        if SETTINGS[required].name not in values:
            raise ConfigurationError(f"{file}: {required}: missing")
    provided = MappingProxyType({key: entry.value for key, entry in given.items()})
    _check_advertised(values, given)
    return BrokerConfig(**values, provided=provided)


def _value_of(name: str, given: Mapping[str, Property]) -> object | None:
    if name in given:
        return _parse(given[name], name)
    for older, factor in _SCALED.get(name, ()):
        if older in given:
            value = _parse(given[older], name)
            return value * factor if isinstance(value, int) and value > 0 else value
    return None


def _check_advertised(values: Mapping[str, Any], given: Mapping[str, Property]) -> None:
    """Refuse what no client could connect to: Kafka does the same for 0.0.0.0."""
    for listener in values.get("advertised_listeners", ()):
        if listener.host in {"", "0.0.0.0", "::"}:  # noqa: S104 - refused, not bound
            raise given["advertised.listeners"].wrong(f"{listener}: clients need a real host")


def _parse(entry: Property, name: str) -> object:
    declared = SETTINGS[name]
    parser = _PARSERS[name] if name in _PARSERS else _BY_TYPE[declared.type]
    return parser(entry, declared.metadata)


def _parse_int(entry: Property, limits: Mapping[str, Any]) -> int:
    try:
        value = int(entry.value)
    except ValueError as error:
        raise entry.wrong(f"{entry.value!r} is not a whole number") from error
    return _within(entry, value, limits)


def _parse_float(entry: Property, limits: Mapping[str, Any]) -> float:
    try:
        value = float(entry.value)
    except ValueError as error:
        raise entry.wrong(f"{entry.value!r} is not a number") from error
    return _within(entry, value, limits)


_N = TypeVar("_N", int, float)


def _within(entry: Property, value: _N, limits: Mapping[str, Any]) -> _N:
    if not limits["minimum"] <= value <= limits["maximum"]:
        raise entry.wrong(f"{value} is not within {limits['minimum']} and {limits['maximum']}")
    return value


def _parse_bool(entry: Property, _: Mapping[str, Any]) -> bool:
    if entry.value.lower() not in {"true", "false"}:
        raise entry.wrong(f"{entry.value!r} is neither true nor false")
    return entry.value.lower() == "true"


def _parse_text(entry: Property, limits: Mapping[str, Any]) -> str:
    if "choices" in limits and entry.value not in limits["choices"]:
        raise entry.wrong(f"{entry.value!r} is none of {', '.join(limits['choices'])}")
    if "pattern" in limits and limits["pattern"].fullmatch(entry.value) is None:
        raise entry.wrong(f"{entry.value!r} is not of the form {limits['form']}")
    return entry.value


def _parse_folders(entry: Property, _: Mapping[str, Any]) -> tuple[Path, ...]:
    folders = tuple(Path(part.strip()) for part in entry.value.split(",") if part.strip())
    if not folders:
        raise entry.wrong("names no folder")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise entry.wrong("names a folder twice")
    return folders


def _parse_listeners(entry: Property, _: Mapping[str, Any]) -> tuple[Listener, ...]:
    listeners = tuple(_parse_listener(entry, part.strip()) for part in entry.value.split(","))
    if len({listener.name for listener in listeners}) < len(listeners):
        raise entry.wrong("a listener's name is used twice")
    return listeners


def _parse_listener(entry: Property, text: str) -> Listener:
    found = _LISTENER.fullmatch(text)
    if found is None:
        raise entry.wrong(f"{text!r} is not of the form PLAINTEXT://host:port")
    if found["name"].upper() != "PLAINTEXT":
        raise entry.wrong(f"{text!r}: only PLAINTEXT listeners are served")
    if int(found["port"]) > MAX_PORT:
        raise entry.wrong(f"{text!r}: there is no port {found['port']}")
    return Listener(name="PLAINTEXT", host=found["host"].strip("[]"), port=int(found["port"]))


def _parse_zookeeper(entry: Property, limits: Mapping[str, Any]) -> str:
    text = _parse_text(entry, limits)
    for server in text.split(","):
        port = server.rpartition(":")[2]
        if not 0 < int(port) <= MAX_PORT:
            raise entry.wrong(f"{server!r}: there is no port {port}")
    return text


Parser = Callable[[Property, Mapping[str, Any]], object]
_BY_TYPE: Final[Mapping[Any, Parser]] = {
    int: _parse_int,
    float: _parse_float,
    bool: _parse_bool,
    str: _parse_text,
    str | None: _parse_text,
}
_PARSERS: Final[Mapping[str, Parser]] = {
    "listeners": _parse_listeners,
    "advertised.listeners": _parse_listeners,
    "log.dirs": _parse_folders,
    "zookeeper.connect": _parse_zookeeper,
}
