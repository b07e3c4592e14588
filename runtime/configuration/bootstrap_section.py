"""The endpoint for `bootstrap.servers` in the configuration: the section `failover.bootstrap`."""

import re
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final

from runtime.configuration.metrics_section import read_server_tls
from runtime.configuration.reading.addresses import Address, in_brackets, parse_address
from runtime.configuration.reading.section import Section
from runtime.pages.page_door import PageTls
from wire.values import frozen

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failover.bootstrap.listen": "The address of `failover bootstrap`, `host:port`: clients "
        "have it in `bootstrap.servers`.",
        "failover.bootstrap.forward.host": "Forward all connections, for clients that do not look "
        "for their brokers again: the host by which clients reach this endpoint, which they are "
        "told as that of every broker. With `{broker}` in it every broker has its own name, and "
        "clients come to one port: TLS says which broker is meant (SNI).",
        "failover.bootstrap.forward.ports": "A port for each broker, as `9100-9199`: broker 0 has "
        "the first, broker n the n-th behind it, at both sites. Not where brokers have names.",
        "failover.bootstrap.forward.port": "The port that clients are told where brokers have "
        "names, if it is another one than that of `listen`.",
        "failover.bootstrap.forward.max_held_bytes": "So much all connections hold together in "
        "requests under way; who sends more waits.",
        "failover.bootstrap.max_connections": "So many connections are carried at the same time.",
        "failover.bootstrap.tls.certificate": "The certificate of the endpoint, as PEM: clients "
        "speak TLS with it then, as they do with the brokers.",
        "failover.bootstrap.tls.key": "Its private key, as PEM. Without it the certificate's file "
        "has the key.",
        "failover.bootstrap.tls.key_password": "What the private key is encrypted with.",
        "failover.bootstrap.tls.key_password_file": "A file that holds `key_password`.",
        "failover.bootstrap.tls.client_ca": "Only clients with a certificate of these authorities "
        "connect. The certificate does not reach the brokers.",
    }
)
"""What each key is for."""


BROKER: Final = "{broker}"
"""Stands for a broker's id in a name."""
EVERY_HOST: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - it is compared
MOST_PORTS: Final = 2_000
_PORTS: Final = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")


@frozen
class ForwardConfig:
    """Where clients of a forwarding endpoint reach each broker."""

    host: str
    """With `{broker}` in it where each broker has a name of its own."""
    ports: range = range(0)
    """A port for each broker; none where they have names."""
    port: int = 0
    """Where all brokers are that have names."""
    max_held_bytes: int


@frozen
class BootstrapConfig:
    """Where `failover bootstrap` listens, and for how many."""

    listen: Address
    max_connections: int
    forward: ForwardConfig | None = None
    """None where clients are only shown the way."""
    tls: PageTls | None = None

    @property
    def ports(self) -> frozenset[int]:
        """Return all ports that it listens at."""
        return frozenset({self.listen[1], *(self.forward.ports if self.forward else ())})

    def shares_port(self, other: "BootstrapConfig") -> int | None:
        """Return a port at which both cannot listen on one machine, None where there is none."""
        hosts = {self.listen[0], other.listen[0]}
        shared = self.ports & other.ports
        return min(shared) if shared and (len(hosts) == 1 or hosts & EVERY_HOST) else None


def read_bootstrap(section: Section) -> BootstrapConfig | None:
    """Take the whole section, None where there is none; raises ConfigurationError."""
    listen = section.optional_string("listen")
    max_connections = section.integer("max_connections", 1_000, least=1, most=100_000)
    tls = section.part("tls", read_server_tls)
    forward = section.part("forward", _read_forward)
    section.finish()
    if listen is None:
        if section.values:
            raise section.missing("listen")
        return None
    try:
        address = parse_address(listen)
    except ValueError as problem:
        raise section.error("listen", str(problem)) from None
    if forward is not None and address[1] in forward.ports:
        raise section.error("listen", f"port {address[1]} is among those of forward.ports")
    if forward is not None and BROKER in forward.host and tls is None:
        raise section.missing("tls.certificate")
    if forward is not None and not forward.ports:
        forward = replace(forward, port=forward.port or address[1])
    return BootstrapConfig(
        listen=address, max_connections=max_connections, forward=forward, tls=tls
    )


def _read_forward(section: Section) -> ForwardConfig | None:
    host = section.optional_string("host")
    ports = section.optional_string("ports")
    port = section.optional_integer("port", least=1, most=65_535)
    max_held_bytes = section.integer(
        "max_held_bytes", 256 * 1024 * 1024, least=1024 * 1024, most=2**40
    )
    section.finish()
    if not section.values:
        return None
    if host is None:
        raise section.missing("host")
    names = BROKER in host
    if not names and ports is None:
        raise section.missing("ports")
    if names and ports is not None:
        raise section.error("ports", f"{BROKER} in `host` tells brokers apart; take one of the two")
    if not names and port is not None:
        raise section.error("port", f"is for brokers with names: a `host` with {BROKER} in it")
    _require_host(section, host)
    try:
        return ForwardConfig(
            host=host,
            ports=range(0) if ports is None else _port_range(ports),
            port=port or 0,
            max_held_bytes=max_held_bytes,
        )
    except ValueError as problem:
        raise section.error("ports", str(problem)) from None


def _require_host(section: Section, host: str) -> None:
    """Raise ConfigurationError unless it is a host, or a name with one place for a broker's id."""
    one = host.replace(BROKER, "0", 1)
    try:
        if ":" in one:
            ip_address(one)
        parsed, _ = parse_address(f"{in_brackets(one)}:1")
    except ValueError:
        raise section.error("host", f"{host!r} is no name or address of a host") from None
    if parsed != one or "{" in one:
        raise section.error("host", f"{host!r} is no name or address of a host")


def _port_range(text: str) -> range:
    """Return the ports from a first one to a last; ValueError says what is wrong."""
    found = _PORTS.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not FIRST-LAST, as in 9100-9199")
    ports = range(int(found[1]), int(found[2]) + 1)
    if not (ports and ports.start >= 1 and ports.stop <= 65_536):
        raise ValueError(f"{text!r}: the first port is 1 or more, the last 65535 at most")
    if len(ports) > MOST_PORTS:
        raise ValueError(f"{text!r}: {len(ports)} ports, where {MOST_PORTS} are allowed")
    return ports
