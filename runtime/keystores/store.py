"""A keystore or truststore as connections ask it."""

import logging
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from runtime.keystores.bad_store import BadStore
from runtime.process.clock import now_ms
from wire.net.secret_file import BadSecretFile, FileSecret, read_secret_bytes
from wire.net.security import Pem, Secret, reveal
from wire.values import frozen

_LOG = logging.getLogger(__name__)

MOST_BYTES: Final = 4 << 20
"""A truststore of Java's own has 150 authorities in 180 KB."""


class LastLook:
    """What was found at the last look at a file, and what the log was told of it."""

    __slots__ = ("pem", "said")

    def __init__(self, pem: Pem) -> None:
        self.pem = pem
        self.said: str | None = None

    def take(self, pem: Pem, complaint: str | None, where: str) -> Pem:
        """Remember it; a complaint that was not the last one goes to the log."""
        self.pem = pem
        if complaint is not None and complaint != self.said:
            _LOG.warning("%s: %s", where, complaint)
        self.said = complaint
        return pem


@frozen
class Store:
    """A file that is read again whenever it is asked for; made by `open_store`."""

    file: Path
    password: Secret | None = field(repr=False)
    has_own_key: bool
    """Whether it is a keystore, and so has a private key."""
    last_look: LastLook = field(repr=False, compare=False)
    key: str = field(default="", compare=False)
    """The setting that names the file, for complaints."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Return it, and the file of its password: one may be renewed before the other."""
        password = self.password
        return (self.file, password.file) if isinstance(password, FileSecret) else (self.file,)

    @property
    def origin(self) -> str:
        """Return the setting and the file."""
        return f"{self.key}: {self.file}" if self.key else str(self.file)

    def pem(self) -> Pem:
        """Return what the file holds now, or what it held last, which the log says once."""
        try:
            found, complaint = _read(self.file, self.password, has_own_key=self.has_own_key)
        except (BadStore, BadSecretFile) as problem:
            found, complaint = self.last_look.pem, f"{problem}; what it held last is used"
        return self.last_look.take(found, complaint, self.origin)


def open_store(file: Path, password: Secret | None, *, has_own_key: bool, key: str) -> Store:
    """Return a store of a file that can be read; raises BadStore and BadSecretFile.

    Of a certificate that has expired the log speaks: its broker refuses it, and no other.
    """
    found, complaint = _read(file, password, has_own_key=has_own_key)
    last_look = LastLook(found)
    last_look.take(found, complaint, f"{key}: {file}")
    return Store(
        file=file, password=password, has_own_key=has_own_key, last_look=last_look, key=key
    )


def _read(file: Path, password: Secret | None, *, has_own_key: bool) -> tuple[Pem, str | None]:
    # With PEM files Spark's workers need no `cryptography`, and programs start sooner.
    from runtime.keystores.forms import read_store  # noqa: PLC0415

    content = read_secret_bytes(file, MOST_BYTES)
    found = read_store(content, None if password is None else reveal(password), file)
    if not has_own_key:
        return found.truststore(), None
    now = datetime.fromtimestamp(now_ms() / 1_000, tz=UTC)
    return found.keystore(), found.complaint_of_time(now)
