"""Certificates for tests: an authority's, a broker's, a client's, a stranger's."""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from demo.certificates import LOOPBACK, SKEW, Authority, write_key

KEY_PASSWORD = "of the key"  # noqa: S105 - of a test


class Certificates:
    """PEM files in a folder; `broker` is for 127.0.0.1, `misnamed` for another host.

    Those of `expired` and `expired_client` are over.
    """

    def __init__(self, folder: Path) -> None:
        """Make them all."""
        self.folder = folder
        authority = Authority(folder)
        self.ca = authority.file
        self.strange_ca = Authority(folder, "strange").file
        self.broker = authority.sign("broker", LOOPBACK)
        self.misnamed = authority.sign("misnamed", ["elsewhere.example"])
        self.client = authority.sign("client", is_client=True)
        self.expired = authority.sign("expired", LOOPBACK, holds=-SKEW / 2)
        self.expired_client = authority.sign("expired-client", is_client=True, holds=-SKEW / 2)
        self.locked_key = folder / "client-locked.key"
        key = load_pem_private_key(self.key(self.client).read_bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        write_key(self.locked_key, key, KEY_PASSWORD)

    def key(self, certificate: Path) -> Path:
        """Return the private key of a certificate."""
        return certificate.with_suffix(".key")
