"""Cipher suites by Java's names, as OpenSSL knows them. Pure.

Python and librdkafka choose among those of TLS 1.2 alone: TLS 1.3 has its three, or is not spoken.
"""

import re
import ssl
from collections.abc import Iterable, Sequence
from typing import Final

from wire.values import frozen

OF_TLS13: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
"""OpenSSL's for TLS 1.3, unless it is built otherwise."""
TLS12: Final = "TLSv1.2"
TLS13: Final = "TLSv1.3"

_JAVAS: Final = re.compile(r"TLS_(?P<exchange>[A-Z]+(?:_[A-Z]+)?)_WITH_(?P<cipher>\w+)")
_NAME: Final = re.compile(r"[A-Z0-9-]+")
_WITHOUT: Final = ":!aNULL:!eNULL:!PSK:!SRP"
"""With the first two anybody could be the broker, or read along; the others take secrets that we
have no setting for."""


class UnknownSuite(ValueError):
    """A suite cannot be used; the text names it."""


@frozen
class Suites:
    """What may be spoken."""

    protocols: tuple[str, ...]
    ciphers: tuple[str, ...]
    """OpenSSL's names of those of TLS 1.2."""


def choose_suites(names: Sequence[str], protocols: Iterable[str]) -> Suites:
    """Return what is left of `protocols` with these suites alone. Raises UnknownSuite.

    A version of TLS of which no suite is named is not spoken, as in Java.
    """
    newer = [name for name in names if name in OF_TLS13]
    older = [openssl_name(name) for name in names if name not in OF_TLS13]
    for name, ours in zip([name for name in names if name not in OF_TLS13], older, strict=True):
        if not _is_usable(ours):
            raise UnknownSuite(f"{name!r} is no suite that can be used here")
    left = tuple(
        protocol
        for protocol, has_some in ((TLS12, bool(older)), (TLS13, bool(newer)))
        if has_some and protocol in protocols
    )
    if not left:
        raise UnknownSuite(f"no suite is of {' or '.join(protocols)}")
    lacking = [name for name in OF_TLS13 if name not in newer]
    if TLS13 in left and lacking:
        raise UnknownSuite(
            f"TLS 1.3 has all of its suites or is not spoken: name {' and '.join(lacking)} too, or"
            " none of them"
        )
    return Suites(protocols=left, ciphers=tuple(older) if TLS12 in left else ())


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2 that Java names, and other names as they are.

    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256.
    """
    found = _JAVAS.fullmatch(suite)
    if found is None:
        return suite
    cipher = found["cipher"].replace("AES_", "AES").replace("CAMELLIA_", "CAMELLIA")
    cipher = cipher.replace("_CBC", "").replace("CCM_8", "CCM8")
    if cipher.startswith("CHACHA20_POLY1305"):
        cipher = "CHACHA20_POLY1305"
    prefix = "" if found["exchange"] == "RSA" else f"{found['exchange']}_"
    return (prefix + cipher).replace("_", "-")


def _is_usable(name: str) -> bool:
    """Say whether OpenSSL has this very suite: a group of them (`HIGH`) is none."""
    if _NAME.fullmatch(name) is None:
        return False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.set_ciphers(name + _WITHOUT)
    except ssl.SSLError:
        return False
    return name in {one["name"] for one in context.get_ciphers()}
