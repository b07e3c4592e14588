"""All logs of one broker: opens the folders in log.dirs, creates, deletes and looks after logs."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from broker.log import checkpoints
from broker.log.checkpoints import MetaProperties
from broker.log.cleaning_plan import Cleanable
from broker.log.config import LogConfig
from broker.log.directory import DELETED, STRAY, LogDirectory, folder_name, name_aside
from broker.log.flushing import PendingFlush
from broker.log.loading import Opening
from broker.log.partition_log import PartitionLog
from broker.log.removal import GoneLogs, PendingRemoval
from broker.log.results import FolderRefused, StorageError
from wire.topic_partition import TopicPartition

LOG: Final = logging.getLogger(__name__)

ConfigOf: TypeAlias = Callable[[str], LogConfig]
HighWatermarkOf: TypeAlias = Callable[[TopicPartition], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CareIntervals:
    """How often the logs are looked after; Kafka's names and defaults where it has them."""

    log_retention_check_interval_ms: int = 300_000
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    producer_id_expiration_ms: int = 86_400_000
    idle_interval_ms: int = 30_000
    """A file that nobody used for that long is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFolder:
    """One folder of log.dirs with its logs in order; none are told when it is offline."""

    path: Path
    is_offline: bool
    logs: Sequence[PartitionLog]


class LogManager:
    """Every partition log of this broker.

    logs            what is open, by (topic, partition)
    recovered       what recovery had to cut at start; one line each by str()
    """

    def __init__(self, directories: Sequence[LogDirectory], care: CareIntervals) -> None:
        """Use `open`."""
        self._directories = directories
        self._care = care
        self._home: dict[TopicPartition, LogDirectory] = {}
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._gone = GoneLogs()
        self._due: dict[str, int] = {}
        self._told: set[Path] = set()

    def expire_producers_after(self, expiration_ms: int) -> None:
        """Forget a producer, from the next look on, that has not written for so long."""
        self._care = replace(self._care, producer_id_expiration_ms=expiration_ms)

    @classmethod
    def open(
        cls,
        directories: Sequence[Path],
        *,
        broker_id: int,
        cluster_id: str,
        config_of: ConfigOf,
        now_ms: int,
        care: CareIntervals | None = None,
    ) -> "LogManager":
        """Lock the folders, check them, and open (if need be recover) every log in them.

        `config_of(topic)` gives a topic's settings. A folder that is read-only, full or broken is
        offline with all that may lie on it (KIP-112). Raises StorageError when none is left, and
        FolderRefused for one that another broker holds or that belongs to another cluster.
        """
        owner = MetaProperties(broker_id, cluster_id)
        held: list[LogDirectory] = []
        try:
            for path in directories:
                held.append(LogDirectory(path, owner))  # noqa: PERF401 - what is held is unlocked
            manager = cls(held, care or CareIntervals())
            for directory in held:
                manager._load_alive(directory, config_of, now_ms)
            manager._refuse_if_all_failed()
            manager._tell_failures()
        except BaseException:
            for directory in held:
                directory.unlock()
            raise
        return manager

    def _load_alive(self, directory: LogDirectory, config_of: ConfigOf, now_ms: int) -> None:
        """Open what is in a folder; the first log that its disk does not give ends it."""
        try:
            directory.refuse_if_offline()
            self._load(directory, config_of, now_ms)
        except FolderRefused:
            raise
        except StorageError as failure:
            directory.blame(failure)

    def _refuse_if_all_failed(self) -> None:
        failures = list(self.offline.values())
        if len(failures) == len(self._directories):
            alone = "" if len(failures) == 1 else "; no log folder is left"
            raise StorageError(failures[0].path, failures[0].reason + alone)

    def _load(self, directory: LogDirectory, config_of: ConfigOf, now_ms: int) -> None:
        folders = sorted(directory.partitions().items())
        for name, folder in folders:
            if name in self._home:
                raise FolderRefused(folder, f"{name} is in two log folders")
            self._home[name] = directory
        for name, folder in folders:
            opening = Opening(
                config=config_of(name.topic),
                is_clean=directory.was_clean,
                recovery_point=directory.recovery_points.get(name, 0),
                log_start_offset=directory.log_starts.get(name, 0),
                now_ms=now_ms,
            )
            self._logs[name] = PartitionLog.open(name, folder, directory, opening)
            for report in self._logs[name].recovery_reports:
                LOG.warning("%s", report)
        for folder in directory.doomed():
            self._gone.doom(directory, folder)

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        return self._logs

    @property
    def live_folders(self) -> Sequence[Path]:
        """The folders of log.dirs that have not failed."""
        return [directory.path for directory in self._directories if directory.failure is None]

    def may_be_offline(self, topic: str, partition: int) -> bool:
        """Say whether a log lies, or for all that is known may lie, on a folder that has failed."""
        home = self._home.get(TopicPartition(topic, partition))
        return bool(self.offline) if home is None else home.failure is not None

    def has_lost(self, name: TopicPartition, topic_id: bytes) -> bool:
        """Say whether the broker may have held a partition before a folder was made, and lacks it.

        That log may have had records that are acknowledged.
        """
        if name in self._home:
            return False
        return any(one.logs_before.may_have(name, topic_id) for one in self._directories)

    def by_folder(self) -> Sequence[LogFolder]:
        """Return what lies where."""
        return [
            LogFolder(
                path=directory.path,
                is_offline=directory.failure is not None,
                logs=[
                    self._logs[name] for name in sorted(self._logs) if self._home[name] is directory
                ],
            )
            for directory in self._directories
        ]

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """Return the partition's log, None where this broker has none."""
        return self._logs.get(TopicPartition(topic, partition))

    def create(
        self, topic: str, partition: int, *, topic_id: bytes | None, config: LogConfig, now_ms: int
    ) -> PartitionLog:
        """Return the partition's log, made if it is not there, in the emptiest live folder.

        Raises StorageError, also when the log found is of another topic id, and ValueError for a
        topic name that is none. Ask `may_be_offline` first, unless the replica is a new one.
        """
        name = TopicPartition(topic, partition)
        if name in self._home:
            self._home[name].refuse_if_offline()
        known = self._logs.get(name)
        if known is not None:
            self._check_topic_id(known, topic_id)
            return known
        directory = self._emptiest()
        folder = directory.path / folder_name(topic, partition)
        with directory.guard(folder):
            directory.lower(name, 0)
            folder.mkdir(exist_ok=True)
            if topic_id is not None:
                checkpoints.write_topic_id(folder / checkpoints.PARTITION_METADATA, topic_id)
        opening = Opening(config=config, is_clean=True, now_ms=now_ms)
        log = PartitionLog.open(name, folder, directory, opening)
        self._home[name], self._logs[name] = directory, log
        return log

    def _check_topic_id(self, log: PartitionLog, topic_id: bytes | None) -> None:
        """Give a log without an id (of a Kafka before 2.8) the one it is asked for by."""
        if topic_id is None or log.topic_id == topic_id:
            return
        file = log.folder / checkpoints.PARTITION_METADATA
        if log.topic_id is not None:
            raise StorageError(
                file, f"is of topic id {log.topic_id.hex()}, asked for {topic_id.hex()}"
            )
        with self._home[log.name].guard(file):
            checkpoints.write_topic_id(file, topic_id)
        log.topic_id = topic_id

    def _emptiest(self) -> LogDirectory:
        counts = {id(directory): 0 for directory in self._directories}
        for directory in self._home.values():
            counts[id(directory)] += 1
        alive = [directory for directory in self._directories if directory.failure is None]
        if not alive:
            failure = self._directories[0].failure
            assert failure is not None
            raise failure.again()
        return min(alive, key=lambda directory: counts[id(directory)])

    def delete(self, topic: str, partition: int) -> None:
        """Rename the folder to `<name>.<id>-delete`; a later tick has it removed.

        Call `forget_taken_away` when all that go together are renamed.
        """
        name = TopicPartition(topic, partition)
        directory = self._home[name]
        self._gone.doom(directory, self._take_away(name, DELETED))

    def set_aside(self, name: TopicPartition) -> Path:
        """Rename the folder to `<name>.<id>-stray` and let it be, for somebody to look at it."""
        return self._take_away(name, STRAY)

    def _take_away(self, name: TopicPartition, kind: str) -> Path:
        log, directory = self._logs[name], self._home[name]
        log.changes += 1
        folder = directory.path / name_aside(log.folder.name, kind)
        with directory.guard(log.folder):
            log.folder.rename(folder)
        self._gone.note(name, directory)
        del self._logs[name], self._home[name]
        return folder

    def forget_taken_away(self) -> None:
        """Save nothing any more of what was taken away, all at once; `create` can do without."""
        self._gone.forget()

    # -- compaction -----------------------------------------------------------------------------

    def cleanable(
        self, now_ms: int, *, high_watermark: HighWatermarkOf
    ) -> list[tuple[PartitionLog, Cleanable]]:
        """Return the compacted logs with what is dirty in them.

        Logs of which `high_watermark` knows nothing are left out.
        """
        found: list[tuple[PartitionLog, Cleanable]] = []

        def look(log: PartitionLog) -> None:
            committed = high_watermark(log.name) if log.config.compacts else None
            if committed is not None:
                checkpoint = self._home[log.name].cleaned.get(log.name)
                plan = log.cleanable(checkpoint, high_watermark=committed, now_ms=now_ms)
                found.append((log, plan))

        self._each(look)
        return found

    def note_cleaned(self, log: PartitionLog, offset: int) -> None:
        """Save up to where a log is compacted. Raises StorageError."""
        directory = self._home[log.name]
        with directory.guard(directory.path):
            directory.note_cleaned(log.name, offset)

    def blame(self, log: PartitionLog, error: OSError) -> StorageError:
        """Take the folder of a log offline that the disk failed."""
        return self._home[log.name].fail(log.folder, error)

    # -- care ---------------------------------------------------------------------------------

    def tick(
        self,
        now_ms: int,
        *,
        wall_ms: int | None = None,
        high_watermark: HighWatermarkOf = lambda _: None,
    ) -> Sequence[PendingFlush | PendingRemoval]:
        """Do what is due: retention, closing idle files, checkpoints.

        Call it about once a second. `now_ms` decides what is due and how long a producer rests;
        the age of records is counted by `wall_ms`, since they bear a time of day. Retention
        spares what is at or above the high watermark. A folder that fails on the way is offline
        (see `offline`), the others are not disturbed.

        Returns the fsyncs that are due (after a roll, or by flush.ms), and the folders of deleted
        logs that are to be removed. They may take seconds, so `run` each in a worker thread, then
        call its `finish` in the loop; without that the recovery point stays behind and a restart
        after a crash has more to check.
        """
        if self._is_due("idle", now_ms, self._care.idle_interval_ms):
            expiration_ms = self._care.producer_id_expiration_ms
            self._each(lambda log: log.rest(now_ms, producer_id_expiration_ms=expiration_ms))
        if self._is_due("retention", now_ms, self._care.log_retention_check_interval_ms):
            stamp_ms = now_ms if wall_ms is None else wall_ms
            self._each(lambda log: self._retain(log, stamp_ms, high_watermark))
        if self._is_due("save", now_ms, self._care.log_flush_offset_checkpoint_interval_ms):
            self._save_checkpoints()
        pending: list[PendingFlush | PendingRemoval] = []
        self._each(lambda log: pending.extend(log.flushes_due(now_ms)))
        self._tell_failures()
        return [*pending, *self._gone.to_remove(self._directories)]

    def _is_due(self, what: str, now_ms: int, interval_ms: int) -> bool:
        """Say whether the interval is over; the first time it only begins."""
        if now_ms < self._due.setdefault(what, now_ms + interval_ms):
            return False
        self._due[what] = now_ms + interval_ms
        return True

    def _each(self, action: Callable[[PartitionLog], None]) -> None:
        """Do it for every log that is not offline; a failure ends it for one folder only."""
        for name, log in list(self._logs.items()):
            directory = self._home[name]
            if directory.failure is not None:
                continue
            try:
                action(log)
            except StorageError as failure:
                directory.blame(failure)

    def _retain(self, log: PartitionLog, now_ms: int, high_watermark: HighWatermarkOf) -> None:
        start = log.log_start_offset
        count = log.apply_retention(now_ms, stop_offset=high_watermark(log.name))
        if count:
            LOG.info(
                "%s: deleted %d segments, the log starts at offset %d instead of %d",
                log.folder,
                count,
                log.log_start_offset,
                start,
            )

    def _save_checkpoints(self) -> None:
        for directory in self._directories:
            if directory.failure is None:
                self._note_offsets(directory)
                try:
                    directory.write_checkpoints(sync=False)
                except OSError as error:
                    directory.fail(directory.path, error)

    def _note_offsets(self, directory: LogDirectory) -> None:
        """Take over how far its logs are; a start that the first segment tells is not saved."""
        logs = {name: log for name, log in self._logs.items() if self._home[name] is directory}
        directory.recovery_points = {name: log.recovery_point for name, log in logs.items()}
        directory.log_starts = {
            name: log.log_start_offset
            for name, log in logs.items()
            if log.log_start_offset > log.segment_bases[0]
        }

    def _tell_failures(self) -> None:
        for path, failure in self.offline.items():
            if path not in self._told:
                self._told.add(path)
                LOG.error("log folder %s is offline until a restart: %s", path, failure)

    @property
    def offline(self) -> Mapping[Path, StorageError]:
        """The log folders that failed, with the reason."""
        return {
            directory.path: directory.failure
            for directory in self._directories
            if directory.failure is not None
        }

    def close(self) -> None:
        """Flush everything, write snapshots, checkpoints and `.kafka_cleanshutdown`, unlock.

        A folder that failed, now or before, gets no mark: its next start recovers it.
        """
        self._each(lambda log: log.close())
        self._save_checkpoints()
        for directory in self._directories:
            if directory.failure is None:
                try:
                    directory.mark_clean()
                except OSError as error:
                    directory.fail(directory.path, error)
        self._tell_failures()
        self.abandon()

    def abandon(self) -> None:
        """Let the folders go as they are, as a crash would; the next start recovers them."""
        for directory in self._directories:
            directory.unlock()
        self._logs.clear()
        self._home.clear()
