"""Settings that change while the broker runs: of topics, of this broker, and of all at once.

What holds for a topic, the first that says something:
    /config/topics/<t>  >  /config/brokers/<id>  >  /config/brokers/<default>  >  server.properties
    >  Kafka's default
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, field, fields
from enum import Enum, IntEnum
from itertools import chain, dropwhile
from typing import Final, NamedTuple

from broker.config import ACCEPTED_WITHOUT_EFFECT, SECRETS, SETTINGS, BrokerConfig
from broker.log.config import (
    LONG_MAX,
    TOPIC_CONFIGS,
    ConfigType,
    InvalidConfig,
    LogConfig,
    format_value,
    from_broker_settings,
)
from broker.run_time_settings import (
    CHANGEABLE,
    OF_ONE_BROKER,
    applied,
    check_values,
    is_fixed,
    is_known,
)
from runtime.configuration.flow_section import PatternSet
from runtime.topic_patterns import NO_PATTERNS, decode_patterns
from wire.net.secret_file import FileSecret
from wire.values import frozen

FENCED_TOPICS: Final = "write.fence.topics"
ALLOWED_CLIENTS: Final = "write.fence.allowed.client.ids"
FENCED_PATTERNS: Final = "write.fence.patterns"
FENCE_REBOOTSTRAP: Final = "write.fence.rebootstrap"
FENCE_SETTINGS: Final = (FENCED_TOPICS, FENCED_PATTERNS, ALLOWED_CLIENTS, FENCE_REBOOTSTRAP)
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LIST_SETTINGS: Final = frozenset(
    {
        FENCED_TOPICS,
        ALLOWED_CLIENTS,
        "log.cleanup.policy",
        *(entry.name for entry in TOPIC_CONFIGS.values() if entry.type is ConfigType.LIST),
    }
)

NAMES_KEPT: Final = 10_000
"""Names whose match with the fence's patterns is remembered."""

_TOPIC_DEFAULTS: Final = {
    entry.broker_name: entry for entry in TOPIC_CONFIGS.values() if entry.broker_name
}


class Source(IntEnum):
    """Where a value comes from, by the numbers of DescribeConfigs v1+."""

    TOPIC = 1
    BROKER = 2
    DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    KAFKA_DEFAULT = 5


class Synonym(NamedTuple):
    """A name under which a value is given somewhere, and where."""

    name: str
    value: str | None
    source: Source


class Described(NamedTuple):
    """One setting as DescribeConfigs shows it: the first synonym holds, the others are behind it.

    Without any it is a setting that only Kafka's default gives.
    """

    name: str
    value: str | None
    read_only: bool
    synonyms: tuple[Synonym, ...]

    @property
    def source(self) -> Source:
        return self.synonyms[0].source if self.synonyms else Source.KAFKA_DEFAULT


@frozen
class WriteFence:
    """Which topics take no writes, and from whom they do all the same."""

    topics: frozenset[str] = frozenset()
    patterns: PatternSet = NO_PATTERNS
    """Beside the topics: those that are made while the fence stands, too."""
    allowed_client_ids: frozenset[str] = frozenset()
    sends_away: bool = False
    """Whether clients that ask for the way to a closed topic are sent to their bootstrap servers
    (KIP-1102)."""
    _matched: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)
    """The answers of the patterns for names that were asked about."""

    def refuses(self, client_id: str | None, topic: str) -> bool:
        """Return whether a write of this client to this topic is refused."""
        if not (self.topics or self.patterns.include) or client_id in self.allowed_client_ids:
            return False
        return topic in self.topics or self._matches(topic)

    def _matches(self, topic: str) -> bool:
        found = self._matched.get(topic)
        if found is None:
            if len(self._matched) >= NAMES_KEPT:
                self._matched.clear()
            found = self._matched[topic] = self.patterns.matches(topic)
        return found


