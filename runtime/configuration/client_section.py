"""The client's settings of a cluster: the keys of `client`, under Kafka's own names."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from runtime.configuration.client_tls_section import MEANINGS as TLS_MEANINGS
from runtime.configuration.client_tls_section import take_tls
from runtime.configuration.reading.section import Section
from wire.net.client_settings import (
    CONNECT_TIMEOUT_MS,
    RECONNECT_BACKOFF_MAX_MS,
    RECONNECT_BACKOFF_MS,
    RETRY_BACKOFF_MS,
    ClientSettings,
)
from wire.net.security import Tls

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "client.request.timeout.ms": "How long an answer is waited for while nothing moves on the "
        "connection. Without it each program has its own. The steps of a promotion never wait "
        "longer than theirs.",
        "client.socket.connection.setup.timeout.ms": "How long a connection may take, and once "
        f"more its handshake of TLS. Without it {CONNECT_TIMEOUT_MS}.",
        "client.reconnect.backoff.ms": "The pause before a broker that could not be reached is "
        f"tried again; it doubles. Without it {RECONNECT_BACKOFF_MS}.",
        "client.reconnect.backoff.max.ms": "The longest such pause. Without it "
        f"{RECONNECT_BACKOFF_MAX_MS}, or the first one where that is longer.",
        "client.retry.backoff.ms": "The pause before a question is asked again for which no leader "
        f"or coordinator was ready; it doubles. Without it {RETRY_BACKOFF_MS}.",
        "client.retry.backoff.max.ms": "The longest such pause. Without it "
        f"{RETRY_BACKOFF_MS}, or the first one where that is longer.",
        "client.send.buffer.bytes": "What may wait in a socket to be sent; -1 is the system's own "
        "choice. Without it 4 MiB, where the system allows that.",
        "client.receive.buffer.bytes": "What a socket holds that nobody has read. Without it, and "
        "with -1, the system's own choice.",
        **TLS_MEANINGS,
    }
)
"""What each key is for."""

ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "retries": "a program tries for as long as its work needs, with the pauses of "
        "retry.backoff.ms",
        "delivery.timeout.ms": "the mirror gives no record up",
        "security.protocol": "it is `security_protocol` of the cluster",
        "bootstrap.servers": "it is `bootstrap` of the cluster",
        "ssl.key.password": "the key in a store has the password of the store",
    }
)
"""Kafka's names that somebody may write here, and why they are none of ours."""
OF_THE_SYSTEM: Final = -1
LEAST_BUFFER: Final = 1_024
_BUFFER: Final = (OF_THE_SYSTEM, 100_000_000)
BOUNDS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        # A broker holds a Fetch for up to 500 ms while there is nothing new.
        "request.timeout.ms": (1_500, 300_000),
        "socket.connection.setup.timeout.ms": (1_000, 3_600_000),
        "reconnect.backoff.ms": (1, 3_600_000),
        "reconnect.backoff.max.ms": (1, 3_600_000),
        "retry.backoff.ms": (1, 300_000),
        "retry.backoff.max.ms": (1, 300_000),
        "send.buffer.bytes": _BUFFER,
        "receive.buffer.bytes": _BUFFER,
    }
)
"""Of each number, the least and the most; librdkafka, which is given the same, takes all of it."""


def read_client(section: Section, tls: Tls | None) -> tuple[ClientSettings, Tls | None]:
    """Take the keys, and return `tls` with those about it.

    Raises ConfigurationError.
    """
    for key, why in ELSEWHERE.items():
        if key in section.values:
            section.known.append(key)
            section.complain(key, f"is not taken here: {why}")
    settings = _settings(section)
    tls = take_tls(section, tls)
    section.finish()
    return settings, tls


def _settings(section: Section) -> ClientSettings:
    number, buffer = partial(_number, section), partial(_buffer, section)
    settings = ClientSettings(
        request_timeout_ms=number("request.timeout.ms"),
        connect_timeout_ms=number("socket.connection.setup.timeout.ms"),
        reconnect_backoff_ms=number("reconnect.backoff.ms"),
        reconnect_backoff_max_ms=number("reconnect.backoff.max.ms"),
        retry_backoff_ms=number("retry.backoff.ms"),
        retry_backoff_max_ms=number("retry.backoff.max.ms"),
        send_bytes=buffer("send.buffer.bytes"),
        receive_bytes=buffer("receive.buffer.bytes"),
    )
    for name, pauses in (("reconnect", settings.reconnect), ("retry", settings.retry)):
        if pauses.longest_ms < pauses.first_ms:
            first = f"{name}.backoff.ms, which is {pauses.first_ms}"
            section.complain(f"{name}.backoff.max.ms", f"{pauses.longest_ms} is less than {first}")
    return settings


def _number(section: Section, key: str) -> int | None:
    least, most = BOUNDS[key]
    return section.optional_integer(key, least=least, most=most)


def _buffer(section: Section, key: str) -> int | None:
    size = _number(section, key)
    if size is not None and OF_THE_SYSTEM < size < LEAST_BUFFER:
        section.complain(key, f"{size} is neither {OF_THE_SYSTEM} nor {LEAST_BUFFER} or more")
    return size


def librdkafka_settings(client: ClientSettings) -> dict[str, int]:
    """Return by librdkafka's names what the user has set; it has defaults of its own."""
    given: dict[str, int | None] = {
        "socket.timeout.ms": client.request_timeout_ms,
        "socket.connection.setup.timeout.ms": client.connect_timeout_ms,
        # Zero is its name for the system's own choice.
        "socket.send.buffer.bytes": _or_zero(client.send_bytes),
        "socket.receive.buffer.bytes": _or_zero(client.receive_bytes),
    }
    # Both of a pair, because its own other half may contradict the one that is set.
    if (client.reconnect_backoff_ms, client.reconnect_backoff_max_ms) != (None, None):
        given["reconnect.backoff.ms"] = client.reconnect.first_ms
        given["reconnect.backoff.max.ms"] = client.reconnect.longest_ms
    if (client.retry_backoff_ms, client.retry_backoff_max_ms) != (None, None):
        given["retry.backoff.ms"] = client.retry.first_ms
        given["retry.backoff.max.ms"] = client.retry.longest_ms
    return {name: value for name, value in given.items() if value is not None}


def _or_zero(size: int | None) -> int | None:
    return None if size is None else max(size, 0)
