"""Certificates for tests, made by openssl: an authority's, a broker's, a client's, a stranger's."""

import subprocess
from pathlib import Path

KEY_PASSWORD = "of the key"  # noqa: S105 - of a test


class Certificates:
    """PEM files in a folder; `broker` is for 127.0.0.1, `misnamed` for another host."""

    def __init__(self, folder: Path) -> None:
        """Make them all."""
        self.folder = folder
        self.ca = self._authority("ca")
        self.strange_ca = self._authority("strange")
        self.broker = self._signed("broker", "ca", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        self.misnamed = self._signed("misnamed", "ca", "subjectAltName=DNS:elsewhere.example")
        self.client = self._signed("client", "ca", "extendedKeyUsage=clientAuth")
        self.locked_key = folder / "client-locked.key"
        self._openssl(
            *("pkcs8", "-topk8", "-in", "client.key", "-out", "client-locked.key"),
            *("-passout", f"pass:{KEY_PASSWORD}"),
        )

    def key(self, certificate: Path) -> Path:
        """Return the private key of a certificate."""
        return certificate.with_suffix(".key")

    def _authority(self, name: str) -> Path:
        self._openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2"),
            *("-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign"),
        )
        return self.folder / f"{name}.pem"

    def _signed(self, name: str, authority: str, extension: str) -> Path:
        self._openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"),
        )
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(extension + "\n")
        self._openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem"),
            *("-CAkey", f"{authority}.key", "-CAcreateserial", "-out", f"{name}.pem"),
            *("-days", "2", "-extfile", extensions.name),
        )
        return self.folder / f"{name}.pem"

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)