class DynamicConfig:
    """The settings now in force on this broker; replaced as ZooKeeper says."""

    def __init__(self, static: BrokerConfig) -> None:
        self.broker_id = static.broker_id
        self._fence_settings = FENCE_SETTINGS if static.write_fence_enable else ()
        self._file = static
        self._static = static_log_settings(static)
        self._own: Mapping[str, str] = {}
        self._default_broker: Mapping[str, str] = {}
        self._topics: dict[str, Mapping[str, str]] = {}
        self._log_defaults = from_broker_settings(self._static)
        self.fence = WriteFence()
        self.running = static
        """The settings of the broker's file, with what has changed since then."""

    def set_default_broker(self, config: Mapping[str, str]) -> None:
        """Take over `/config/brokers/<default>`. Raises InvalidConfig, changing nothing."""
        check_rates(config)
        log_defaults = from_broker_settings({**self._static, **config, **self._own})
        patterns = _patterns(config)
        _sends_away(config)
        self.running = applied(self._file, {**_of_all(config), **self._own})
        self._log_defaults = log_defaults
        self._default_broker = dict(config)
        self.fence = WriteFence(
            topics=_listed(config.get(FENCED_TOPICS, "")),
            patterns=patterns,
            allowed_client_ids=_listed(config.get(ALLOWED_CLIENTS, "")),
            sends_away=_sends_away(config),
        )

    def set_broker(self, config: Mapping[str, str]) -> None:
        """Take over `/config/brokers/<this id>`. Raises InvalidConfig, changing nothing."""
        check_rates(config)
        log_defaults = from_broker_settings({**self._static, **self._default_broker, **config})
        self.running = applied(self._file, {**_of_all(self._default_broker), **config})
        self._log_defaults = log_defaults
        self._own = dict(config)

    def set_topic(self, topic: str, config: Mapping[str, str]) -> None:
        """Take over `/config/topics/<topic>`. Raises InvalidConfig, changing nothing."""
        self._log_defaults.applying(config)
        self._topics[topic] = dict(config)

    def forget(self, topic: str) -> None:
        """Drop the settings of a topic that is gone; its name may come back with others."""
        self._topics.pop(topic, None)

    def knows(self, topic: str) -> bool:
        """Return whether a topic's settings have been read, even if it has none of its own."""
        return topic in self._topics

    def replication_rate(self, name: str) -> int:
        """Return LEADER_RATE or FOLLOWER_RATE in bytes a second."""
        text = self._own.get(name, self._default_broker.get(name))
        return LONG_MAX if text is None else int(text)

    def topic(self, topic: str) -> Mapping[str, str]:
        """Return what is set for one topic, without defaults."""
        return self._topics.get(topic, {})

    def log_config(self, topic: str) -> LogConfig:
        """Return all settings of a topic's logs."""
        own = self._topics.get(topic)
        return self._log_defaults.applying(own) if own else self._log_defaults

    def describe_topic(self, topic: str) -> list[Described]:
        """Return every setting of a topic with its source."""
        own = self.topic(topic)
        values = {**self.log_config(topic).as_strings(), **_lists_as_given(own)}
        return [
            Described(
                name,
                value,
                read_only=False,
                synonyms=(
                    *([Synonym(name, value, Source.TOPIC)] if name in own else []),
                    *self._synonyms(TOPIC_CONFIGS[name].broker_name, self._static),
                ),
            )
            for name, value in values.items()
        ]

    def _synonyms(self, name: str, static: Mapping[str, str | None]) -> list[Synonym]:
        """Return where a setting of the broker has a value, the one that holds first.

        Behind it stands what would hold without it, be it in another unit; where only another unit
        has a value, Kafka tells of none (`DynamicBrokerConfig`).
        """
        names = (name, *_IN_OTHER_UNITS.get(name, ()))
        levels: tuple[tuple[Mapping[str, str | None], Source], ...] = (
            (self._own, Source.BROKER),
            (self._default_broker, Source.DEFAULT_BROKER),
            (static, Source.STATIC_BROKER),
            (_KAFKA_DEFAULTS, Source.KAFKA_DEFAULT),
        )
        found = [
            Synonym(one, level[one], source)
            for level, source in levels
            for one in names
            if one in level
        ]
        return [*dropwhile(lambda one: one.name != name, found)]

    def describe_broker(self, static: BrokerConfig) -> list[Described]:
        """Return every setting of this broker with its sources."""
        given: dict[str, str | None] = {
            name: _text(getattr(static, declared.name))
            for name, declared in SETTINGS.items()
            if name in static.provided
        }
        given |= {
            name: static.provided[name]
            for name in (*ACCEPTED_WITHOUT_EFFECT, *chain(*_IN_OTHER_UNITS.values()))
            if name in static.provided
        }
        names = [
            *self._own,
            *self._default_broker,
            *SETTINGS,
            *ACCEPTED_WITHOUT_EFFECT,
            *self._fence_settings,
        ]
        return [
            self._described(name, static, self._synonyms(name, given))
            for name in dict.fromkeys(names)
        ]

    def _described(self, name: str, static: BrokerConfig, synonyms: Sequence[Synonym]) -> Described:
        """Kafka lets a setting in other units, as log.retention.hours, stand for this one."""
        value = synonyms[0].value if synonyms else None
        if name in SETTINGS and (not synonyms or synonyms[0].source is Source.KAFKA_DEFAULT):
            value = _text(getattr(static, SETTINGS[name].name))
        return Described(
            name,
            value,
            read_only=is_fixed(name) and not _changes_at_run_time(name),
            synonyms=tuple(synonyms),
        )

    def describe_default_broker(self) -> list[Described]:
        """Return what is set for all brokers, and the fence also where none is.

        By that others tell brokers that can be fenced from those of Apache Kafka, and from those
        whose `write.fence.enable` is false: both are closed by rights.
        """
        return [
            Described(
                name,
                value,
                read_only=False,
                synonyms=(Synonym(name, value, Source.DEFAULT_BROKER),)
                if name in self._default_broker
                else (),
            )
            for name, value in {
                **dict.fromkeys(self._fence_settings, ""),
                **self._default_broker,
            }.items()
        ]


