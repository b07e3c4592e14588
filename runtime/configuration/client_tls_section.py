"""TLS of a cluster under Kafka's own names: the keys `ssl...` of `client`."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

from runtime.configuration.cipher_suites import Suites, UnknownSuite, choose_suites
from runtime.configuration.reading.section import Section
from runtime.keystores.bad_store import BadStore, how_to_convert
from runtime.keystores.store import Store, open_store
from wire.net.secret_file import BadSecretFile
from wire.net.security import Tls
from wire.net.tls_context import VERSIONS

KEYSTORE: Final = "ssl.keystore"
TRUSTSTORE: Final = "ssl.truststore"
ALGORITHM: Final = "ssl.endpoint.identification.algorithm"
PROTOCOLS: Final = "ssl.enabled.protocols"
SUITES: Final = "ssl.cipher.suites"
OF_A_STORE: Final = ("location", "password", "password_file", "type")
KEYS: Final = (
    ALGORITHM,
    PROTOCOLS,
    SUITES,
    *(f"{store}.{key}" for store in (KEYSTORE, TRUSTSTORE) for key in OF_A_STORE),
)
FORMS: Final = ("PKCS12", "JKS")
"""Kafka's names of what is read. A file says itself which of them it is, as to Java."""
CHECKED: Final = "https"

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"client.{ALGORITHM}": "Nothing, or `none`, is `ssl.check_hostname: false`. A host's name "
        "is sent (SNI) in any case.",
        f"client.{PROTOCOLS}": "The versions of TLS. `failover.client` always speaks TLSv1.3, too, "
        "because librdkafka has no such setting.",
        f"client.{SUITES}": "The cipher suites, by Java's or OpenSSL's names. A version of TLS of "
        "which none is named is not spoken. Those of TLS 1.3 are named all, or none.",
        f"client.{KEYSTORE}.location": "The client's key and its chain of certificates as PKCS12 "
        "or JKS, in place of `ssl.certificate`.",
        f"client.{KEYSTORE}.password": "Its password, which is the key's as well.",
        f"client.{KEYSTORE}.password_file": "A file that holds it; read with the store.",
        f"client.{KEYSTORE}.type": "PKCS12 or JKS. The file itself says which of them it is.",
        f"client.{TRUSTSTORE}.location": "The authorities as PKCS12 or JKS, in place of `ssl.ca`.",
        f"client.{TRUSTSTORE}.password": "Its password, where it has one.",
        f"client.{TRUSTSTORE}.password_file": "A file that holds it; read with the store.",
        f"client.{TRUSTSTORE}.type": "What it is, as `ssl.keystore.type`.",
    }
)
"""What each key is for."""


def take_tls(section: Section, tls: Tls | None) -> Tls | None:
    """Return `tls` with what the keys say; what is wrong with them is remembered."""
    if tls is None:
        for key in KEYS:
            section.known.append(key)
            if key in section.values:
                section.complain(key, "is of no use with a security_protocol without SSL")
        return None
    keystore = section.attempt(
        partial(_store, section, KEYSTORE, beside=tls.certificate is not None)
    )
    truststore = section.attempt(partial(_store, section, TRUSTSTORE, beside=tls.ca is not None))
    algorithm = section.word(ALGORITHM, (CHECKED, "none"), CHECKED)
    suites = _suites(section)
    return replace(
        tls,
        keystore=keystore,
        truststore=truststore,
        checks_hostname=tls.checks_hostname and algorithm == CHECKED,
        protocols=suites.protocols,
        ciphers=suites.ciphers,
    )


def _store(section: Section, name: str, *, beside: bool) -> Store | None:
    location, has_own_key = f"{name}.location", name == KEYSTORE
    kind = section.string(f"{name}.type", FORMS[0])
    password = section.secret(f"{name}.password", required=False)
    file = section.file_path(location, is_secret=has_own_key)
    section.require(location, *(f"{name}.{one}" for one in OF_A_STORE))
    if file is None:
        for key in (f"{name}.{one}" for one in OF_A_STORE):
            if key in section.values:
                raise section.error(key, f"is of no use without {location}")
        return None
    if beside:
        raise section.error(location, "stands beside a PEM file of `ssl`: one of them is enough")
    if kind not in FORMS:
        how = how_to_convert(str(file))
        raise section.error(
            f"{name}.type", f"{kind!r} is not read, but {' and '.join(FORMS)}: {how}"
        )
    try:
        key = f"{section.path}.{location}"
        return open_store(file, password, has_own_key=has_own_key, key=key)
    except (BadStore, BadSecretFile) as problem:
        raise section.error(location, f"{file}: {problem}") from None


def _suites(section: Section) -> Suites:
    protocols = section.attempt(partial(_listed, section, PROTOCOLS, tuple(VERSIONS)), ())
    for name in protocols:
        if name not in VERSIONS:
            section.complain(PROTOCOLS, f"{name!r} is not one of {', '.join(VERSIONS)}")
    named = section.attempt(partial(_listed, section, SUITES, ()))
    known = tuple(name for name in VERSIONS if name in protocols)
    if not named:
        return Suites(protocols=known, ciphers=())
    try:
        return choose_suites(named, known or tuple(VERSIONS))
    except UnknownSuite as problem:
        section.complain(SUITES, str(problem))
        return Suites(protocols=known, ciphers=())


def _listed(section: Section, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list, or what one text names between commas as in Kafka's own files."""
    texts = section.strings(key, default)
    found = tuple(part.strip() for text in texts for part in text.split(",") if part.strip())
    if key in section.values and not found:
        raise section.error(key, "names nothing")
    return found
