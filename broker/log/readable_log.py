"""Reading one partition's log: by offset, by time, by leader epoch, by transaction."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from broker.log import lookup
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.log.leader_epochs import LeaderEpochs
from broker.log.loading import LoadedLog
from broker.log.markers import AbortedTransaction
from broker.log.producer_state import NO_OFFSET, ProducerEntry, ProducerTable
from broker.log.results import NOTHING, FileSlice, OffsetOutOfRange
from broker.log.segments import SegmentList
from wire.topic_partition import TopicPartition


class ReadableLog:
    """The questions that a log answers; `PartitionLog` is the whole of it.

    The high watermark is the replica layer's: reads take it as `stop_offset`.
    """

    def __init__(
        self,
        name: TopicPartition,
        folder: Path,
        directory: LogDirectory,
        config: LogConfig,
        loaded: LoadedLog,
    ) -> None:
        self.name = name
        self.folder = folder
        self.config = config
        """Replaceable at any time: the next append, roll and retention follow it."""
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self._directory = directory
        self._segments: SegmentList = loaded.segments
        self._producers: ProducerTable = loaded.producers
        self._epochs: LeaderEpochs = loaded.epochs

    def _guard(self) -> AbstractContextManager[None]:
        """Refuse when the folder is offline; take it offline when the disk fails."""
        return self._directory.guard(self.folder)

    def refuse_if_offline(self) -> None:
        """Raise StorageError when the log's folder has failed."""
        self._directory.refuse_if_offline()

    @property
    def size_bytes(self) -> int:
        """All segments' bytes, indexes not counted."""
        return self._segments.size_bytes

    @property
    def segment_bases(self) -> tuple[int, ...]:
        """Where the segments begin."""
        return tuple(segment.base_offset for segment in self._segments)

    @property
    def latest_leader_epoch(self) -> int:
        """The newest epoch that has begun in this log; -1 when none."""
        return self._epochs.latest

    # -- reading ------------------------------------------------------------------------------

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
        found = self.locate(
            offset, max_bytes, minimum_one_batch=minimum_one_batch, stop_offset=stop_offset
        )
        if isinstance(found, OffsetOutOfRange):
            return found
        with self._guard():
            return found.file.read(found.position, found.length) if found.file else b""

    def locate(
        self,
        offset: int,
        max_bytes: int,
        *,
        minimum_one_batch: bool = True,
        stop_offset: int | None = None,
    ) -> FileSlice | OffsetOutOfRange:
        """Return where `read` would read, for sendfile."""
        self._directory.refuse_if_offline()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return OffsetOutOfRange(
                log_start_offset=self.log_start_offset, log_end_offset=self.log_end_offset
            )
        stop = self.log_end_offset if stop_offset is None else stop_offset
        if offset >= stop or offset == self.log_end_offset:
            return NOTHING
        with self._guard():
            return self._segments.locate(
                offset, max_bytes, minimum_one_batch=minimum_one_batch, stop_offset=stop
            )

    def look_for_timestamp(
        self, timestamp_ms: int, *, start_offset: int = 0, stop_offset: int
    ) -> lookup.TimestampSearchResult:
        """Return the first record in these offsets that is at least that young, or how to go on."""
        start = max(start_offset, self.log_start_offset)
        with self._guard():
            return lookup.first_at_least(self._segments, timestamp_ms, start, stop_offset)

    @property
    def newest_ms(self) -> int:
        """The largest timestamp of all records, negative when none has one."""
        return max(segment.max_timestamp for segment in self._segments)

    # -- epochs -------------------------------------------------------------------------------

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (the largest epoch not above `epoch`, where it ended); (-1, -1) when unknown."""
        return self._epochs.end_offset(epoch, self.log_end_offset)

    # -- producers ---------------------------------------------------------------------------

    def producer(self, producer_id: int) -> ProducerEntry | None:
        """Return what is known of a producer; another object after each of its batches."""
        return self._producers.get(producer_id)

    def producers(self) -> Sequence[ProducerEntry]:
        """Return what is known of all producers."""
        return tuple(self._producers)

    # -- transactions ---------------------------------------------------------------------------

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return up to where a read-committed reader may read: all before it is decided.

        The high watermark, unless a transaction began before it that is open, or whose marker is
        not below the high watermark itself (Kafka's ProducerStateManager.firstUnstableOffset).
        """
        unstable = self._producers.first_unstable(high_watermark)
        if unstable == NO_OFFSET:
            return high_watermark
        return min(high_watermark, max(unstable, self.log_start_offset))

    def aborted_transactions(
        self, start_offset: int, stop_offset: int
    ) -> Sequence[AbortedTransaction]:
        """Return the aborted transactions with records from start (inclusive) to stop (exclusive).

        For a Fetch answer: from the fetch offset to the `end_offset` of the slice that it carries.
        """
        if stop_offset <= start_offset:
            return ()
        with self._guard():
            return self._segments.aborted_transactions(start_offset, stop_offset)
