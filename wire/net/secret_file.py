"""Files that hold a secret: which can be used, what is read of one, and whom it is open to.

Nothing said here shows what a file holds.
"""

import logging
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import IO, Final

from wire.values import frozen

_LOG = logging.getLogger(__name__)

MOST_BYTES: Final = 64 * 1024
"""Far above every password and key; a larger file is another one than was meant."""
OWN_MODE: Final = 0o600
OWN_BYTES: Final = 32
ROOT: Final = 0


class BadSecretFile(Exception):
    """A file cannot be used; the text says why, without its name."""


@contextmanager
def open_secret(file: Path) -> Iterator[IO[bytes]]:
    """Open an ordinary file. Raises BadSecretFile; a pipe without a writer is not waited for."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        raise BadSecretFile(problem.strerror or str(problem)) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        folder = stat.S_ISDIR(mode)
        raise BadSecretFile("is a folder" if folder else "is no ordinary file, to be read again")
    with os.fdopen(descriptor, "rb") as opened:
        yield opened


def read_secret_bytes(file: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return all that a file holds. Raises BadSecretFile."""
    with open_secret(file) as opened:
        return _all_of(opened, most_bytes)


def _all_of(opened: IO[bytes], most_bytes: int) -> bytes:
    try:
        content = opened.read(most_bytes + 1)
    except OSError as problem:
        raise BadSecretFile(problem.strerror or str(problem)) from None
    if len(content) > most_bytes:
        raise BadSecretFile(f"is larger than {most_bytes} bytes")
    return content


def read_secret(file: Path) -> str:
    """Return the text of a file without the ends of lines behind it. Raises BadSecretFile."""
    return _text_of(read_secret_bytes(file))


def _text_of(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig").rstrip("\r\n")  # editors of Windows put a mark before
    except UnicodeDecodeError:
        raise BadSecretFile("is not UTF-8 text") from None
    if not text:
        raise BadSecretFile("is empty")
    if "\0" in text:
        raise BadSecretFile("holds the character NUL")
    return text


def exposure_of(file: Path) -> str | None:
    """Return what strangers on this machine may do with a file, None for nothing.

    What a group may do is its owner's choice. Raises BadSecretFile.
    """
    with open_secret(file) as opened:
        return _exposure(file, os.fstat(opened.fileno()))


def _exposure(file: Path, found: os.stat_result) -> str | None:
    for bit, what in ((stat.S_IWOTH, "write"), (stat.S_IROTH, "read")):
        if found.st_mode & bit:
            return f"every user of this machine may {what} it: `chmod o= {file}`"
    if found.st_uid not in {ROOT, os.geteuid()}:
        return f"it belongs to user {found.st_uid}, who may put anything there"
    return None


def make_own_secret(file: Path) -> None:
    """Write a new secret that only our user can read; one that is there stays. Raises OSError."""
    with suppress(FileExistsError):
        # Under its name only when it is whole: a start that dies here leaves no empty secret.
        half = file.with_name(f"{file.name}.{os.getpid()}.part")
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, OWN_MODE)
        try:
            with os.fdopen(descriptor, "w") as opened:
                os.fchmod(opened.fileno(), OWN_MODE)
                opened.write(secrets.token_urlsafe(OWN_BYTES))
            os.link(half, file)
        finally:
            half.unlink()


def read_own_secret(file: Path) -> str:
    """Return a secret that we have made ourselves.

    Raises BadSecretFile, also where others can read it: nobody has meant that.
    """
    text, exposure = _read_once(file)
    if exposure is not None:
        raise BadSecretFile(exposure)
    return text


def _read_once(file: Path) -> tuple[str, str | None]:
    """Return what a file holds and what strangers may do with it: of one and the same file."""
    with open_secret(file) as opened:
        exposure = _exposure(file, os.fstat(opened.fileno()))
        return _text_of(_all_of(opened, MOST_BYTES)), exposure


class LastLook:
    """What one file held last, and what the log was told of it: it is looked at again and again."""

    __slots__ = ("_exposure", "_said", "text")

    def __init__(self, exposure: str | None = None) -> None:
        """`exposure` is what strangers may do with it, which the log has been told."""
        self.text: str | None = None
        self._said = ""
        self._exposure = exposure

    def take(self, text: str, exposure: str | None, origin: str) -> str:
        """Keep what the file holds; the log is told if it is open to others since."""
        self.text, self._said = text, ""
        if exposure != self._exposure:
            self._exposure = exposure
            if exposure is not None:
                _LOG.warning("%s: %s", origin, exposure)
        return text

    def complain(self, complaint: str) -> None:
        """Log a complaint that was not the last one."""
        if complaint != self._said:
            self._said = complaint
            _LOG.warning("%s", complaint)


@frozen
class FileSecret:
    """A secret in a file, which is read again whenever the secret is used."""

    file: Path
    last_known: str = field(repr=False, compare=False)
    """What it held at the start: for a machine that has no such file."""
    key: str = field(default="", compare=False)
    """The setting that names the file, for complaints."""
    last_look: LastLook = field(default_factory=LastLook, compare=False, repr=False)

    @property
    def origin(self) -> str:
        """Return the setting and the file."""
        return f"{self.key}: {self.file}" if self.key else str(self.file)

    def read(self) -> str:
        """Return what the file holds now, or what it held last."""
        return self.find() or self.last_look.text or self.last_known

    def find(self) -> str | None:
        """Return what the file holds now, None while it cannot be used, which the log says once."""
        try:
            return self.last_look.take(*_read_once(self.file), self.origin)
        except BadSecretFile as problem:
            self.last_look.complain(f"{self.origin}: {problem}; what it held last is used")
            return None
