"""JKS, which Java wrote up to its version 8 unless told otherwise. Pure.

    magic, version, number of entries     4 bytes each
    entry: a private key                  tag 1, alias, time, protected key, chain of certificates
    entry: a certificate                  tag 2, alias, time, certificate
    SHA-1 of password, salt and all that  20 bytes

Whoever keeps the store knows that this protects little: the key's protection is one SHA-1 for each
twenty bytes. No library for it is kept, and what is read is this and no more.
"""

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)
from cryptography.x509 import Certificate, load_der_x509_certificate

from runtime.keystores.bad_store import BadStore, how_to_convert
from runtime.keystores.contents import Contents

MAGIC: Final = b"\xfe\xed\xfe\xed"
SALT: Final = b"Mighty Aphrodite"
"""Java's, before the bytes of the store."""
DIGEST_BYTES: Final = 20
PRIVATE_KEY, CERTIFICATE = 1, 2
SEQUENCE, OBJECT_ID, OCTETS = 0x30, 0x06, 0x04
PROTECTION: Final = bytes.fromhex("2b060104012a02110101")
"""The object identifier 1.3.6.1.4.1.42.2.17.1.1 of Java's protection of keys."""
MOST_LENGTH_BYTES: Final = 4


def read_jks(content: bytes, password: str | None, file: Path) -> Contents:
    """Return what a store holds, of several keys the first one.

    Raises BadStore; `file` is for what it proposes.

    Without a password the store is not held against its digest, as by Java, and has no key.
    """
    body, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if password is not None and not _is_digest(digest, _as_java(password), SALT, body):
        raise BadStore("the password is wrong, or the store is damaged")
    rest = _Rest(memoryview(body)[len(MAGIC) :])
    version = rest.number(4)
    if version not in {1, 2}:
        raise BadStore(f"is JKS of version {version}, of which nothing is known")
    key, own, others, is_locked = None, None, list[Certificate](), False
    for _ in range(rest.number(4)):
        tag = rest.number(4)
        rest.take(rest.number(2))  # the alias
        rest.take(8)  # the time
        if tag == CERTIFICATE:
            others.append(_certificate(rest, version))
        elif tag == PRIVATE_KEY:
            protected = rest.take(rest.number(4))
            chain = [_certificate(rest, version) for _ in range(rest.number(4))]
            if password is None:
                is_locked = True
            elif key is None and chain:
                key, own = _unprotect(protected, password, file), chain.pop(0)
            others += chain
        else:
            raise BadStore(f"has an entry of kind {tag}, of which nothing is known")
    if rest.left:
        raise BadStore("has more bytes than its entries")
    return Contents(key=key, own=own, others=tuple(others), is_locked=is_locked)


def _as_java(password: str) -> bytes:
    """Return the characters as Java digests them. Raises BadStore."""
    try:
        return password.encode("utf-16-be")
    except UnicodeEncodeError:
        raise BadStore("the password is no text") from None


def _is_digest(digest: bytes, *parts: bytes) -> bool:
    found = hashlib.sha1(b"".join(parts)).digest()  # noqa: S324 - the format's own
    return hmac.compare_digest(found, digest)


@dataclass(slots=True)
class _Rest:
    """What has not been read yet. Methods raise BadStore at its end."""

    left: memoryview

    def take(self, count: int) -> memoryview:
        if count > len(self.left):
            raise BadStore("ends in the middle of an entry")
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count))

    def der(self, tag: int) -> "_Rest":
        """Return what is in the next value of DER, which has to be of this kind."""
        found, length = self.number(1), self.number(1)
        if length > 0x80:
            if length - 0x80 > MOST_LENGTH_BYTES:
                raise BadStore("its private key is no DER")
            length = self.number(length - 0x80)
        if found != tag:
            raise BadStore("its private key is no DER")
        return _Rest(self.take(length))


def _certificate(rest: _Rest, version: int) -> Certificate:
    kind = rest.take(rest.number(2)) if version > 1 else b"X.509"
    encoded = rest.take(rest.number(4))
    if kind != b"X.509":
        raise BadStore("has a certificate that is not X.509")
    try:
        return load_der_x509_certificate(bytes(encoded))
    except ValueError:
        raise BadStore("has a certificate that cannot be read") from None


def _unprotect(protected: memoryview, password: str, file: Path) -> bytes:
    """Return the private key as PEM."""
    info = _Rest(protected).der(SEQUENCE)
    if info.der(SEQUENCE).der(OBJECT_ID).left != PROTECTION:
        raise BadStore("its private key is protected in a way of which nothing is known")
    octets, secret = bytes(info.der(OCTETS).left), _as_java(password)
    link, hidden = octets[:DIGEST_BYTES], octets[DIGEST_BYTES:-DIGEST_BYTES]
    plain = bytearray()
    for start in range(0, len(hidden), DIGEST_BYTES):
        link = hashlib.sha1(secret + link).digest()  # noqa: S324 - the format's own
        part = hidden[start : start + DIGEST_BYTES]
        plain += bytes(a ^ b for a, b in zip(part, link, strict=False))
    if not _is_digest(octets[-DIGEST_BYTES:], secret, bytes(plain)):
        how = how_to_convert(str(file))
        raise BadStore(f"its private key has another password than the store: {how}")
    try:
        key = load_der_private_key(bytes(plain), None)
    except (ValueError, UnsupportedAlgorithm):
        raise BadStore("its private key cannot be read") from None
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
