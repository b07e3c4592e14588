"""The folder a story plays in: empty at its start, and nobody else's until its end."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from demo.stack import StackFailed


@contextmanager
def empty_folder(folder: Path) -> Iterator[None]:
    """Empty the folder and hold it for the block; raises StackFailed naming it.

    A second story in the same folder is refused before it removes what the first one runs on.
    """
    lock_file = folder.parent / f"{folder.name}.lock"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = lock_file.open("w")
    except OSError as error:
        raise StackFailed(f"{lock_file}: {error.strerror}") from error
    with lock:
        _take(lock, folder)
        yield


def _take(lock: IO[str], folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StackFailed(f"{folder}: in use by another run") from error
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise StackFailed(f"{folder}: {error.strerror}") from error
