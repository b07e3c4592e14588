"""Removing what logs have left, taken apart so that its slow half can run in a thread.

That is the folder of a deleted log, and a segment that retention took. A file of a gigabyte keeps a
disk busy for a while when it goes, and there are many of them.
"""

import logging
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from broker.log.directory import LogDirectory
from broker.log.results import StorageError
from wire.topic_partition import TopicPartition

LOG: Final = logging.getLogger(__name__)

REMOVED_AT_ONCE: Final = 20
"""What else is due each second waits for these."""


class PendingRemoval:
    """A renamed folder or file that nothing knows any more; what cannot be removed stays.

    `run` touches nothing else, so it may run in a thread; `finish`, back in the loop, tells its log
    folder.
    """

    def __init__(self, directory: LogDirectory, path: Path) -> None:
        self._directory = directory
        self._path = path
        self._failure: StorageError | None = None

    def run(self) -> None:
        """Remove it. Raises nothing: what went wrong is told by `finish`."""
        try:
            self._directory.refuse_if_offline()
            while self._path.exists():
                with suppress(FileNotFoundError):  # somebody else removes it as well
                    _remove(self._path)
        except StorageError as failure:
            self._failure = failure
        except OSError as error:
            self._failure = StorageError.from_os(self._path, error)

    def finish(self) -> None:
        """Take the log folder offline if its disk refused."""
        if self._failure is not None:
            self._directory.blame(self._failure)
            LOG.warning("%s: stays until the next start, its disk failed", self._path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


class GoneLogs:
    """The logs that were taken away, until nothing is left of them."""

    def __init__(self) -> None:
        self._doomed: list[PendingRemoval] = []
        self._saved: dict[TopicPartition, LogDirectory] = {}

    def doom(self, directory: LogDirectory, path: Path) -> None:
        """Note what is to be removed."""
        self._doomed.append(PendingRemoval(directory, path))

    def note(self, name: TopicPartition, directory: LogDirectory) -> None:
        """Note a log of which something may be saved in the checkpoints of its log folder."""
        self._saved[name] = directory

    def forget(self) -> None:
        """Write those checkpoints without what was noted, once for each log folder."""
        saved, self._saved = self._saved, {}
        for directory in set(saved.values()):
            try:
                with directory.guard(directory.path):
                    directory.forget([name for name, home in saved.items() if home is directory])
            except StorageError as failure:
                LOG.warning("what was saved of deleted logs stays: %s", failure)

    def to_remove(self, directories: Iterable[LogDirectory]) -> Sequence[PendingRemoval]:
        """Return what has its turn; with what the logs of these log folders have retired."""
        for directory in directories:
            retired, directory.retired = directory.retired, []
            for path in retired:
                self.doom(directory, path)
        due, self._doomed = self._doomed[:REMOVED_AT_ONCE], self._doomed[REMOVED_AT_ONCE:]
        return due