def _lists_as_given(own: Mapping[str, str]) -> dict[str, str]:
    """Return a topic's own lists in the order in which somebody gave them, as Kafka shows them."""
    return {
        name: ",".join(part.strip() for part in value.split(","))
        for name, value in own.items()
        if name in TOPIC_CONFIGS and TOPIC_CONFIGS[name].type is ConfigType.LIST
    }


def _patterns(config: Mapping[str, str]) -> PatternSet:
    """Return the fence's patterns; raises InvalidConfig."""
    value = config.get(FENCED_PATTERNS, "")
    try:
        return decode_patterns(value)
    except ValueError as error:
        raise InvalidConfig(FENCED_PATTERNS, value, str(error)) from error


def _sends_away(config: Mapping[str, str]) -> bool:
    """Return whether the fence sends clients away; raises InvalidConfig."""
    value = config.get(FENCE_REBOOTSTRAP, "")
    if value not in {"", "true", "false"}:
        raise InvalidConfig(FENCE_REBOOTSTRAP, value, "must be true or false")
    return value == "true"


def _of_all(config: Mapping[str, str]) -> dict[str, str]:
    """Return what all brokers may have in common: they do not share an address."""
    return {name: value for name, value in config.items() if name not in OF_ONE_BROKER}


def check_default_broker(config: Mapping[str, str]) -> None:
    """Raise InvalidConfig for a setting that cannot be changed for all brokers at run time.

    A name that nobody here knows is taken, as by Kafka.
    """
    for name in OF_ONE_BROKER & {*config}:
        raise InvalidConfig(name, config[name], "holds for one broker: name its id")
    _check_changeable(config)


def _check_changeable(config: Mapping[str, str]) -> None:
    for name, value in config.items():
        if is_fixed(name) and not _changes_at_run_time(name):
            shown = None if may_be_secret(name) else value
            raise InvalidConfig(name, shown, "cannot be changed while brokers run")
    check_values(config)
    check_rates(config)
    _patterns(config)
    _sends_away(config)
    from_broker_settings(config).with_overrides({})  # none that conflict with each other


