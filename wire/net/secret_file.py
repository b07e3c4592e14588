"""Files that hold a secret: which can be used, what is read of one, and whom it is open to.

Nothing said here shows what a file holds.
"""

import logging
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

_LOG = logging.getLogger(__name__)

MOST_BYTES: Final = 64 * 1024
"""Far above every password and key; a larger file is another one than was meant."""
OWN_MODE: Final = 0o600
OWN_BYTES: Final = 32


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
        try:
            content = opened.read(most_bytes + 1)
        except OSError as problem:
            raise BadSecretFile(problem.strerror or str(problem)) from None
    if len(content) > most_bytes:
        raise BadSecretFile(f"is larger than {most_bytes} bytes")
    return content


def read_secret(file: Path) -> str:
    """Return the text of a file without the ends of lines behind it. Raises BadSecretFile."""
    try:
        text = read_secret_bytes(file).decode().rstrip("\r\n")
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
        mode = os.fstat(opened.fileno()).st_mode
    for bit, what in ((stat.S_IWOTH, "write"), (stat.S_IROTH, "read")):
        if mode & bit:
            return f"every user of this machine may {what} it: `chmod o= {file}`"
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
    exposure = exposure_of(file)
    if exposure is not None:
        raise BadSecretFile(exposure)
    return read_secret(file)


class Complaints:
    """What the log was told last of one file, which is looked at again and again."""

    __slots__ = ("said",)

    def __init__(self) -> None:
        self.said = ""

    def say(self, complaint: str) -> None:
        """Log a complaint that was not the last one."""
        if complaint != self.said:
            self.said = complaint
            _LOG.warning("%s", complaint)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSecret:
    """A secret in a file, which is read again whenever the secret is used."""

    file: Path
    last_known: str = field(repr=False, compare=False)
    """Used while the file cannot be, and where another machine has none."""
    key: str = field(default="", compare=False)
    """The setting that names the file, for complaints."""
    complaints: Complaints = field(default_factory=Complaints, compare=False, repr=False)

    def read(self) -> str:
        """Return what the file holds now, or what is last known."""
        return self.find() or self.last_known

    def find(self) -> str | None:
        """Return what the file holds now, None while it cannot be used, which the log says once."""
        try:
            found = read_secret(self.file)
        except BadSecretFile as problem:
            where = f"{self.key}: {self.file}" if self.key else str(self.file)
            self.complaints.say(f"{where}: {problem}; what it held at the start is used")
            return None
        self.complaints.said = ""
        return found
