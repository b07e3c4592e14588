"""One partition's log: append, read, truncate, roll, retention. Owns the files of one folder."""

from pathlib import Path

from broker.log.config import LogConfig
from broker.log.results import (
    Appended,
    Duplicate,
    FileSlice,
    OffsetOutOfRange,
    Origin,
    RecoveryReport,
    TimestampOffset,
)
from wire.record_batch import BatchHeader, Buffer


class PartitionLog:
    """One replica's records on disk. Not thread-safe; every method returns at once.

    Every method may raise StorageError; the whole log folder is then offline, see LogManager.
    The high watermark is the replica layer's: reads take it as `stop_offset`.
    """

    topic: str
    partition: int
    folder: Path
    config: LogConfig
    """Replaceable at any time: the next append, roll and retention follow it."""
    log_start_offset: int
    log_end_offset: int
    recovery_report: RecoveryReport | None
    """What was cut when it was opened."""

    @property
    def topic_id(self) -> bytes | None:
        """The 16 bytes of `partition.metadata`."""

    @property
    def size_bytes(self) -> int:
        """All segments' bytes, indexes not counted."""

    @property
    def latest_leader_epoch(self) -> int:
        """The newest epoch that has begun in this log; -1 when none."""

    def append(
        self, batch: Buffer, *, leader_epoch: int, now_ms: int, origin: Origin = Origin.CLIENT
    ) -> Appended:
        """Check, number and write one batch (COORDINATOR: one or more).

        The buffer is not changed: the patched header is written from a copy of its 61 bytes, the
        records straight from the buffer. Raises StorageError when the disk refuses.
        """
        raise NotImplementedError

    def append_as_follower(self, batches: Buffer, *, now_ms: int) -> Appended:
        """Write batches fetched from the leader, with the offsets and epochs they carry."""
        raise NotImplementedError

    def find_duplicate(self, header: BatchHeader) -> Duplicate | None:
        """Return where this producer's batch already is, if it is among its last five.

        Asked before a write fence, so that a lost acknowledgement can still be found out.
        """
        raise NotImplementedError

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        minimum_one_batch: bool = True,
        stop_offset: int | None = None,
    ) -> bytes | OffsetOutOfRange:
        """Return whole batches from the one that holds `offset` on, none at or above `stop_offset`.

        The first batch may begin below `offset`. Empty at the end. The first batch comes even when
        it is larger than `max_bytes`, unless `minimum_one_batch` is off. One call reads from one
        segment.
        """
        raise NotImplementedError

    def locate(
        self,
        offset: int,
        max_bytes: int,
        *,
        minimum_one_batch: bool = True,
        stop_offset: int | None = None,
    ) -> FileSlice | OffsetOutOfRange:
        """Return where `read` would read, for sendfile."""
        raise NotImplementedError

    def offset_for_timestamp(
        self, timestamp_ms: int, *, stop_offset: int | None = None
    ) -> TimestampOffset | None:
        """Return the first record (below `stop_offset`) that is at least that young."""
        raise NotImplementedError

    def newest_record(self) -> TimestampOffset | None:
        """Return the first record with the largest timestamp (ListOffsets -3)."""
        raise NotImplementedError

    def assign_leader_epoch(self, epoch: int) -> None:
        """Note that `epoch` begins at the log's end (on becoming leader)."""
        raise NotImplementedError

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (the largest epoch not above `epoch`, where it ended); (-1, -1) when unknown."""
        raise NotImplementedError

    def truncate_to(self, offset: int) -> None:
        """Drop every record at or above `offset` (whole batches), and what was known of them."""
        raise NotImplementedError

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets `offset`."""
        raise NotImplementedError

    def advance_log_start(self, offset: int) -> None:
        """Move the log start (DeleteRecords); segments wholly below it go with retention."""
        raise NotImplementedError

    def roll(self, now_ms: int) -> None:
        """Begin a new segment at the log's end, unless the active one is empty."""
        raise NotImplementedError

    def apply_retention(self, now_ms: int, *, stop_offset: int | None = None) -> int:
        """Delete old whole segments below `stop_offset` (the high watermark); return how many."""
        raise NotImplementedError

    def flush(self) -> None:
        """fsync everything written so far; the recovery point moves to the log's end."""
        raise NotImplementedError
