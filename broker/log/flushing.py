"""An fsync that is due, taken apart so that its slow half can run in a worker thread."""

import os
from collections.abc import Callable, Iterable, Sequence

from broker.log.open_file import OpenFile
from broker.log.results import StorageError


def sync(files: Iterable[OpenFile]) -> None:
    """Bring the files to the platter. Raises StorageError.

    Sparse indexes and snapshots do without: they are looked over at the start, and made again.
    """
    for file in files:
        try:
            os.fdatasync(file.fileno())
        except OSError as error:
            raise StorageError.from_os(file.path, error) from error


class PendingFlush:
    """The part of one log, up to some offset, that is not yet on the platter.

    `run` touches nothing but the open files, so it may run in a thread; `finish`, back in the
    loop, moves the log's recovery point.
    """

    def __init__(
        self, files: Sequence[OpenFile], finished: Callable[[StorageError | None], None]
    ) -> None:
        self._files = files
        self._finished = finished
        self._failure: StorageError | None = None

    def run(self) -> None:
        """fsync. Raises nothing: what went wrong is told by `finish`."""
        try:
            sync(self._files)
        except StorageError as failure:
            self._failure = failure

    def finish(self) -> None:
        """Tell the log. Raises StorageError when the disk refused; its folder is then offline."""
        self._files = ()
        self._finished(self._failure)
        if self._failure is not None:
            raise self._failure
