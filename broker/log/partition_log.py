"""One partition's log: append, read, truncate, roll, retention. Owns the files of one folder."""

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from broker.log import producer_state, retention
from broker.log.appending import (
    NO_TIME,
    Context,
    is_next_of_its_producer,
    may_append_run,
    prepare_fetched,
    prepare_own,
    prepare_produced,
    shape_of,
)
from broker.log.cleaning_plan import Cleanable, SegmentShape, cleanable, first_dirty_offset
from broker.log.compaction import LastRecord
from broker.log.config import LONG_MAX
from broker.log.directory import LogDirectory
from broker.log.flushing import PendingFlush
from broker.log.loading import LoadedLog, Opening, load, recall_earlier, tail_of, writers_from
from broker.log.producer_state import (
    NO_OFFSET,
    NO_PRODUCER_ID,
    REMEMBERED_BATCHES,
    ProducerTable,
)
from broker.log.readable_log import ReadableLog
from broker.log.results import (
    Appended,
    AppendOrigin,
    AppendResult,
    BatchRefused,
    Duplicate,
    StorageError,
)
from broker.log.segment import NumberedBatch, RunBatch, Segment
from broker.log.swapping import swap_in
from broker.log.validation import KeyCheck, check_produced, number_in_place
from wire.hot.produce_run import PlainBatch
from wire.record_batch import BatchHeader, Buffer, parse_header
from wire.topic_partition import TopicPartition


