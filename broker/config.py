"""A broker's settings: Kafka's names, defaults and property files, checked before it starts.

A field's property is its name with dots for underscores: `log_dirs` is `log.dirs`.
Defaults and limits are those of Apache Kafka 3.9's `server.properties` documentation.
"""

import logging
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from broker.listeners import (
    EVERYWHERE,
    MAX_PORT,
    OWN_NAMES,
    Listener,
    ProtocolMap,
    with_protocols,
)
from broker.security.principal_mapping import DEFAULT_RULES, PrincipalRules
from broker.security.settings import (
    JAAS,
    LISTENER_PREFIX,
    OF_ONE_LISTENER,
    BadSecurity,
    JaasLogin,
    Secret,
    initial_scram_users,
    inter_broker_security,
    security_of,
)
from broker.setting_values import SERVED, parser_of
from broker.zookeeper.address import FORM
from broker.zookeeper.login import USERNAME
from runtime.configuration.properties import Property
from runtime.configuration.reading.mistakes import ConfigurationError
from wire.net.secret_file import BadSecretFile, FileSecret, exposure_of
from wire.net.security import WITH_PASSWORDS, Mechanism
from wire.values import frozen

_LOG = logging.getLogger(__name__)

UNLIMITED: Final = -1
HOUR_MS: Final = 3_600_000
MAX_INT: Final = 2**31 - 1
MAX_SHORT: Final = 2**15 - 1
MAX_DOUBLE: Final = sys.float_info.max


AddressLimits: TypeAlias = Mapping[str, int]
_DEFAULT: Final = (Listener(name="PLAINTEXT", host="", port=9092),)

ACCEPTED_WITHOUT_EFFECT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "background.threads": "10",
        "log.cleaner.io.buffer.size": "524288",
        "log.cleaner.threads": "1",
        "num.io.threads": "8",
        "num.network.threads": "3",
        "num.recovery.threads.per.data.dir": "1",
        "queued.max.requests": "500",
        "socket.receive.buffer.bytes": "102400",
        "socket.send.buffer.bytes": "102400",
    }
)
"""Settings of Kafka's own sample file that have no counterpart in a single-threaded broker, or
whose part is not served yet, with Kafka's defaults: taken so that such a file starts."""


AUTHORIZERS: Final = (
    "kafka.security.authorizer.AclAuthorizer",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
)
"""Kafka's, whose rules are the same; either name stands for the one that is here."""


def _at_least(minimum: float, default: float, *, maximum: float = 2**63 - 1) -> Any:  # noqa: ANN401
    """Declare a number with Kafka's limits; the annotation says whether it is whole."""
    return field(default=default, metadata={"minimum": minimum, "maximum": maximum})


def _int(minimum: int, default: int) -> Any:  # noqa: ANN401 - a dataclass field, as `field` itself
    """Declare a whole number that Kafka keeps in four bytes; `_short`, in two."""
    return _at_least(minimum, default, maximum=MAX_INT)


def _short(minimum: int, default: int) -> Any:  # noqa: ANN401 - a dataclass field, as `field` itself
    return _at_least(minimum, default, maximum=MAX_SHORT)


def _one_of(default: str, *others: str) -> Any:  # noqa: ANN401 - a dataclass field, as `field` itself
    return field(default=default, metadata={"choices": (default, *others)})


def _some_of(*choices: str) -> Any:  # noqa: ANN401 - a dataclass field, as `field` itself
    """Declare a list out of these, which are all in it by default."""
    return field(default=choices, metadata={"choices": choices})


