"""Settings of a broker that may change while it runs, beside the defaults of topics (KIP-226).

Like Kafka, a broker takes names that it does not know: they are kept, and somebody else's. Pure.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from broker.config import ACCEPTED_WITHOUT_EFFECT, SETTINGS, BrokerConfig, check_advertised
from broker.listeners import with_protocols
from broker.log.config import InvalidConfig
from broker.security.settings import BadSecurity
from broker.setting_values import parser_of
from runtime.configuration.properties import Property
from runtime.configuration.reading.mistakes import ConfigurationError

ADVERTISED: Final = "advertised.listeners"
CHANGEABLE: Final = frozenset(
    {
        ADVERTISED,
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.max.bytes.per.second",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "producer.id.expiration.ms",
    }
)
OF_ONE_BROKER: Final = frozenset({ADVERTISED})
"""Kafka changes these for one broker only, never for all at once."""
FIXED_WITHOUT_EFFECT: Final = frozenset(
    {"queued.max.requests", "socket.receive.buffer.bytes", "socket.send.buffer.bytes"}
)
"""Kafka does not change these at run time either; all others without effect are thread counts."""


def is_fixed(name: str) -> bool:
    """Return whether a broker that knows this setting keeps it until it starts again."""
    if name in ACCEPTED_WITHOUT_EFFECT:
        return name in FIXED_WITHOUT_EFFECT
    return name in SETTINGS and name not in CHANGEABLE


def is_known(name: str) -> bool:
    """Return whether it is one of a broker's settings; what is not may be somebody's secret."""
    return name in SETTINGS or name in ACCEPTED_WITHOUT_EFFECT


def applied(static: BrokerConfig, changed: Mapping[str, str]) -> BrokerConfig:
    """Return a broker's settings with those that changed meanwhile. Raises InvalidConfig."""
    values = {SETTINGS[name].name: _value(name, changed[name]) for name in CHANGEABLE & {*changed}}
    if ADVERTISED not in changed:
        return replace(static, **values) if values else static
    return _with_advertised(replace(static, **values), changed[ADVERTISED])


def _with_advertised(config: BrokerConfig, text: str) -> BrokerConfig:
    """Say what is spoken at the addresses that clients are told. Raises InvalidConfig."""
    entry = Property(key=ADVERTISED, value=text, place="")
    protocols = config.listener_security_protocol_map
    try:
        told = with_protocols(entry, config.advertised_listeners, protocols)
        known = replace(config, advertised_listeners=told)
        check_advertised(known)
    except (ConfigurationError, BadSecurity) as wrong:
        raise InvalidConfig(ADVERTISED, text, _reason(ADVERTISED, wrong)) from wrong
    return known


def check_values(changed: Mapping[str, str]) -> None:
    """Raise InvalidConfig for a value that a setting cannot have."""
    for name in CHANGEABLE & {*changed}:
        _value(name, changed[name])
    for name in ACCEPTED_WITHOUT_EFFECT.keys() & {*changed}:
        text = changed[name]
        if not (text.isascii() and text.isdecimal() and int(text)):
            raise InvalidConfig(name, text, "must be a whole number of at least 1")


def _value(name: str, text: str) -> Any:  # noqa: ANN401 - what the setting's type is
    declared = SETTINGS[name]
    entry = Property(key=name, value=text, place="")
    try:
        return parser_of(name, declared.type)(entry, declared.metadata)
    except ConfigurationError as wrong:
        raise InvalidConfig(name, text, _reason(name, wrong)) from wrong


def _reason(name: str, wrong: Exception) -> str:
    return str(wrong).removeprefix(f": {name}: ")
