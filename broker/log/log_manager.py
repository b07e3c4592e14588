"""All logs of one broker: opens the folders in log.dirs, creates, deletes and looks after logs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.log.results import RecoveryReport, StorageError, TopicPartition


class LogManager:
    """Every partition log of this broker.

    logs            what is open, by (topic, partition)
    recovered       what recovery had to cut at start; one line each by str()
    """

    logs: Mapping[TopicPartition, PartitionLog]
    recovered: Sequence[RecoveryReport]

    @classmethod
    def open(
        cls,
        directories: Sequence[Path],
        *,
        broker_id: int,
        cluster_id: str,
        config_of: Callable[[str], LogConfig],
        now_ms: int,
    ) -> "LogManager":
        """Lock the folders, check them, and open (if need be recover) every log in them.

        `config_of(topic)` gives a topic's settings. Raises StorageError naming a folder that is
        read-only, full, locked by another broker, or belongs to another broker or cluster.
        """
        raise NotImplementedError

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        raise NotImplementedError

    def create(
        self, topic: str, partition: int, *, topic_id: bytes | None, config: LogConfig, now_ms: int
    ) -> PartitionLog:
        """Return the partition's log, made if it is not there, in the emptiest live folder.

        Raises StorageError, also when the folder found holds another topic id.
        """
        raise NotImplementedError

    def delete(self, topic: str, partition: int) -> None:
        """Rename the folder to `<name>.<uuid>-delete`; a later tick removes it."""
        raise NotImplementedError

    def tick(
        self,
        now_ms: int,
        *,
        high_watermark: Callable[[TopicPartition], int | None] = lambda _: None,
    ) -> None:
        """Do what is due: retention, flush.ms, closing idle files, checkpoints, removals.

        Call it about once a second. Retention spares what is at or above the high watermark.
        """
        raise NotImplementedError

    @property
    def offline(self) -> Mapping[Path, StorageError]:
        """The log folders that failed, with the reason."""
        raise NotImplementedError

    def offline_logs(self) -> Iterable[TopicPartition]:
        """Partitions that lie on a failed folder."""
        raise NotImplementedError

    def close(self) -> None:
        """Flush everything, write snapshots, checkpoints and `.kafka_cleanshutdown`, unlock."""
        raise NotImplementedError
