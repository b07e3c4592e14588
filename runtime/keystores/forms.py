"""Which form a store has, by its first bytes, and so who reads it. Pure."""

from pathlib import Path
from typing import Final

from runtime.keystores import jks
from runtime.keystores.bad_store import BadStore, how_to_convert
from runtime.keystores.contents import Contents
from runtime.keystores.jks import read_jks
from runtime.keystores.pkcs12 import read_pkcs12

JCEKS: Final = b"\xce\xce\xce\xce"
PEM: Final = b"-----BEGIN"


def read_store(content: bytes, password: str | None, file: Path) -> Contents:
    """Return what a store holds. Raises BadStore; `file` is for what it proposes."""
    if content.startswith(jks.MAGIC):
        return read_jks(content, password, file)
    if content.startswith(JCEKS):
        raise BadStore(f"is JCEKS, which is not read: {how_to_convert(str(file))}")
    if content.startswith(PEM):
        raise BadStore("is PEM: name it as `ssl.certificate`, `ssl.key` or `ssl.ca` of the cluster")
    return read_pkcs12(content, password, file)
