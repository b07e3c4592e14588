"""Sinks of a scan: they turn records and holes into rows of ranges or of records. Pure."""

from typing import Final, Protocol

from spark_audit.scan.committed import CommittedBatch, Hole, HoleReason
from spark_audit.scan.digests import RangeCutter, java_time, key_digest, record_digest
from spark_audit.scan.scan_rows import RowKind, ScanRow, hole_row, range_row
from wire.record_batch import RecordHead
from wire.record_batch.varints import read_varint

KEY_BYTES: Final = 64
"""So much of a key is kept: for people to read, and to pair altered records. Whether two records
have the same key is asked of the digest of the whole one."""


class Sink(Protocol):
    """Takes what a log holds, in order."""

    def take(self, content: CommittedBatch | Hole) -> bool:
        """Take the next batch or hole and return whether more is wanted."""

    def is_past(self, offset: int) -> bool:
        """Return whether nothing from this offset on is wanted, although nothing was taken."""

    def finish(self) -> list[ScanRow]:
        """Return all rows; `take` is not called any more."""


class RangeSink:
    """Digests records into ranges, for one split of a log (see RangeCutter)."""

    def __init__(self, *, starts_log: bool, split_stop: int) -> None:
        self._cutter = RangeCutter(starts_log=starts_log, split_stop=split_stop)
        self._rows: list[ScanRow] = []
        self._holes = HoleRows()

    def take(self, content: CommittedBatch | Hole) -> bool:
        """See Sink; no more is wanted behind the last range of this split."""
        if isinstance(content, Hole):
            if self._cutter.has_begun:
                self._holes.add(content)
            return True
        add = self._cutter.add
        for head in content.heads:
            completed = add(head.offset, record_digest(head))
            if completed is not None:
                self._rows.append(range_row(completed))
            if self._cutter.is_done:
                return False
        return True

    def is_past(self, offset: int) -> bool:
        """See Sink: of a log's part there may be nothing in many splits."""
        return self._cutter.is_past(offset)

    def finish(self) -> list[ScanRow]:
        """See Sink."""
        last = self._cutter.finish()
        return [*self._rows, *([range_row(last)] if last else []), *self._holes.rows()]


class RecordSink:
    """Keeps every record as a row."""

    def __init__(self) -> None:
        self._rows: list[ScanRow] = []
        self._holes = HoleRows()

    def take(self, content: CommittedBatch | Hole) -> bool:
        """See Sink; there is always more wanted."""
        if isinstance(content, Hole):
            self._holes.add(content)
        else:
            self._rows += [_record_row(head, content.producer_id) for head in content.heads]
        return True

    def is_past(self, offset: int) -> bool:
        """See Sink; never."""
        del offset
        return False

    def finish(self) -> list[ScanRow]:
        """See Sink."""
        return [*self._rows, *self._holes.rows()]


class HoleRows:
    """Holes as rows, as few as can be: there may be a marker behind every record.

    Markers explain nothing and only their number counts, so one row stands for all; a hole that
    goes on where the last one ended, for the same reason, makes that one longer.
    """

    def __init__(self) -> None:
        self._holes: list[Hole] = []
        self._markers: ScanRow | None = None

    def add(self, hole: Hole) -> None:
        """Take the next hole of the log."""
        if hole.reason is HoleReason.MARKER:
            self._add_marker(hole)
            return
        last = self._holes[-1] if self._holes else None
        if last is not None and (last.stop_offset, last.reason, last.detail) == (
            hole.start_offset,
            hole.reason,
            hole.detail,
        ):
            self._holes[-1] = Hole(
                start_offset=last.start_offset,
                stop_offset=hole.stop_offset,
                reason=last.reason,
                detail=last.detail,
            )
        else:
            self._holes.append(hole)

    def _add_marker(self, hole: Hole) -> None:
        row, before = hole_row(hole), self._markers
        if before is not None:
            row = row._replace(
                start_offset=before.start_offset, records=before.records + row.records
            )
        self._markers = row

    def rows(self) -> list[ScanRow]:
        """Return the rows, `records` being the offsets they stand for."""
        markers = [] if self._markers is None else [self._markers]
        return [*(hole_row(hole) for hole in self._holes), *markers]


def _record_row(head: RecordHead, producer_id: int) -> ScanRow:
    key, is_tombstone = _key_of(head.tail)
    return ScanRow(
        RowKind.RECORD.value,
        head.offset,
        head.offset + 1,
        1,
        record_digest(head),
        java_time(head.timestamp_ms),
        None if key is None else key[:KEY_BYTES],
        producer_id,
        key_digest=None if key is None else key_digest(key),
        is_tombstone=is_tombstone,
    )


def _key_of(tail: bytes) -> tuple[bytes | None, bool]:
    """Return a record's key, and whether it has no value; of bytes that are no record's, neither.

    A broker need not look into what producers send.
    """
    try:
        length, position = read_varint(tail, 0)
        value_length, _ = read_varint(tail, position + max(0, length))
    except (IndexError, ValueError):
        return None, False
    return None if length < 0 else tail[position : position + length], value_length < 0
