"""The pages of the programs in the configuration: the section `metrics`."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from runtime.configuration.reading.section import Section
from runtime.pages.page_door import (
    UNGUARDED,
    PageDoor,
    PageTls,
    PageUser,
    is_loopback,
    reader_context,
    server_context,
)
from wire.net.tls_context import reason_of
from wire.values import frozen

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "metrics.host": "The address at which programs serve their pages. Beyond loopback only "
        "with a token, a user, or `tls.client_ca`; `/health/live` and `/health/ready` need none.",
        "metrics.advertised_host": "The name by which `mirror status` finds the pages from other "
        "machines. Without it `host`, or the address towards the witness.",
        "metrics.mirror_port": "The port of `mirror run`; worker *i* takes this plus 10 *i*.",
        "metrics.failover_port": "The port of `failover serve`.",
        "metrics.audit_port": "The port of `spark-audit metrics`.",
        "metrics.bootstrap_port": "The port of `failover bootstrap`.",
        "metrics.granularity": "What `mirror run` has a line for: each `flow`, each `topic`, or "
        "each `partition`. Lags and counts are added up, of lags in seconds the greatest counts; "
        "offsets and states are there by `partition` alone. Each group has its own lines always.",
        "metrics.token": "What readers show as `Authorization: Bearer`. In a browser it is the "
        "password of the user `token`.",
        "metrics.token_file": "A file that holds `token`; read at each request.",
        "metrics.username": "The user that readers show by HTTP's basic scheme.",
        "metrics.password": "Its password.",
        "metrics.password_file": "A file that holds `password`; read at each request.",
        "metrics.unguarded": "Serve pages beyond loopback to everybody who reaches them.",
        "metrics.tls.certificate": "The certificate of the pages, as PEM: they are HTTPS then.",
        "metrics.tls.key": "Its private key, as PEM. Without it the certificate's file has the "
        "key.",
        "metrics.tls.key_password": "What the private key is encrypted with.",
        "metrics.tls.key_password_file": "A file that holds `key_password`.",
        "metrics.tls.ca": "The authorities of the certificate, for `mirror status`. Without it the "
        "system's.",
        "metrics.tls.client_ca": "Only readers with a certificate of these authorities get a page "
        "other than `/health/live` and `/health/ready`.",
    }
)
"""What each key is for."""


class Granularity(StrEnum):
    """What has a line of its own among the mirror's metrics."""

    FLOW = "flow"
    TOPIC = "topic"
    PARTITION = "partition"


@frozen
class MetricsConfig:
    """Where each program serves /metrics, /health and /status, and to whom."""

    host: str
    mirror_port: int
    failover_port: int
    audit_port: int
    bootstrap_port: int
    granularity: Granularity = Granularity.PARTITION
    advertised_host: str | None = None
    door: PageDoor = UNGUARDED


def read_metrics(section: Section) -> MetricsConfig:
    """Take the whole section; raises ConfigurationError."""
    host = section.string("host", "127.0.0.1")
    door = section.attempt(lambda: _door(section))
    is_unguarded = section.boolean("unguarded", default=False)
    if door is None:
        door = UNGUARDED
    elif is_unguarded and door.is_guarded:
        section.complain("unguarded", "stands beside what guards the pages: one of them is true")
    elif not (is_unguarded or door.is_guarded or is_loopback(host)):
        section.complain(
            "host",
            f"{host} is reached by others: name what readers have to show (token_file, username and"
            " password_file, or tls.client_ca), or say `unguarded: true`",
        )
    metrics = MetricsConfig(
        host=host,
        advertised_host=section.optional_string("advertised_host"),
        mirror_port=section.integer("mirror_port", 9401, least=0, most=65535),
        failover_port=section.integer("failover_port", 9402, least=0, most=65535),
        audit_port=section.integer("audit_port", 9403, least=0, most=65535),
        bootstrap_port=section.integer("bootstrap_port", 9404, least=0, most=65535),
        granularity=Granularity(
            section.choice("granularity", tuple(Granularity), Granularity.PARTITION)
        ),
        door=door,
    )
    section.finish()
    return metrics


def _door(section: Section) -> PageDoor:
    token = section.secret("token", required=False)
    username = section.optional_string("username")
    password = section.secret("password", required=username is not None)
    section.require("username")
    if password is not None and username is None:
        raise section.error("password", "is of no use without a username")
    if username is not None and ":" in username:
        raise section.error("username", "must not hold a colon: HTTP ends the name there")
    tls = read_server_tls(section.section("tls", required=False), has_readers=True)
    reader = None
    if username is not None and password is not None:
        reader = PageUser(username=username, password=password)
    return PageDoor(tls=tls, token=token, reader=reader)


def read_server_tls(section: Section, *, has_readers: bool = False) -> PageTls | None:
    """Take a section `tls` of a server; None where it is empty. Raises ConfigurationError.

    `has_readers`: commands of ours read from it, and know its authorities by `ca`.
    """
    certificate = section.file_path("certificate", is_secret="key" not in section.values)
    key = section.file_path("key", is_secret=True)
    key_password = section.secret("key_password", required=False)
    ca = section.file_path("ca") if has_readers else None
    client_ca = section.file_path("client_ca")
    section.finish()
    if certificate is None:
        if section.values:
            raise section.missing("certificate")
        return None
    tls = PageTls(
        certificate=certificate, key=key, key_password=key_password, ca=ca, client_ca=client_ca
    )
    _try(section, "certificate", lambda: server_context(replace(tls, client_ca=None)))
    _try(section, "client_ca", lambda: server_context(tls))
    _try(section, "ca", lambda: reader_context(tls))
    return tls


def _try(section: Section, key: str, read: Callable[[], object]) -> None:
    try:
        read()
    except ssl.SSLError as problem:
        raise section.error(key, f"cannot be used: {reason_of(problem)}") from None
    except OSError as problem:
        raise section.error(key, f"cannot be used: {problem.strerror}") from None
