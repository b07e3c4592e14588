"""One open file descriptor that closes when the last who needs it lets go."""

import os
from collections.abc import Callable
from pathlib import Path


class OpenFile:
    """A segment's file. Reads at positions, so that many readers may share it.

    Closing is left to the last reference: a reader that still sends from a segment keeps it
    readable although the log has deleted it or closed it as idle. So a file that is opened and not
    kept is closed at once: `os.fsync(OpenFile(path).fileno())` would sync a closed descriptor.
    """

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self._descriptor = -1
        self.path = path
        self._descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def fileno(self) -> int:
        """Return the descriptor, which stays open as long as this object lives."""
        return self._descriptor

    def read(self, position: int, length: int) -> bytes:
        """Return the bytes there; fewer at the file's end."""
        return os.pread(self._descriptor, length, position)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # `os` itself may be gone when the interpreter ends.
        if self._descriptor >= 0:
            close(self._descriptor)
            self._descriptor = -1
