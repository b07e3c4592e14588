"""The addresses of a broker, each with its name and with what is spoken there (KIP-103)."""

import re
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from runtime.configuration.properties import Property
from wire.values import frozen

MAX_PORT: Final = 65_535
EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with, not bound

_LISTENER: Final = re.compile(
    r"(?P<name>[A-Za-z0-9_]+)://(?P<host>\[[^\]]*\]|[^:/\[\]]*):(?P<port>\d+)"
)


class CannotListen(RuntimeError):
    """An address cannot be listened on; the message names it and says why."""


class SecurityProtocol(Enum):
    """The protocol that a listener speaks, by the numbers of UpdateMetadata."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def uses_tls(self) -> bool:
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def uses_sasl(self) -> bool:
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}


ProtocolMap = Mapping[str, SecurityProtocol]
OWN_NAMES: Final[ProtocolMap] = {protocol.name: protocol for protocol in SecurityProtocol}
"""Kafka's default of `listener.security.protocol.map`."""


@frozen
class Listener:
    """One address to listen on or to advertise; an empty host means every interface."""

    name: str
    host: str
    port: int
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_listeners(entry: Property, _: Mapping[str, Any]) -> tuple[Listener, ...]:
    """Return the addresses, their protocols not known yet; names are in capitals, as in Kafka."""
    listeners = tuple(_parse_listener(entry, part.strip()) for part in entry.value.split(","))
    if len({listener.name for listener in listeners}) < len(listeners):
        raise entry.wrong("a listener's name is used twice")
    return listeners


def _parse_listener(entry: Property, text: str) -> Listener:
    found = _LISTENER.fullmatch(text)
    if found is None:
        raise entry.wrong(f"{text!r} is not of the form PLAINTEXT://host:port")
    if int(found["port"]) > MAX_PORT:
        raise entry.wrong(f"{text!r}: there is no port {found['port']}")
    host, port = found["host"].strip("[]"), int(found["port"])
    return Listener(name=found["name"].upper(), host=host, port=port)


def parse_protocol_map(entry: Property, _: Mapping[str, Any]) -> ProtocolMap:
    """Return the protocol of each listener's name."""
    protocols: dict[str, SecurityProtocol] = {}
    for part in filter(None, map(str.strip, entry.value.split(","))):
        name, colon, protocol = part.partition(":")
        if not colon or protocol.strip().upper() not in OWN_NAMES:
            choices = ", ".join(OWN_NAMES)
            raise entry.wrong(f"{part!r} is not of the form NAME:PROTOCOL, with one of {choices}")
        protocols[name.strip().upper()] = OWN_NAMES[protocol.strip().upper()]
    return protocols


def with_protocols(
    entry: Property, listeners: tuple[Listener, ...], protocols: ProtocolMap
) -> tuple[Listener, ...]:
    """Return the listeners with what is spoken there. Raises ConfigurationError for unmapped."""
    for listener in listeners:
        if listener.name not in protocols:
            raise entry.wrong(f"{listener}: listener.security.protocol.map does not name it")
    return tuple(replace(listener, protocol=protocols[listener.name]) for listener in listeners)