@frozen
class BrokerConfig:
    """One broker's settings; durations in the unit their names say, sizes in bytes."""

    broker_id: int = field(metadata={"minimum": 0, "maximum": MAX_INT})
    broker_rack: str | None = None
    listeners: tuple[Listener, ...] = _DEFAULT
    advertised_listeners: tuple[Listener, ...] = ()
    listener_security_protocol_map: ProtocolMap = field(
        default_factory=lambda: MappingProxyType(OWN_NAMES)
    )
    inter_broker_listener_name: str | None = None
    security_inter_broker_protocol: str = _one_of(*OWN_NAMES)
    ssl_keystore_type: str = _one_of("PEM")
    ssl_keystore_location: Path | None = None
    ssl_key_password: Secret | None = None
    ssl_truststore_type: str = _one_of("PEM")
    ssl_truststore_location: Path | None = None
    ssl_client_auth: str = _one_of("none", "requested", "required")
    ssl_principal_mapping_rules: PrincipalRules = DEFAULT_RULES
    ssl_endpoint_identification_algorithm: str = _one_of("https", "")
    sasl_enabled_mechanisms: tuple[Mechanism, ...] = ()
    sasl_mechanism_inter_broker_protocol: str = _one_of(*(one.value for one in WITH_PASSWORDS))
    sasl_jaas_config: JaasLogin | None = None
    sasl_oauthbearer_jwks_endpoint_url: Path | None = None
    sasl_oauthbearer_expected_audience: tuple[str, ...] = ()
    sasl_oauthbearer_expected_issuer: str | None = None
    sasl_oauthbearer_sub_claim_name: str = "sub"
    sasl_oauthbearer_clock_skew_seconds: int = _int(0, 30)
    sasl_server_max_receive_size: int = _int(1, 524_288)
    super_users: tuple[str, ...] = ()
    authorizer_class_name: str = _one_of("", *AUTHORIZERS)
    allow_everyone_if_no_acl_found: bool = False
    write_fence_enable: bool = True
    connections_max_reauth_ms: int = _at_least(0, 0)
    connection_failed_authentication_delay_ms: int = _int(0, 100)
    log_dirs: tuple[Path, ...] = (Path("/tmp/kafka-logs"),)  # noqa: S108 - Kafka's default
    metrics_port: int = _at_least(UNLIMITED, UNLIMITED, maximum=MAX_PORT)
    metrics_host: str = "127.0.0.1"
    chunk_kernel_enable: bool = True

    zookeeper_connect: str = field(metadata={"form": FORM})
    zookeeper_session_timeout_ms: int = _int(1_000, 18_000)
    zookeeper_connection_timeout_ms: int = _int(1, 18_000)
    zookeeper_username: str = USERNAME
    zookeeper_password_file: FileSecret | None = None
    zookeeper_set_acl: bool = False

    num_partitions: int = _int(1, 1)
    default_replication_factor: int = _int(1, 1)
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    min_insync_replicas: int = _int(1, 1)
    unclean_leader_election_enable: bool = False
    replica_lag_time_max_ms: int = _at_least(1, 30_000)
    replica_fetch_max_bytes: int = _int(0, 1_048_576)
    replica_fetch_wait_max_ms: int = _int(1, 500)
    replica_fetch_min_bytes: int = _int(0, 1)
    replica_fetch_response_max_bytes: int = _int(0, 10_485_760)
    replica_fetch_backoff_ms: int = _int(0, 1_000)
    replica_socket_timeout_ms: int = _int(1, 30_000)
    replica_high_watermark_checkpoint_interval_ms: int = _at_least(1, 5_000)
    replica_selector_class: str | None = None
    max_incremental_fetch_session_cache_slots: int = _int(0, 1_000)
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = _at_least(1, 300)
    leader_imbalance_per_broker_percentage: int = _int(0, 10)
    controlled_shutdown_enable: bool = True
    request_timeout_ms: int = _int(1, 30_000)

    socket_request_max_bytes: int = _int(1, 104_857_600)
    connections_max_idle_ms: int = _at_least(UNLIMITED, 600_000)
    max_connections: int = _int(0, MAX_INT)
    max_connections_per_ip: int = _int(0, MAX_INT)
    max_connections_per_ip_overrides: AddressLimits = field(
        default_factory=lambda: MappingProxyType({})
    )
    socket_listen_backlog_size: int = _int(1, 50)
    message_max_bytes: int = _int(0, 1_048_588)
    fetch_max_bytes: int = _int(1_024, 57_671_680)
    compression_type: str = _one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")

    log_segment_bytes: int = _int(14, 1_073_741_824)
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
    log_cleaner_io_max_bytes_per_second: float = _at_least(1, MAX_DOUBLE, maximum=float("inf"))
    log_cleaner_min_compaction_lag_ms: int = _at_least(0, 0)
    log_cleaner_max_compaction_lag_ms: int = _at_least(1, 2**63 - 1)
    log_cleaner_delete_retention_ms: int = _at_least(0, 86_400_000)
    log_cleaner_min_cleanable_ratio: float = _at_least(0, 0.5, maximum=1)
    log_index_interval_bytes: int = _int(0, 4_096)
    log_index_size_max_bytes: int = _int(4, 10_485_760)
    log_flush_interval_messages: int = _at_least(1, 2**63 - 1)
    log_flush_interval_ms: int = _at_least(1, 2**63 - 1)
    log_flush_scheduler_interval_ms: int = _at_least(1, 2**63 - 1)
    log_message_timestamp_type: str = _one_of("CreateTime", "LogAppendTime")
    log_message_timestamp_before_max_ms: int = _at_least(0, 2**63 - 1)
    log_message_timestamp_after_max_ms: int = _at_least(0, 2**63 - 1)
    log_preallocate: bool = False
    producer_id_expiration_ms: int = _int(1, 86_400_000)
    transactional_id_expiration_ms: int = _int(1, 604_800_000)
    transaction_max_timeout_ms: int = _int(1, 900_000)
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = _int(1, 10_000)
    transaction_remove_expired_transaction_cleanup_interval_ms: int = _int(1, 3_600_000)
    transaction_state_log_num_partitions: int = _int(1, 50)
    transaction_state_log_replication_factor: int = _short(1, 3)
    transaction_state_log_min_isr: int = _int(1, 2)
    transaction_state_log_segment_bytes: int = _int(1, 104_857_600)

    offsets_topic_num_partitions: int = _int(1, 50)
    offsets_topic_replication_factor: int = _short(1, 3)
    offsets_topic_segment_bytes: int = _int(1, 104_857_600)
    offsets_topic_compression_codec: int = _at_least(0, 0, maximum=4)
    offsets_retention_minutes: int = _int(1, 10_080)
    offsets_retention_check_interval_ms: int = _at_least(1, 600_000)
    offsets_commit_timeout_ms: int = _int(1, 5_000)
    offsets_load_buffer_size: int = _int(1, 5_242_880)
    offset_metadata_max_bytes: int = _int(0, 4_096)
    group_initial_rebalance_delay_ms: int = _int(0, 3_000)
    group_min_session_timeout_ms: int = _int(0, 6_000)
    group_max_session_timeout_ms: int = _int(0, 1_800_000)
    group_max_size: int = _int(1, MAX_INT)
    group_coordinator_rebalance_protocols: tuple[str, ...] = _some_of("classic", "consumer")
    group_consumer_session_timeout_ms: int = _int(1, 45_000)
    group_consumer_min_session_timeout_ms: int = _int(1, 45_000)
    group_consumer_max_session_timeout_ms: int = _int(1, 60_000)
    group_consumer_heartbeat_interval_ms: int = _int(1, 5_000)
    group_consumer_min_heartbeat_interval_ms: int = _int(1, 5_000)
    group_consumer_max_heartbeat_interval_ms: int = _int(1, 15_000)
    group_consumer_max_size: int = _int(1, MAX_INT)
    group_consumer_assignors: tuple[str, ...] = _some_of("uniform", "range")
    group_consumer_migration_policy: str = _one_of(
        "bidirectional", "upgrade", "downgrade", "disabled"
    )

    provided: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The values of the file and the overrides, by property name."""

    listener_settings: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """The settings under `listener.name.<name>.`, by the listener's name and the setting's."""

    @property
    def inter_broker_listener(self) -> Listener:
        """Return the listener by which brokers come to each other.

        Kafka's rule: the one of `inter.broker.listener.name`, else the one that speaks
        `security.inter.broker.protocol`. Raises BadSecurity.
        """
        name, protocol = self.inter_broker_listener_name, self.security_inter_broker_protocol
        for listener in self.listeners:
            if listener.name == name or (name is None and listener.protocol.name == protocol):
                return listener
        if name is not None:
            raise BadSecurity("inter.broker.listener.name", f"{name} is no name of a listener")
        raise BadSecurity("security.inter.broker.protocol", f"no listener speaks {protocol}")

    def advertised(self, listener: Listener) -> Listener | None:
        """Return what clients of a listener are told, None where that one is not advertised."""
        if not self.advertised_listeners:
            return listener
        return next(
            (told for told in self.advertised_listeners if told.name == listener.name), None
        )

    def of_listener(self, listener: str, setting: str) -> Any:  # noqa: ANN401 - one type for each
        """Return a listener's own value of a setting, or the one for all."""
        own = self.listener_settings.get(listener, {})
        return own[setting] if setting in own else getattr(self, SETTINGS[setting].name)


