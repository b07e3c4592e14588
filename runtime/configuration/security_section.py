"""The security of a cluster's connections: the keys `security_protocol`, `ssl` and `sasl`.

Secrets need not stand in the file: `${NAME}` is taken from the environment, and each secret has a
key with `_file` behind it that names a file. A complaint about a secret does not show it.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from runtime.configuration.token_section import MEANINGS as TOKEN_MEANINGS
from runtime.configuration.token_section import read_token_source
from runtime.configuration.yaml_section import Section
from runtime.tokens.librdkafka import oauth_callback
from wire.net.security import (
    PLAINTEXT,
    AnySasl,
    BearerSasl,
    Mechanism,
    Sasl,
    Security,
    Tls,
    reveal,
)
from wire.net.tls import make_context, reason_of

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Kafka's names; the first is the default."""

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "security_protocol": "How all programs speak to the cluster; Kafka's names.",
        "ssl.ca": "The authorities that are trusted, as PEM. Without it the system's.",
        "ssl.certificate": "The client's certificate, as PEM.",
        "ssl.key": "Its private key, as PEM. Without it the certificate's file has the key.",
        "ssl.key_password": "What the private key is encrypted with.",
        "ssl.key_password_file": "A file that holds `key_password`; read at each connection.",
        "ssl.check_hostname": "Hold the broker's name against its certificate.",
        "sasl.mechanism": "The SASL mechanism. OAUTHBEARER takes one of the keys `token_...`, the "
        "others `username` and `password`.",
        "sasl.username": "The user.",
        "sasl.password": "The password.",
        "sasl.password_file": "A file that holds `password`; read at each connection.",
        **TOKEN_MEANINGS,
    }
)
"""What each key of a cluster's section is for that is read here."""


def read_security(cluster: Section) -> Security:
    """Take the keys of a cluster's section; raises ConfigurationError.

    Certificates and keys are opened, so that a broken file is found out here.
    """
    protocol = cluster.choice("security_protocol", PROTOCOLS, PROTOCOLS[0])
    for key, is_wanted in (("ssl", protocol.endswith("SSL")), ("sasl", protocol[:4] == "SASL")):
        if key in cluster.values and not is_wanted:
            raise cluster.error(key, f"is of no use with security_protocol {protocol}")
    if protocol == PROTOCOLS[0]:
        cluster.known.extend(("ssl", "sasl"))
        return PLAINTEXT
    return Security(
        tls=read_tls(cluster.section("ssl", required=False)) if protocol.endswith("SSL") else None,
        sasl=_sasl(cluster.section("sasl")) if protocol.startswith("SASL") else None,
    )


def read_tls(section: Section) -> Tls:
    """Take a whole section of TLS settings; raises ConfigurationError where a file is broken."""
    tls = Tls(
        ca=section.file_path("ca"),
        certificate=section.file_path("certificate", is_secret="key" not in section.values),
        key=section.file_path("key", is_secret=True),
        key_password=section.secret("key_password", required=False),
        checks_hostname=section.boolean("check_hostname", default=True),
    )
    section.finish()
    if tls.certificate is None:
        for key in ("key", "key_password", "key_password_file"):
            if key in section.values:
                raise section.error(key, "is of no use without a certificate")
    _try(section, "ca", Tls(ca=tls.ca))
    _try(section, "certificate", tls)
    return tls


def _try(section: Section, key: str, tls: Tls) -> None:
    try:
        make_context(tls)
    except ssl.SSLError as problem:
        raise section.error(key, f"cannot be used: {reason_of(problem)}") from None
    except OSError as problem:
        raise section.error(key, f"cannot be used: {problem.strerror}") from None


def _sasl(section: Section) -> AnySasl:
    mechanism = Mechanism(section.choice("mechanism", tuple(one.value for one in Mechanism)))
    if mechanism is Mechanism.OAUTHBEARER:
        source = read_token_source(section)
        section.finish()
        return BearerSasl(source=source)
    username = section.string("username")
    password = section.secret("password")
    section.finish()
    assert password is not None, "it is required"
    return Sasl(mechanism=mechanism, username=username, password=password)


def confluent_settings(security: Security) -> dict[str, Any]:
    """Return the same for confluent-kafka (librdkafka's names)."""
    settings: dict[str, Any] = {"security.protocol": security.protocol}
    tls, sasl = security.tls, security.sasl
    if tls is not None:
        settings["ssl.endpoint.identification.algorithm"] = (
            "https" if tls.checks_hostname else "none"
        )
        key = tls.key or tls.certificate
        files: dict[str, Path | None] = {
            "ssl.ca.location": tls.ca,
            "ssl.certificate.location": tls.certificate,
            "ssl.key.location": key,
        }
        settings |= {name: str(file) for name, file in files.items() if file is not None}
        if tls.key_password is not None:
            settings["ssl.key.password"] = reveal(tls.key_password)
    if sasl is not None:
        settings["sasl.mechanism"] = sasl.mechanism.value
    if isinstance(sasl, BearerSasl):
        settings["oauth_cb"] = oauth_callback(sasl.source)
    elif sasl is not None:
        settings["sasl.username"] = sasl.username
        settings["sasl.password"] = reveal(sasl.password)
    return settings
