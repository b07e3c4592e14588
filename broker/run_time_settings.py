"""Settings of a broker that may change while it runs, beside the defaults of topics (KIP-226).

Like Kafka, a broker takes names that it does not know: they are kept, and somebody else's. Pure.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from broker.config import ACCEPTED_WITHOUT_EFFECT, SETTINGS, BrokerConfig
from broker.log.config import InvalidConfig
from broker.setting_values import parser_of
from runtime.configuration.properties import ConfigurationError, Property

CHANGEABLE: Final = frozenset(
    {
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
    return replace(static, **values) if values else static


def check_values(changed: Mapping[str, str]) -> None:
    """Raise InvalidConfig for a value that a setting cannot have."""
    for name in CHANGEABLE & {*changed}:
        _value(name, changed[name])
    for name in ACCEPTED_WITHOUT_EFFECT & {*changed}:
        text = changed[name]
        if not (text.isascii() and text.isdecimal() and int(text)):
            raise InvalidConfig(name, text, "must be a whole number of at least 1")


def _value(name: str, text: str) -> Any:  # noqa: ANN401 - what the setting's type is
    declared = SETTINGS[name]
    entry = Property(key=name, value=text, place="")
    try:
        return parser_of(name, declared.type)(entry, declared.metadata)
    except ConfigurationError as wrong:
        reason = str(wrong).removeprefix(f": {name}: ")
        raise InvalidConfig(name, text, reason) from wrong
