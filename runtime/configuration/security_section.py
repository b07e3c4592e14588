"""A cluster's connections: the keys `security_protocol`, `ssl`, `sasl` and `client`.

Secrets need not stand in the file: `${NAME}` is taken from the environment, and each secret has a
key with `_file` behind it that names a file. A complaint about a secret does not show it.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from runtime.configuration.cipher_suites import TLS12
from runtime.configuration.client_section import MEANINGS as CLIENT_MEANINGS
from runtime.configuration.client_section import librdkafka_settings, read_client
from runtime.configuration.reading.section import Section
from runtime.configuration.token_section import MEANINGS as TOKEN_MEANINGS
from runtime.configuration.token_section import read_token_source
from runtime.configuration.usable_keys import require_usable, require_usable_ca
from runtime.process.extras import install_command
from runtime.tokens.librdkafka import TokenCallback
from wire.net.kerberos import is_available
from wire.net.security import (
    AnySasl,
    BearerSasl,
    KerberosSasl,
    Mechanism,
    Sasl,
    Security,
    Tls,
    reveal,
)

NONE_OF_TLS12: Final = "ECDHE-PSK-CHACHA20-POLY1305"
"""For librdkafka, which is not told of versions: OpenSSL offers this one to nobody without a key
that both sides know beforehand, and so no suite of TLS 1.2 at all."""
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Kafka's names; the first is the default."""

OF_KERBEROS: Final = ("service_name", "keytab_file", "principal")
MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "security_protocol": "How all programs speak to the cluster; Kafka's names.",
        "ssl.ca": "The authorities that are trusted, as PEM. Without it the system's.",
        "ssl.certificate": "The client's certificate, as PEM.",
        "ssl.key": "Its private key, as PEM. Without it the certificate's file has the key.",
        "ssl.key_password": "What the private key is encrypted with.",
        "ssl.key_password_file": "A file that holds `key_password`; read at each connection.",
        "ssl.check_hostname": "Hold the broker's name against its certificate.",
        "sasl.mechanism": "The SASL mechanism. OAUTHBEARER takes one of the keys `token_...`, "
        "GSSAPI tickets of Kerberos, and the others `username` and `password`.",
        "sasl.username": "The user.",
        "sasl.password": "The password.",
        "sasl.password_file": "A file that holds `password`; read at each connection.",
        "sasl.service_name": "With GSSAPI: the first part of the brokers' principals.",
        "sasl.keytab_file": "With GSSAPI: a keytab, of which tickets are got. Without it those of "
        "the user's credential cache are shown, or of `KRB5_CLIENT_KTNAME`.",
        "sasl.principal": "With GSSAPI: who we are, where a keytab or a cache has several.",
        **TOKEN_MEANINGS,
        **CLIENT_MEANINGS,
    }
)
"""What each key of a cluster's section is for that is read here."""


def read_security(cluster: Section) -> Security:
    """Take the keys of a cluster's section; raises ConfigurationError.

    Certificates and keys are opened, so that a broken file is found out here.
    """
    protocol = cluster.choice("security_protocol", PROTOCOLS, PROTOCOLS[0])
    cluster.known.extend(("ssl", "sasl", "client"))
    cluster.require("security_protocol")
    for key, is_wanted in (("ssl", protocol.endswith("SSL")), ("sasl", protocol[:4] == "SASL")):
        if key in cluster.values and not is_wanted:
            cluster.complain(key, f"is of no use with security_protocol {protocol}")
    tls: Tls | None = None
    sasl: AnySasl | None = None
    if protocol.endswith("SSL"):
        tls = cluster.part("ssl", read_tls, Tls())
    if protocol.startswith("SASL"):
        sasl = cluster.attempt(lambda: _sasl(cluster.section("sasl")))
    client, tls = read_client(cluster.section("client", required=False), tls)
    return Security(tls=tls, sasl=sasl, client=client)