class PartitionLog(ReadableLog):
    """One replica's records on disk. Not thread-safe; every method returns at once.

    Every method may raise StorageError; the whole log folder is then offline, see LogManager.

    Measured with 16 KiB batches in the page cache: an append 20 µs, finding what was just appended
    7 µs, going on in the middle 25 µs, any other place 50 µs. So nothing here is awaited.
    """

    def __init__(
        self,
        name: TopicPartition,
        folder: Path,
        directory: LogDirectory,
        opening: Opening,
        loaded: LoadedLog,
    ) -> None:
        """Use `open`."""
        super().__init__(name, folder, directory, opening.config, loaded)
        self.topic_id = loaded.topic_id
        """The 16 bytes of `partition.metadata`, None if there is none."""
        self.recovery_reports = loaded.reports
        """What was cut when it was opened."""
        is_flushed = opening.is_clean and not loaded.reports
        self.recovery_point = min(
            loaded.log_end_offset if is_flushed else opening.recovery_point, loaded.log_end_offset
        )
        """Below it everything is on the platter, not only in the page cache."""
        self._snapshots = loaded.snapshots
        self._flushed_ms = opening.now_ms
        self.changes = 0
        """Moves whenever batches that were in the log, or the log itself, are taken away."""

    @classmethod
    def open(
        cls, name: TopicPartition, folder: Path, directory: LogDirectory, opening: Opening
    ) -> "PartitionLog":
        """Open the log in `folder`, which is there, and repair it if need be."""
        with directory.guard(folder):
            return cls(name, folder, directory, opening, load(folder, opening))

    # -- appending ----------------------------------------------------------------------------

    def append(
        self,
        batch: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        wall_ms: int | None = None,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        check_keys: KeyCheck | None = None,
    ) -> Appended:
        """Check, number and write one batch (COORDINATOR: one or more).

        Stamps are set and checked by `wall_ms`, which may jump; ages are counted by `now_ms`, which
        serves for both where there is no other.

        The buffer is not changed: the patched header is written from a copy of its 61 bytes, the
        records straight from the buffer.
        """
        self._directory.refuse_if_offline()
        stamp_ms = now_ms if wall_ms is None else wall_ms
        context = Context(
            config=self.config,
            producers=self._producers,
            log_end_offset=self.log_end_offset,
            leader_epoch=leader_epoch,
            now_ms=stamp_ms,
            is_verified=origin is AppendOrigin.VERIFIED_CLIENT,
        )
        if origin is AppendOrigin.COORDINATOR:
            prepared = prepare_own(batch, context)
        else:
            header = check_produced(batch, self.config, stamp_ms, check_keys)
            if isinstance(header, BatchRefused):
                return header
            duplicate = self.find_duplicate(header)
            if duplicate is not None:
                return duplicate
            prepared = prepare_produced(batch, header, context)
        if isinstance(prepared, BatchRefused):
            return prepared
        return self._write(prepared, now_ms, context.append_time_ms)

    def takes_run(self, run: Sequence[PlainBatch], *, wall_ms: int) -> bool:
        """Say whether `append` would take each of these sound batches of producers, in order.

        No means that they are to be given to it one by one.
        """
        if self._directory.failure is not None:
            return False
        shape = shape_of(run)
        has_room = self._segments.active.has_room_for(
            self.config,
            shape.size,
            len(run),
            self.log_end_offset + shape.record_count - 1,
            shape.newest_ms,
        )
        return (
            has_room
            and may_append_run(shape, self.config, wall_ms)
            and is_next_of_its_producer(run, self._producers)
        )

    def append_run(
        self, view: memoryview, run: Sequence[PlainBatch], *, leader_epoch: int, now_ms: int
    ) -> Sequence[int]:
        """Number the batches where they lie and write them in one call; return where each begins.

        `takes_run` has allowed it, and nothing has happened to the log since; another log of the
        same folder may have failed.
        """
        self._directory.refuse_if_offline()
        offset = self.log_end_offset
        placed: list[RunBatch] = []
        for one in run:
            placed.append(number_in_place(view, one, offset, leader_epoch))
            offset += one.record_count
        try:
            if leader_epoch > self._epochs.latest:
                self._epochs.assign(leader_epoch, self.log_end_offset)
            self._segments.append_run(placed, interval_bytes=self.config.index_interval_bytes)
        except OSError as error:
            raise self._directory.fail(self.folder, error) from error
        if run[0].producer_id != NO_PRODUCER_ID:
            for batch in placed[-REMEMBERED_BATCHES:]:
                self._producers.replay(parse_header(batch.data), now_ms)
        self._producers.end_offset = self.log_end_offset = offset
        if offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
        return [batch.base_offset for batch in placed]

    def append_as_follower(self, batches: Buffer, *, now_ms: int) -> Appended:
        """Write batches fetched from the leader, with the offsets and epochs they carry.

        An incomplete batch at their end is left out. An empty log may be given a batch that holds
        its start but begins before it (Kafka's UnexpectedAppendOffsetException, KAFKA-6975).
        """
        self._directory.refuse_if_offline()
        is_empty = self.log_start_offset == self.log_end_offset
        prepared = prepare_fetched(batches, self.log_end_offset, is_empty=is_empty)
        if isinstance(prepared, BatchRefused):
            return prepared
        if prepared and prepared[0].header.base_offset < self.log_end_offset:
            start = self.log_start_offset
            self.truncate_fully_and_start_at(prepared[0].header.base_offset, now_ms=now_ms)
            self.log_start_offset = start
        return self._write(prepared, now_ms, NO_TIME)

    def find_duplicate(self, header: BatchHeader) -> Duplicate | None:
        """Return where this producer's batch already is, if it is among its last five.

        Asked before a write fence, so that a lost acknowledgement can still be found out.
        """
        if header.producer_id == NO_PRODUCER_ID:
            return None
        found = producer_state.find_duplicate(self._producers.get(header.producer_id), header)
        if found is None:
            return None
        return Duplicate(
            base_offset=found.first_offset,
            last_offset=found.last_offset,
            timestamp_ms=found.timestamp_ms,
            log_start_offset=self.log_start_offset,
        )

    def _write(
        self, batches: Sequence[NumberedBatch], now_ms: int, append_time_ms: int
    ) -> AppendResult:
        base_offset = batches[0].header.base_offset if batches else self.log_end_offset
        try:
            self._write_in_segments(batches, now_ms)
        except OSError as error:
            raise self._directory.fail(self.folder, error) from error
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
        return AppendResult(
            base_offset=base_offset,
            last_offset=self.log_end_offset - 1,
            log_append_time_ms=append_time_ms,
            log_start_offset=self.log_start_offset,
        )

    def _write_in_segments(self, batches: Sequence[NumberedBatch], now_ms: int) -> None:
        """Write all batches, nearly always in one call; a new segment begins where one is due."""
        group: list[NumberedBatch] = []
        group_bytes = 0
        for batch in batches:
            header = batch.header
            active = self._segments.active
            if group and active.size + group_bytes + header.batch_bytes > self.config.segment_bytes:
                self._write_group(group, now_ms)
                group, group_bytes = [], 0
            if active.must_roll(self.config, group_bytes + header.batch_bytes, header, now_ms):
                self._write_group(group, now_ms)
                group, group_bytes = [], 0
                self._roll(header.base_offset, now_ms)
            group.append(batch)
            group_bytes += header.batch_bytes
        self._write_group(group, now_ms)

    def _write_group(self, group: Sequence[NumberedBatch], now_ms: int) -> None:
        """Write, then take the batches in as recovery would: epochs, producers, the log's end."""
        if not group:
            return
        for batch in group:
            epoch = batch.header.partition_leader_epoch
            if epoch > self._epochs.latest:
                self._epochs.assign(epoch, batch.header.base_offset)
        self._segments.append(group, interval_bytes=self.config.index_interval_bytes)
        aborted = [self._producers.replay(batch.header, now_ms, batch.marker()) for batch in group]
        self._segments.active.transactions.append(one for one in aborted if one is not None)
        self.log_end_offset = group[-1].header.next_offset

    def assign_leader_epoch(self, epoch: int) -> None:
        """Note that `epoch` begins at the log's end (on becoming leader)."""
        with self._guard():
            self._epochs.assign(epoch, self.log_end_offset)

    # -- shrinking and growing ------------------------------------------------------------------

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        """Drop every record at or above `offset` (whole batches), and what was known of them."""
        if offset >= self.log_end_offset:
            # An epoch that began here, but of which nothing was written, is not the leader's.
            with self._guard():
                self._epochs.truncate_from(self.log_end_offset)
            return
        if offset < self._segments.first.base_offset:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return
        self.changes += 1
        with self._guard():
            self._directory.lower(self.name, offset)
            writers = writers_from(self._segments, offset)
            self.log_end_offset = self._segments.truncate(offset)
            self._epochs.truncate_from(self.log_end_offset)
            self._snapshots.delete_above(self.log_end_offset)
            self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
            self.recovery_point = min(self.recovery_point, self.log_end_offset)
            self._cut_producers(writers, now_ms)
            self._directory.lower(self.name, self.log_end_offset)

    def highest_producer_id(self, *, below: int) -> int:
        """Return the highest id below this of a producer that the log remembers, -1 for none."""
        ids = (entry.producer_id for entry in self._producers)
        return max((one for one in ids if one < below), default=NO_PRODUCER_ID)

    def _cut_producers(self, writers: Collection[int] | None, now_ms: int) -> None:
        """Bring what is known of producers back to the log's end; `writers` wrote what was cut.

        Who did not stays as it was: to read the last segment anew, which may hold a million
        batches, takes seconds. After a leader's death many logs are cut at once while the loop
        waits.
        """
        end, tail = self.log_end_offset, partial(tail_of, self._segments)
        if writers is not None and self._producers.cut(writers, end, tail):
            return
        first = self._segments.first.base_offset
        self._producers = self._snapshots.load(first, end, now_ms)
        for placed in self._segments.walk_from(self._producers.end_offset):
            self._producers.replay(placed.header, now_ms, placed.marker)
        self._producers.end_offset = end
        recall_earlier(self._producers, self._segments)

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Drop everything; the next record gets `offset`."""
        self.changes += 1
        with self._guard():
            self._directory.lower(self.name, offset)
            self._directory.retired += self._segments.restart_at(offset, now_ms)
            self._epochs.truncate_from(0)
            self._snapshots.keep(())
            self._producers = ProducerTable(end_offset=offset)
            self.log_start_offset = self.log_end_offset = self.recovery_point = offset

    def advance_log_start(self, offset: int) -> None:
        """Move the log start up (DeleteRecords); segments wholly below it go with retention."""
        if self.log_start_offset < offset <= self.log_end_offset:
            with self._guard():
                self.log_start_offset = offset
                self._epochs.truncate_before(offset)

    def roll(self, now_ms: int) -> None:
        """Begin a new segment at the log's end, unless the active one is empty."""
        if self._segments.active.size:
            with self._guard():
                self._roll(self.log_end_offset, now_ms)

    def _roll(self, base_offset: int, now_ms: int) -> None:
        """Also keep what is known of producers, so that recovery need not look before this."""
        self._segments.roll(base_offset, now_ms)
        self._producers.end_offset = base_offset
        self._snapshots.write(self._producers)

    def apply_retention(self, now_ms: int, *, stop_offset: int | None = None) -> int:
        """Delete old whole segments below `stop_offset` (the high watermark); return how many."""
        with self._guard():
            count = retention.deletable(
                self._segments.facts(self.log_end_offset),
                self.config,
                log_start_offset=self.log_start_offset,
                stop_offset=self.log_end_offset if stop_offset is None else stop_offset,
                now_ms=now_ms,
            )
            if count == len(self._segments):
                self._roll(self.log_end_offset, now_ms)
            if count:
                self.changes += 1
                self._directory.retired += self._segments.retire_oldest(count)
                first = self._segments.first.base_offset
                self.log_start_offset = max(self.log_start_offset, first)
                self._epochs.truncate_before(self.log_start_offset)
                self._snapshots.keep(o for o in self._snapshots.offsets if o >= first)
        return count

    # -- compaction -----------------------------------------------------------------------------

    def sealed_segments(self) -> Sequence[Segment]:
        """Return the segments that are not written to any more, oldest first."""
        return list(self._segments)[:-1]

    def sealed_shapes(self) -> list[SegmentShape]:
        """Return what a cleaning plan asks of each of them."""
        asks_age = self.config.max_compaction_lag_ms < LONG_MAX
        return [
            SegmentShape(
                base_offset=one.base_offset,
                size=one.size,
                index_bytes=one.index.size_bytes,
                time_index_bytes=one.time_index.size_bytes,
                first_ms=one.first_timestamp if asks_age else NO_TIME,
                newest_ms=one.newest_ms(),
            )
            for one in self.sealed_segments()
        ]

    def cleanable(self, checkpoint: int | None, *, high_watermark: int, now_ms: int) -> Cleanable:
        """Return what compaction might do; `checkpoint` is where it ended the last time."""
        start, end = self.log_start_offset, self.log_end_offset
        with self._guard():
            return cleanable(
                self.sealed_shapes(),
                self.config,
                first_dirty=first_dirty_offset(checkpoint, start, end),
                active_base=self._segments.active.base_offset,
                last_stable_offset=self.last_stable_offset(high_watermark),
                now_ms=now_ms,
            )

    def last_records(self) -> dict[int, LastRecord]:
        """Return where each remembered producer's last batch ends, by its id."""
        return {
            entry.producer_id: LastRecord(
                entry.batches[-1].last_offset if entry.batches else NO_OFFSET, entry.epoch
            )
            for entry in self._producers
        }

    def replace_segments(self, old: Sequence[Segment], *, now_ms: int) -> None:
        """Swap in the cleaned segment that was made of `old`, neighbours and none the active."""
        with self._guard():
            new, left = swap_in(self.folder, old[0].base_offset, old, now_ms)
            self._directory.retired += left
            self._segments.replace(old, new)
            gone = {segment.base_offset for segment in old[1:]}
            self._snapshots.keep(known for known in self._snapshots.offsets if known not in gone)

    # -- care ---------------------------------------------------------------------------------

    def flush(self) -> None:
        """fsync everything written so far; the recovery point moves to the log's end."""
        for pending in self._flushes_up_to(self.log_end_offset):
            pending.run()
            pending.finish()

    def flushes_due(self, now_ms: int) -> Sequence[PendingFlush]:
        """Return the fsync that is due: of sealed segments, and of all when flush.ms is over."""
        is_over = now_ms - self._flushed_ms >= self.config.flush_ms
        up_to = self.log_end_offset if is_over else self._segments.active.base_offset
        if is_over:
            self._flushed_ms = now_ms
        return self._flushes_up_to(up_to)

    def _flushes_up_to(self, up_to: int) -> Sequence[PendingFlush]:
        if self.recovery_point >= up_to:
            return ()
        with self._guard():
            files = self._segments.files_between(self.recovery_point, up_to)
        asked_at = self.changes
        return (PendingFlush(files, lambda failure: self._flushed(up_to, asked_at, failure)),)

    def _flushed(self, up_to: int, asked_at: int, failure: StorageError | None) -> None:
        if failure is not None:
            self._directory.blame(failure)
        elif asked_at == self.changes:
            self.recovery_point = max(self.recovery_point, up_to)

    def rest(self, now_ms: int, *, producer_id_expiration_ms: int) -> None:
        """Give back what an idle log does not need: files, buffers, forgotten producers."""
        with self._guard():
            for segment in self._segments:
                segment.rest()
        self._producers.expire(now_ms, producer_id_expiration_ms)

    def close(self) -> None:
        """Bring everything to the disk, so that the next start need not look at the records."""
        with self._guard():
            self._segments.active.seal()
            if self.log_end_offset not in self._snapshots.offsets:
                self._snapshots.write(self._producers)
            self._snapshots.keep((*self.segment_bases, self.log_end_offset))
        self.flush()
