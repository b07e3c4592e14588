"""The endpoint for `bootstrap.servers` in the configuration: the section `failover.bootstrap`."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from runtime.configuration.metrics_section import read_server_tls
from runtime.configuration.yaml_section import Address, Section, parse_address
from runtime.pages.page_door import PageTls

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failover.bootstrap.listen": "The address of `failover bootstrap`, `host:port`: clients "
        "have it in `bootstrap.servers`.",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapConfig:
    """Where `failover bootstrap` listens, and for how many."""

    listen: Address
    max_connections: int
    tls: PageTls | None = None


def read_bootstrap(section: Section) -> BootstrapConfig | None:
    """Take the whole section, None where there is none; raises ConfigurationError."""
    listen = section.optional_string("listen")
    max_connections = section.integer("max_connections", 1_000, least=1, most=100_000)
    tls = read_server_tls(section.section("tls", required=False))
    section.finish()
    if listen is None:
        if section.values:
            raise section.missing("listen")
        return None
    try:
        address = parse_address(listen)
    except ValueError as problem:
        raise section.error("listen", str(problem)) from None
    return BootstrapConfig(listen=address, max_connections=max_connections, tls=tls)
