"""An authority of this machine's own, and the certificates that it signs: PEM files of two days."""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from runtime.process.clock import wall_ms

HOLDS: Final = timedelta(days=2)
SKEW: Final = timedelta(minutes=5)
LOOPBACK: Final = ("127.0.0.1", "localhost")


class Authority:
    """Signs certificates into a folder: `<name>.pem`, and its key in `<name>.key`."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        """Make the authority's key and certificate."""
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        usage = x509.KeyUsage(
            key_cert_sign=True,
            crl_sign=True,
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = self._begun(self._name, self._key.public_key())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = builder.add_extension(constraints, critical=True)
        self.file = self._write(name, builder.add_extension(usage, critical=True), self._key)

    def sign(
        self,
        name: str,
        hosts: Sequence[str] = (),
        *,
        is_client: bool = False,
        holds: timedelta = HOLDS,
    ) -> Path:
        """Make a key and a certificate, of a server for these hosts or of a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._begun(_name(name), key.public_key(), holds)
        if hosts:
            names = x509.SubjectAlternativeName(list(map(_general, hosts)))
            builder = builder.add_extension(names, critical=False)
        if is_client:
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
            builder = builder.add_extension(usage, critical=False)
        return self._write(name, builder, key)

    def _begun(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, holds: timedelta = HOLDS
    ) -> x509.CertificateBuilder:
        now = datetime.fromtimestamp(wall_ms() / 1_000, UTC)
        own = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - SKEW)
            .not_valid_after(now + holds)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own), critical=False)
        )

    def _write(
        self, name: str, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey
    ) -> Path:
        file = self._folder / f"{name}.pem"
        signed = builder.sign(self._key, SHA256())
        file.write_bytes(signed.public_bytes(Encoding.PEM))
        write_key(file.with_suffix(".key"), key)
        return file


def write_key(file: Path, key: ec.EllipticCurvePrivateKey, password: str | None = None) -> None:
    """Write a private key that our user alone can read."""
    how: KeySerializationEncryption = NoEncryption()
    if password is not None:
        how = BestAvailableEncryption(password.encode())
    file.touch(mode=0o600)
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how))


def joined(certificate: Path, file: Path) -> Path:
    """Write a certificate behind its key into one file, as Kafka and ZooKeeper want it."""
    file.touch(mode=0o600)
    file.write_text(certificate.with_suffix(".key").read_text() + certificate.read_text())
    return file


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
