"""Stores as Java's keytool makes them: a root, an authority below it, and who that has signed."""

import hashlib
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

PASSWORD: Final = "of the store"  # noqa: S105 - of a test
BEGAN: Final = datetime(2020, 1, 1, tzinfo=UTC)
FAR: Final = datetime(2099, 1, 1, tzinfo=UTC)
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A private key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def signed(
    name: str,
    signer: Holder | None = None,
    *,
    is_authority: bool = False,
    begins: datetime = BEGAN,
    ends: datetime = FAR,
) -> Holder:
    """Return who is signed by `signer`, or by itself; valid for 127.0.0.1 and localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    names: list[x509.GeneralName] = [
        x509.IPAddress(ip_address("127.0.0.1")),
        x509.DNSName("localhost"),
    ]
    built = (
        x509.CertificateBuilder(
            issuer_name=subject if signer is None else signer.certificate.subject,
            subject_name=subject,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=begins,
            not_valid_after=ends,
        )
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    signing = key if signer is None else signer.key
    return Holder(key=key, certificate=built.sign(signing, hashes.SHA256()))


class Family:
    """A root, an authority below it, and a client and a broker that the latter has signed."""

    def __init__(self) -> None:
        """Make them all."""
        self.root = signed("root", is_authority=True)
        self.between = signed("between", self.root, is_authority=True)
        self.client = signed("client", self.between)
        self.broker = signed("broker", self.between)

    def keystore(
        self, own: Holder | None = None, *others: Holder, password: str = PASSWORD
    ) -> bytes:
        """Return a store with a key; without `others` it has its authorities, root first."""
        own = own or self.client
        beside = others or (self.root, self.between)
        return pkcs12.serialize_key_and_certificates(
            b"mirror",
            own.key,
            own.certificate,
            [one.certificate for one in beside],
            BestAvailableEncryption(password.encode()),
        )

    def jks(self, own: Holder | None = None, *others: Holder, password: str = PASSWORD) -> bytes:
        """Return the same in Java's older form: the key with its chain, then the others."""
        own = own or self.client
        protected = protect_jks_key(own, password)
        chain = (own, self.between, self.root)
        key = b"".join(
            (
                *(_number(1), _alias("mirror"), bytes(8)),
                *(_number(len(protected)), protected),
                *(_number(len(chain)), *map(_jks_certificate, chain)),
            )
        )
        return sealed_jks([key, *(_jks_authority(one) for one in others)], password)

    def server_context(self, *, wants_client: bool = False) -> ssl.SSLContext:
        """Return a broker's side, which trusts the root alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with TemporaryDirectory() as folder:
            file = Path(folder) / "broker.pem"
            broker = self.broker
            file.write_text(broker.key_pem() + broker.pem() + self.between.pem())
            context.load_cert_chain(file)
        if wants_client:
            context.load_verify_locations(cadata=self.root.pem())
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def truststore(authorities: Iterable[Holder], password: str = PASSWORD) -> bytes:
    """Return a store of authorities alone."""
    return pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(one.certificate, b"authority") for one in authorities],
        BestAvailableEncryption(password.encode()),
    )


# JKS, written from Java's description of it (sun.security.provider.JavaKeyStore)


def jks_truststore(authorities: Iterable[Holder], password: str = PASSWORD) -> bytes:
    """Return a store of authorities alone, in Java's older form."""
    return sealed_jks([_jks_authority(one) for one in authorities], password)


def sealed_jks(entries: Sequence[bytes], password: str = PASSWORD) -> bytes:
    """Return a store of these entries, with the digest behind them."""
    body = b"\xfe\xed\xfe\xed" + _number(2) + _number(len(entries)) + b"".join(entries)
    java = password.encode("utf-16-be")
    return body + _sha1(java + b"Mighty Aphrodite" + body)


def protect_jks_key(holder: Holder, password: str = PASSWORD, salt: bytes = bytes(20)) -> bytes:
    """Return a private key as Java protects it."""
    plain = holder.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    java, stream, link = password.encode("utf-16-be"), b"", salt
    while len(stream) < len(plain):
        link = _sha1(java + link)
        stream += link
    hidden = bytes(a ^ b for a, b in zip(plain, stream, strict=False))
    octets = salt + hidden + _sha1(java + plain)
    way = _der(0x06, bytes.fromhex("2b060104012a02110101")) + _der(0x05, b"")
    return _der(0x30, _der(0x30, way) + _der(0x04, octets))


def _jks_authority(holder: Holder) -> bytes:
    return _number(2) + _alias("authority") + bytes(8) + _jks_certificate(holder)


def _jks_certificate(holder: Holder) -> bytes:
    encoded = holder.certificate.public_bytes(Encoding.DER)
    return _alias("X.509") + _number(len(encoded)) + encoded


def _alias(name: str) -> bytes:
    return len(name).to_bytes(2) + name.encode()


def _number(value: int) -> bytes:
    return value.to_bytes(4)


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 0x80 else bytes([0x82]) + size.to_bytes(2)
    return bytes([tag]) + length + content


def _sha1(content: bytes) -> bytes:
    return hashlib.sha1(content).digest()  # noqa: S324 - the format's own
