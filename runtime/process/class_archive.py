"""An archive of the classes that a Java program loads: with it a JVM starts for two thirds.

    first run       -XX:ArchiveClassesAtExit    the JVM writes one when it ends in order
    further runs    -XX:SharedArchiveFile       the JVM maps it, and neither reads nor checks jars

It lies in the user's cache folder. A JVM does without one that does not fit it, and each does where
that folder cannot be written to. (JEP 350)
"""

import hashlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wire.values import frozen

KEPT: Final = 8
"""Another Java and other jars make another archive, of 7 MB; the oldest goes."""


@frozen
class ClassArchive:
    """One archive: `part` is what a JVM is to write, None where there is nothing to write."""

    file: Path
    part: Path | None

    @property
    def options(self) -> list[str]:
        """Return the options of `java`. It warns of classes that it leaves out: that is no news."""
        use = f"SharedArchiveFile={self.file}"
        make = f"ArchiveClassesAtExit={self.part}"
        return [f"-XX:{use if self.part is None else make}", "-Xlog:disable"]

    def keep(self) -> None:
        """Take what the JVM has written when it ended; nothing where that was killed.

        Raises OSError.
        """
        if self.part is not None and self.part.exists():
            self.part.replace(self.file)
            for old in _by_age(self.file.parent)[KEPT:]:
                old.unlink(missing_ok=True)


def class_archive(java: Path, jars: Sequence[Path]) -> ClassArchive | None:
    """Return the archive for this Java and these jars, None where none can be kept."""
    folder = _cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = [(str(one), one.stat().st_mtime_ns, one.stat().st_size) for one in (java, *jars)]
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    name = hashlib.sha256(repr(known).encode()).hexdigest()[:16]
    file = folder / f"{name}.jsa"
    part = folder / f"{name}.{secrets.token_hex(4)}.part"
    return ClassArchive(file=file, part=None if file.exists() else part)


def _cache_folder() -> Path:
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = given if given.is_absolute() else Path(os.environ.get("HOME", "/"), ".cache")
    return cache / "kafka-disaster-recovery"


def _by_age(folder: Path) -> list[Path]:
    """Return the files of a folder, the newest first."""
    return sorted(folder.iterdir(), key=lambda file: -file.stat().st_mtime_ns)