def check_no_fence(config: Mapping[str, str]) -> None:
    """Raise InvalidConfig for a fence where `write.fence.enable` is false.

    One that was set before stays in force, and can be taken away.
    """
    for name in FENCE_SETTINGS:
        if config.get(name, "") not in {"", "false"}:
            reason = "write.fence.enable is false: these brokers are closed by rights"
            raise InvalidConfig(name, config[name], reason)


def check_one_broker(static: BrokerConfig, config: Mapping[str, str]) -> None:
    """Raise InvalidConfig for a setting that this broker cannot change at run time."""
    for name, value in config.items():
        if name in FENCE_SETTINGS:
            raise InvalidConfig(name, value, "holds for all brokers or none (empty name)")
    _check_changeable(config)
    applied(static, config)


def _changes_at_run_time(name: str) -> bool:
    return name in _TOPIC_DEFAULTS or name in CHANGEABLE or name in (LEADER_RATE, FOLLOWER_RATE)


def may_be_secret(name: str) -> bool:
    """Return whether a broker's setting is hidden: a secret, or one that is not known here."""
    known = is_known(name) or _changes_at_run_time(name) or name in FENCE_SETTINGS
    return name in SECRETS or not known


def check_rates(config: Mapping[str, str]) -> None:
    """Raise InvalidConfig for a throttle that is no number of bytes (Kafka: at least 0)."""
    for name in (LEADER_RATE, FOLLOWER_RATE):
        text = config.get(name)
        if text is not None and not (text.isascii() and text.isdecimal() and int(text) <= LONG_MAX):
            raise InvalidConfig(name, text, "must be a whole number of at least 0")


def static_log_settings(static: BrokerConfig) -> dict[str, str]:
    """Return the topic defaults that the broker's own file changes, in Kafka's text."""
    defaults = {entry.name: entry.default for entry in fields(BrokerConfig)}
    changed: dict[str, str] = {}
    for name in _TOPIC_DEFAULTS.keys() & SETTINGS.keys():
        attribute = SETTINGS[name].name
        value = getattr(static, attribute)
        if value != defaults[attribute]:
            changed[name] = format_value(value)
    return changed


def _text(value: object) -> str | None:
    """Return a value as Kafka shows it; None for what is not set."""
    match value:
        case bool() | int() | float() | str() | frozenset():
            return format_value(value)
        case tuple():
            return ",".join(_text(one) or "" for one in value) if value else None
        case Mapping():
            return ",".join(f"{name}:{_text(held)}" for name, held in value.items())
        case Enum():
            return value.value if isinstance(value.value, str) else value.name
        case FileSecret():
            return str(value.file)
        case _:
            return None if value is None else str(value)


_IN_OTHER_UNITS: Final[Mapping[str, tuple[str, ...]]] = {
    "log.flush.interval.ms": ("log.flush.scheduler.interval.ms",),
    "log.retention.ms": ("log.retention.minutes", "log.retention.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.hours",),
    "log.roll.ms": ("log.roll.hours",),
}
"""In Kafka these have no default of their own: a setting in another unit has it."""
_DEFAULTS_IN_OTHER_UNITS: Final[Mapping[str, str]] = {
    "log.flush.scheduler.interval.ms": str(2**63 - 1),
    "log.retention.hours": "168",
    "log.roll.hours": "168",
    "log.roll.jitter.hours": "0",
}
_KAFKA_DEFAULTS: Final[Mapping[str, str]] = {
    **{
        name: text
        for name, entry in SETTINGS.items()
        if name not in _IN_OTHER_UNITS
        and entry.default is not MISSING
        and (text := _text(entry.default)) is not None
    },
    **ACCEPTED_WITHOUT_EFFECT,
    **_DEFAULTS_IN_OTHER_UNITS,
    **dict.fromkeys(FENCE_SETTINGS, ""),
}


def _listed(text: str) -> frozenset[str]:
    return frozenset(item.strip() for item in text.split(",") if item.strip())
