"""What a store holds, whatever its form: a key with its chain, and authorities. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import datetime
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Certificate

from runtime.keystores.bad_store import BadStore
from wire.net.security import Pem
from wire.values import frozen

LONGEST_CHAIN: Final = 10


@frozen
class Contents:
    """What a store holds."""

    key: bytes | None = field(repr=False)
    """The private key as PEM, not encrypted."""
    own: Certificate | None
    """The certificate of the private key."""
    others: tuple[Certificate, ...]
    is_locked: bool = False
    """Whether it has a key that takes a password, which nobody has named."""

    def keystore(self) -> Pem:
        """Return the key and its chain, the own certificate first. Raises BadStore."""
        if self.is_locked:
            raise BadStore("it needs a password")
        if self.key is None or self.own is None:
            raise BadStore("holds no private key with its certificate")
        chain = _chain(self.own, self.others)
        return Pem(certificates=_as_pem(chain), private_key=self.key.decode())

    def truststore(self) -> Pem:
        """Return all certificates. Raises BadStore."""
        all_of_them = (*([] if self.own is None else [self.own]), *self.others)
        if not all_of_them:
            raise BadStore("holds no certificate")
        return Pem(certificates=_as_pem(all_of_them))

    def complaint_of_time(self, now: datetime) -> str | None:
        """Return what is wrong with the own certificate's time, None for nothing."""
        if self.own is None:
            return None
        if now > self.own.not_valid_after_utc:
            return f"its certificate has expired: it ended at {self.own.not_valid_after_utc}"
        if now < self.own.not_valid_before_utc:
            return f"its certificate is not valid before {self.own.not_valid_before_utc}"
        return None


def _chain(own: Certificate, others: Iterable[Certificate]) -> Sequence[Certificate]:
    """Return the own certificate and its issuers, each before the one that has signed it.

    A store keeps them in any order, and certificates that others need beside them.
    """
    chain, left = [own], list(others)
    while len(chain) < LONGEST_CHAIN:
        issuer = next((one for one in left if _has_signed(one, chain[-1])), None)
        if issuer is None:
            break
        left.remove(issuer)
        chain.append(issuer)
    return chain


def _has_signed(issuer: Certificate, certificate: Certificate) -> bool:
    if certificate.issuer == certificate.subject:
        return False  # a root, with which a chain ends
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _as_pem(certificates: Iterable[Certificate]) -> str:
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)