def read_tls(section: Section) -> Tls:
    """Take a whole section of TLS settings; raises ConfigurationError where a file is broken."""
    tls = Tls(
        ca=section.file_path("ca"),
        certificate=section.file_path("certificate", is_secret="key" not in section.values),
        key=section.file_path("key", is_secret=True),
        key_password=section.secret("key_password", required=False),
        checks_hostname=section.boolean("check_hostname", default=True),
        key_path=section.path,
    )
    section.finish()
    if tls.certificate is None:
        for key in ("key", "key_password", "key_password_file"):
            if key in section.values:
                raise section.error(key, "is of no use without a certificate")
    require_usable_ca(section, "ca", tls.ca)
    if tls.certificate is not None:
        require_usable(section, "certificate", tls)
    return tls


def _sasl(section: Section) -> AnySasl:
    mechanism = Mechanism(section.choice("mechanism", tuple(one.value for one in Mechanism)))
    kerberos = _kerberos(section, mechanism)
    if mechanism is Mechanism.OAUTHBEARER:
        source = read_token_source(section)
        section.finish()
        return BearerSasl(source=source)
    if kerberos is not None:
        section.finish()
        return kerberos
    username = section.string("username")
    password = section.secret("password")
    section.finish()
    assert password is not None, "it is required"
    return Sasl(mechanism=mechanism, username=username, password=password, key=section.path)


def _kerberos(section: Section, mechanism: Mechanism) -> KerberosSasl | None:
    sasl = KerberosSasl(
        key=section.path,
        service_name=section.string("service_name", "kafka"),
        keytab=section.file_path("keytab_file", is_secret=True),
        principal=section.optional_string("principal"),
    )
    if mechanism is Mechanism.GSSAPI:
        if not is_available():
            raise section.error(
                "mechanism", f"GSSAPI takes the Python package gssapi: {install_command('gssapi')}"
            )
        return sasl
    for key in OF_KERBEROS:
        if key in section.values:
            raise section.error(key, f"is of no use with {mechanism.value}")
    return None


def confluent_settings(security: Security) -> dict[str, Any]:
    """Return the same for confluent-kafka (librdkafka's names)."""
    settings: dict[str, Any] = {"security.protocol": security.protocol}
    settings |= librdkafka_settings(security.client)
    tls, sasl = security.tls, security.sasl
    settings |= {} if tls is None else _confluent_tls(tls)
    if sasl is not None:
        settings["sasl.mechanism"] = sasl.mechanism.value
    if isinstance(sasl, BearerSasl):
        settings["oauth_cb"] = TokenCallback(sasl.source)
    elif isinstance(sasl, KerberosSasl):
        settings |= _of_kerberos(sasl)
    elif sasl is not None:
        settings["sasl.username"] = sasl.username
        settings["sasl.password"] = reveal(sasl.password)
    return settings


def _of_kerberos(sasl: KerberosSasl) -> dict[str, Any]:
    """Return librdkafka's names; one that was built without Kerberos refuses them in words."""
    settings: dict[str, Any] = {"sasl.kerberos.service.name": sasl.service_name}
    if sasl.keytab is not None:
        settings["sasl.kerberos.keytab"] = str(sasl.keytab)
    if sasl.principal is not None:
        settings["sasl.kerberos.principal"] = sasl.principal
    return settings


def _confluent_tls(tls: Tls) -> dict[str, str]:
    settings = {"ssl.endpoint.identification.algorithm": "https" if tls.checks_hostname else "none"}
    files: dict[str, Path | None] = {
        "ssl.ca.location": tls.ca,
        "ssl.certificate.location": tls.certificate,
        "ssl.key.location": tls.key or tls.certificate,
    }
    settings |= {name: str(file) for name, file in files.items() if file is not None}
    if tls.key_password is not None:
        settings["ssl.key.password"] = reveal(tls.key_password)
    if tls.truststore is not None:
        settings["ssl.ca.pem"] = tls.truststore.pem().certificates
    if tls.keystore is not None:
        own = tls.keystore.pem()
        settings |= {"ssl.certificate.pem": own.certificates, "ssl.key.pem": own.private_key}
    if tls.protocols and TLS12 not in tls.protocols:
        settings["ssl.cipher.suites"] = NONE_OF_TLS12
    elif tls.ciphers:
        settings["ssl.cipher.suites"] = ":".join(tls.ciphers)
    return settings