SETTINGS: Final = MappingProxyType(
    {
        entry.name.replace("_", "."): entry
        for entry in fields(BrokerConfig)
        if entry.name not in {"provided", "listener_settings"}
    }
)

_SCALED: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "log.retention.ms": (("log.retention.minutes", 60_000), ("log.retention.hours", HOUR_MS)),
    "log.roll.ms": (("log.roll.hours", HOUR_MS),),
    "log.dirs": (("log.dir", 1),),
}
"""Older names in other units: the first property given, in this order, holds."""

KEYSTORE: Final = "ssl.keystore.location"
SECRETS: Final = frozenset({"ssl.key.password", JAAS})
"""Settings whose values nobody is shown."""


def parse_config(properties: Iterable[Property], *, file: str) -> BrokerConfig:
    """Return the settings; later properties of the same key win.

    Raises ConfigurationError naming file, line and key for the first unknown key or bad value.
    """
    given = {entry.key: entry for entry in properties}
    aliases = {older for pairs in _SCALED.values() for older, _ in pairs}
    for key, entry in given.items():
        is_known = key in SETTINGS or key in aliases or key in ACCEPTED_WITHOUT_EFFECT
        if not is_known and not key.startswith(LISTENER_PREFIX):
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
    _set_protocols(values, given)
    _check_groups(values, given)
    _check_login(values, given)
    own = _own_settings(given, {listener.name for listener in values.get("listeners", _DEFAULT)})
    config = BrokerConfig(**values, provided=provided, listener_settings=own)
    try:
        _check_security(config)
    except BadSecurity as reason:
        if reason.key in given:
            raise given[reason.key].wrong(str(reason)) from reason
        raise ConfigurationError(f"{file}: {reason.key}: {reason}") from reason
    _warn_of_exposed(given.values(), Path(file))
    return config


