"""Compacting one log, in steps: keys into a map, segments rewritten by it and swapped in.

Reads through the files it opened at the start and writes files that are not yet part of the log;
only the swap touches the log. The cleaner drives the steps, until `PartitionLog.changes` moves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from broker.log.batch_walk import FileWindow, walk_window
from broker.log.cleaning_plan import Cleanable, grouped
from broker.log.compaction import CleanedTransactions, CleaningRules, compact_batch, map_batch
from broker.log.markers import read_marker
from broker.log.open_file import OpenFile
from broker.log.partition_log import PartitionLog
from broker.log.segment import NumberedBatch, Segment
from broker.log.skimpy_offset_map import SkimpyOffsetMap
from broker.log.steps import Steps
from broker.log.swapping import begin_cleaned, sync_cleaned, sync_folder
from wire.record_batch import BatchHeader

_READ_BYTES: Final = 512 * 1024
"""Kafka's log.cleaner.io.buffer.size; copying that much takes a fraction of a step."""
_WRITE_BYTES: Final = 256 * 1024


@dataclass(slots=True)
class CleaningReport:
    """The result of one cleaning of a log; sizes are bytes of segments."""

    start_offset: int
    next_dirty: int = 0
    """Everything before it is compacted now."""
    bytes_read: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    bytes_written: int = 0
    keys: int = 0
    """How many there were in the dirty part."""
    segments_before: int = 0
    segments_after: int = 0


@dataclass(slots=True)
class _Part:
    """A sealed segment as it is read: kept readable whatever happens to the log."""

    segment: Segment
    _file: OpenFile | None = field(init=False)

    def __post_init__(self) -> None:
        self._file = self.segment.file

    def close(self) -> None:
        """Let go of the file, so that the disk does not have to remove it when this ends."""
        self._file = None

    def batches(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield every batch. Raises StorageError where there is none, and OSError."""
        assert self._file is not None, "read before it is replaced"
        window = FileWindow(self._file, self.segment.size, _READ_BYTES)
        for placed in walk_window(window, self._file, 0, self.segment.size):
            header = placed.header
            yield header, window.view(placed.position, header.batch_bytes)


class Cleaning:
    """One cleaning of one log. Raises from its steps OSError, StorageError, CorruptBatch."""

    def __init__(self, log: PartitionLog, plan: Cleanable, *, slots: int, now_ms: int) -> None:
        """Prepare to clean the dirty part in `plan`, with room for that many keys."""
        self._log = log
        self._plan = plan
        self._now_ms = now_ms
        self._map = SkimpyOffsetMap(slots)
        self._map.latest_offset = plan.first_dirty - 1
        self._segments = [
            one for one in log.sealed_segments() if one.base_offset < plan.first_uncleanable
        ]
        self._is_other = False
        self.report = CleaningReport(start_offset=plan.first_dirty)

    def steps(self) -> Steps[CleaningReport]:
        """Do it; the report's `next_dirty` is the new checkpoint."""
        report = self.report
        parts = [_Part(segment) for segment in self._segments]
        yield from self._map_keys(parts)
        report.keys = len(self._map)
        end = report.next_dirty = self._map.latest_offset + 1
        parts = [part for part in parts if part.segment.base_offset < end]
        if not parts:
            return report
        first = parts[0].segment.base_offset
        rules = CleaningRules(
            offset_map=self._map,
            last_records=self._log.last_records(),
            now_ms=self._now_ms,
            delete_retention_ms=self._log.config.delete_retention_ms,
        )
        # The last segment is rewritten to its end, also where the map was full before.
        behind = [one.base_offset for one in self._segments[len(parts) :]]
        stop = behind[0] if behind else self._plan.first_uncleanable
        transactions = CleanedTransactions(self._log.aborted_transactions(first, stop))
        shapes = self._log.sealed_shapes()[: len(parts)]
        for group in grouped(shapes, self._log.config, self._plan.first_uncleanable):
            yield from self._clean_group(parts[group.start : group.stop], rules, transactions)
        return report

    def _map_keys(self, parts: Sequence[_Part]) -> Steps[None]:
        """Fill the map from the dirty segments, as far as it has room."""
        start, stop = self._plan.first_dirty, self._plan.first_uncleanable
        transactions = CleanedTransactions(self._log.aborted_transactions(start, stop))
        ends = [*(part.segment.base_offset for part in parts[1:]), stop]
        for part, end in zip(parts, ends, strict=False):
            if end <= start:
                continue
            for header, batch in part.batches():
                if header.last_offset < start:
                    continue
                if self._map.is_full:
                    return
                yield from self._map_one(header, batch, transactions)
            self._map.latest_offset = end - 1

    def _map_one(
        self, header: BatchHeader, batch: memoryview, transactions: CleanedTransactions
    ) -> Steps[None]:
        self.report.bytes_read += header.batch_bytes
        if header.is_control:
            transactions.pass_marker(header, read_marker(batch))
        elif not transactions.pass_records(header):
            yield from map_batch(batch, header, self._map, self._plan.first_dirty)
        self._map.latest_offset = header.last_offset
        yield None

    def _clean_group(
        self, parts: Sequence[_Part], rules: CleaningRules, transactions: CleanedTransactions
    ) -> Steps[None]:
        """Rewrite a group into one segment and swap it in, unless nothing would change."""
        log, report = self._log, self.report
        base_offset = parts[0].segment.base_offset
        cleaned = begin_cleaned(log.folder, base_offset, self._now_ms)
        self._is_other = len(parts) > 1
        try:
            for part in parts:
                yield from self._rewrite(part, cleaned, rules, transactions)
            report.bytes_before += sum(part.segment.size for part in parts)
            report.bytes_after += cleaned.size
            report.segments_before += len(parts)
            report.segments_after += 1
            if self._is_other:
                cleaned.seal()
                modified_ns = parts[-1].segment.path.stat().st_mtime_ns
                yield partial(sync_cleaned, cleaned, modified_ns)
                log.replace_segments([part.segment for part in parts], now_ms=self._now_ms)
                for part in parts:
                    part.close()
                yield partial(sync_folder, log.folder)
        finally:
            cleaned.delete()

    def _rewrite(
        self,
        part: _Part,
        cleaned: Segment,
        rules: CleaningRules,
        transactions: CleanedTransactions,
    ) -> Steps[None]:
        """Add what stays of one segment to the cleaned one."""
        group: list[NumberedBatch] = []
        group_bytes = 0
        for header, batch in part.batches():
            self.report.bytes_read += header.batch_bytes
            left = yield from compact_batch(batch, header, rules, transactions)
            self._is_other = self._is_other or left is None or left.header is not header
            if left is not None:
                group.append(left)
                group_bytes += left.header.batch_bytes
            if group_bytes >= _WRITE_BYTES:
                self._write(cleaned, group)
                group_bytes = 0
            yield None
        self._write(cleaned, group)
        cleaned.transactions.append(transactions.retained)
        transactions.retained.clear()

    def _write(self, cleaned: Segment, group: list[NumberedBatch]) -> None:
        self.report.bytes_written += sum(batch.header.batch_bytes for batch in group)
        cleaned.append(group, interval_bytes=self._log.config.index_interval_bytes)
        group.clear()
