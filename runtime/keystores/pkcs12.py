"""PKCS #12 (RFC 7292), which is what Java has written since its version 9. Pure.

keystore    private key, its certificate, and those of the authorities between it and the root
truststore  certificates of authorities alone
"""

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from runtime.keystores.bad_store import BadStore, how_to_convert
from runtime.keystores.contents import Contents


def read_pkcs12(content: bytes, password: str | None, file: Path) -> Contents:
    """Return what a store holds. Raises BadStore; `file` is for what it proposes."""
    try:
        store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except UnsupportedAlgorithm:
        raise BadStore(f"is encrypted in an old way: {how_to_convert(str(file))}") from None
    except ValueError:
        wrong = "it needs a password" if password is None else "the password is wrong"
        raise BadStore(f"{wrong}, or it is no PKCS12 store") from None
    key = store.key
    return Contents(
        key=None
        if key is None
        else key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        own=None if store.cert is None else store.cert.certificate,
        others=tuple(one.certificate for one in store.additional_certs),
    )