def _warn_of_exposed(given: Iterable[Property], file: Path) -> None:
    """Have the log name each file that holds a key or a password and is open to others."""
    for entry in given:
        setting = entry.key.removeprefix(LISTENER_PREFIX)
        if setting.endswith(KEYSTORE):
            held = Path(entry.value)
        elif setting.endswith(tuple(SECRETS)) and entry.place.startswith(f"{file}:"):
            held = file
        else:
            continue
        try:
            exposure = exposure_of(held)
        except BadSecretFile:
            continue  # its listener cannot be served, and says so
        if exposure is not None:
            _LOG.warning("%s", entry.wrong(f"{held}: {exposure}"))


def _set_protocols(values: dict[str, Any], given: Mapping[str, Property]) -> None:
    protocols = values.get("listener_security_protocol_map", OWN_NAMES)
    for key in ("listeners", "advertised.listeners"):
        if key in given:
            name = SETTINGS[key].name
            values[name] = with_protocols(given[key], values[name], protocols)


def _check_login(values: Mapping[str, Any], given: Mapping[str, Property]) -> None:
    """Raise ConfigurationError for a login at ZooKeeper that is only half there."""
    if ":" in values.get("zookeeper_username", ""):
        raise given["zookeeper.username"].wrong("holds a colon: ZooKeeper ends the name there")
    if values.get("zookeeper_set_acl") and "zookeeper_password_file" not in values:
        raise given["zookeeper.set.acl"].wrong("is of no use without zookeeper.password.file")


