"""High watermarks over a restart: `replication-offset-checkpoint` in each log folder, as Kafka's.

A saved one is at most as high as the real one was: it is where a replica begins to count from
again, never where it truncates to.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from broker.log import checkpoints
from broker.log.partition_log import PartitionLog
from broker.log.results import StorageError
from wire.topic_partition import TopicPartition

_LOG: Final = logging.getLogger(__name__)


class HighWatermarks:
    """The checkpoint files of one broker."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Read what is in these folders; a damaged file counts as none."""
        self._saved: dict[TopicPartition, int] = {}
        for folder in folders:
            try:
                self._saved |= checkpoints.read_offsets(folder / checkpoints.HIGH_WATERMARKS)
            except StorageError as fault:
                _LOG.warning("%s; high watermarks begin at the logs' starts", fault)

    def saved(self, name: TopicPartition) -> int:
        """Return the high watermark that was saved last, 0 for none."""
        return self._saved.get(name, 0)

    def save(
        self,
        folders: Sequence[Path],
        logs: Iterable[PartitionLog],
        held: Callable[[TopicPartition], int | None],
    ) -> None:
        """Write one for each log in these folders; what has no role yet keeps what it had.

        A folder that cannot be written keeps its older, lower ones, as one that is offline does.
        """
        by_folder: dict[Path, dict[TopicPartition, int]] = {path: {} for path in folders}
        for log in logs:
            if log.folder.parent in by_folder:
                offset = held(log.name)
                by_folder[log.folder.parent][log.name] = (
                    self.saved(log.name) if offset is None else offset
                )
        self._saved = {}
        for folder, offsets in by_folder.items():
            self._saved |= offsets
            try:
                checkpoints.write_offsets(folder / checkpoints.HIGH_WATERMARKS, offsets)
            except OSError as error:
                _LOG.error("%s: high watermarks are not saved: %s", folder, error.strerror)