def _own_settings(
    given: Mapping[str, Property], listeners: Collection[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Return what `listener.name.<name>.<setting>` says, by listener and setting."""
    own: dict[str, dict[str, Any]] = {}
    for key, entry in given.items():
        if not key.startswith(LISTENER_PREFIX):
            continue
        name, _, setting = key.removeprefix(LISTENER_PREFIX).partition(".")
        if name.upper() not in listeners:
            raise entry.wrong(f"no listener is called {name.upper()}")
        mechanism = setting.removesuffix(f".{JAAS}")
        is_jaas = mechanism.upper() in SERVED
        if not is_jaas and setting not in OF_ONE_LISTENER:
            raise entry.wrong("unknown setting")
        value = _parse(entry, JAAS if is_jaas else setting)
        own.setdefault(name.upper(), {})[setting] = value
    return own


def _check_security(config: BrokerConfig) -> None:
    """Raise BadSecurity for a listener that could not be served, or not by brokers."""
    for listener in config.listeners:
        security_of(config, listener)
    check_advertised(config)
    inter_broker_security(config)
    for _mechanism, name, _password in initial_scram_users(config):
        if not name:
            raise BadSecurity(JAAS, "a user without a name")


def _value_of(name: str, given: Mapping[str, Property]) -> object | None:
    if name in given:
        return _parse(given[name], name)
    for older, factor in _SCALED.get(name, ()):
        if older in given:
            value = _parse(given[older], name)
            return value * factor if isinstance(value, int) and value > 0 else value
    return None


def check_advertised(config: BrokerConfig) -> None:
    """Raise BadSecurity for addresses by which clients or brokers could not come.

    Kafka refuses 0.0.0.0 as well.
    """
    inter_broker = config.inter_broker_listener
    if config.advertised(inter_broker) is None:
        raise BadSecurity("advertised.listeners", f"{inter_broker.name} is missing: brokers use it")
    names = {listener.name for listener in config.listeners}
    for told in config.advertised_listeners:
        if told.host in EVERYWHERE:
            raise BadSecurity("advertised.listeners", f"{told}: clients need a real host")
        if told.name not in names:
            raise BadSecurity("advertised.listeners", f"{told}: no listener has this name")


def _check_groups(values: Mapping[str, Any], given: Mapping[str, Property]) -> None:
    """Refuse what Kafka refuses of the groups of the new protocol."""
    for name in ("session.timeout.ms", "heartbeat.interval.ms"):
        keys = [f"group.consumer.{part}{name}" for part in ("min.", "", "max.")]
        fields_ = [SETTINGS[key] for key in keys]
        least, value, most = (values.get(one.name, one.default) for one in fields_)
        if not least <= value <= most:
            wrong = next(given[key] for key in (keys[1], keys[0], keys[2]) if key in given)
            raise wrong.wrong(
                f"{keys[1]} of {value} is not within {least} and {most} ({keys[0]}, {keys[2]})"
            )
    key = "group.coordinator.rebalance.protocols"
    if "classic" not in values.get(SETTINGS[key].name, "classic"):
        raise given[key].wrong("classic is missing: it cannot be switched off")


def _parse(entry: Property, name: str) -> object:
    declared = SETTINGS[name]
    return parser_of(name, declared.type)(entry, declared.metadata)
