"""Sinks of a scan: each keeps of a log what one question needs, and no more. Pure.

RangeSink    the ranges of one split                            every night
WindowSink   offset and digest of each record of a window       where two logs differ
PickSink     records at known offsets, whole enough to judge    what is left unpaired there
FirstSink    the first record of each wanted digest             copies of records far away
KeySink      the first and last records of each wanted key      what a cleaner may have taken
"""

from array import array
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Protocol

from spark_audit.scan.committed import CommittedBatch, Content, Hole, HoleReason, SealedBatch
from spark_audit.scan.digests import (
    DigestRange,
    RangeCutter,
    java_time,
    key_digest,
    record_digests,
)
from spark_audit.scan.entries import Entry, entry_of, key_of
from spark_audit.scan.scan_rows import RowKind, ScanRow, hole_row, range_row

_ADDED_UP: Final = (HoleReason.MARKER, HoleReason.ELSEWHERE)
"""Holes that explain nothing, of which only the number of offsets counts."""


class Sink(Protocol):
    """Takes what a log holds, in order."""

    def take(self, content: Content) -> bool:
        """Take the next batch or hole and return whether more is wanted."""

    def is_past(self, offset: int) -> bool:
        """Return whether nothing from this offset on is wanted, although nothing was taken."""


class HoleRows:
    """Holes as rows, as few as can be: there may be a marker behind every record.

    Of holes that explain nothing one row stands for all; a hole that goes on where the last one
    ended, for the same reason, makes that one longer.
    """

    def __init__(self) -> None:
        self._holes: list[Hole] = []
        self._added_up: dict[HoleReason, ScanRow] = {}
        self._closed: list[ScanRow] = []

    def add(self, hole: Hole) -> None:
        """Take the next hole of the log."""
        if hole.reason in _ADDED_UP:
            row, before = hole_row(hole), self._added_up.get(hole.reason)
            if before is not None:
                row = row._replace(
                    start_offset=before.start_offset, records=before.records + row.records
                )
            self._added_up[hole.reason] = row
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

    def rows(self) -> list[ScanRow]:
        """Return the rows, `records` being the offsets they stand for."""
        return [*self._closed, *map(hole_row, self._holes), *self._added_up.values()]

    def close(self) -> None:
        """Let no row that was begun go on, so that each lies between two places of the log."""
        self._closed = self.rows()
        self._holes.clear()
        self._added_up.clear()


class RangeSink:
    """Digests records into ranges, for one split of a log (see RangeCutter)."""

    def __init__(self, *, starts_log: bool, split_stop: int) -> None:
        self._cutter = RangeCutter(starts_log=starts_log, split_stop=split_stop)
        self._rows: list[ScanRow] = []
        self._holes = HoleRows()
        self._first_ms: int | None = None
        """The time of the first record of the range that is under way; None before it begins."""
        self._runs: list[int] = []
        """The parts of that range before the one that is under way."""
        self._run_start = self._run_stop = 0

    def take(self, content: Content) -> bool:
        """See Sink; no more is wanted behind the last range of this split."""
        if isinstance(content, Hole):
            if self._cutter.has_begun:
                self._holes.add(content)
            return True
        first = content.first_offset
        if self._first_ms is not None and first != self._run_stop:
            self._runs += (self._run_start, self._run_stop - self._run_start)
            self._run_start = first
        if isinstance(content, SealedBatch):
            is_own, completed = self._cutter.add_section(first, content.records, content.digest)
            if is_own:
                self._note(first, content.first_ms)
            self._end(completed, content.stop_offset, content.leader_epoch)
        else:
            digests = record_digests(content.times_ms, content.tails)
            for start, stop, completed in self._cutter.add(first, digests):
                self._note(first + start, content.times_ms[start])
                self._end(completed, first + stop, content.leader_epoch)
        self._run_stop = content.stop_offset
        return not self._cutter.is_done

    def _note(self, offset: int, time_ms: int) -> None:
        """Note where a range begins, if none is under way."""
        if self._first_ms is None:
            self._first_ms = java_time(time_ms)
            self._run_start = offset

    def _end(self, completed: DigestRange | None, stop: int, leader_epoch: int) -> None:
        """Take a range that is whole, if one is, and close the holes in it."""
        if completed is not None:
            self._rows.append(self._row(completed, stop, leader_epoch))
            self._holes.close()

    def _row(self, completed: DigestRange, stop: int, leader_epoch: int | None = None) -> ScanRow:
        row = range_row(
            completed,
            self._first_ms,
            [*self._runs, self._run_start, stop - self._run_start],
            leader_epoch,
        )
        self._first_ms, self._runs = None, []
        return row

    def is_past(self, offset: int) -> bool:
        """See Sink: of a log's part there may be nothing in many splits."""
        return self._cutter.is_past(offset)

    def rows(self) -> list[ScanRow]:
        """Return the ranges and holes of the split; `take` is not called any more."""
        last = self._cutter.finish()
        rest = [self._row(last, last.stop_offset)] if last else []
        return [*self._rows, *rest, *self._holes.rows()]


class WindowSink:
    """Keeps offset and digest of each record, 100 bytes a record, up to `limit` records."""

    def __init__(self, limit: int) -> None:
        self.offsets = array("q")
        self.digests: list[bytes] = []
        self.is_over = False
        """There are more records than the limit."""
        self._limit = limit
        self._holes = HoleRows()

    def take(self, content: Content) -> bool:
        """See Sink; nothing is wanted beyond the limit."""
        if isinstance(content, Hole):
            self._holes.add(content)
            return True
        assert isinstance(content, CommittedBatch), "a window's batches are opened"
        if len(self.offsets) + len(content.tails) > self._limit:
            self.is_over = True
            return False
        self.offsets.extend(range(content.first_offset, content.stop_offset))
        self.digests += record_digests(content.times_ms, content.tails)
        return True

    def is_past(self, offset: int) -> bool:
        """See Sink; never."""
        del offset
        return False

    def holes(self) -> list[ScanRow]:
        """Return the holes between the records."""
        return self._holes.rows()


class PickSink:
    """Keeps the records at the wanted offsets."""

    def __init__(self, offsets: Collection[int]) -> None:
        self.entries: dict[int, Entry] = {}
        self._wanted = frozenset(offsets)

    def take(self, content: Content) -> bool:
        """See Sink; no more is wanted once all are there."""
        if isinstance(content, CommittedBatch):
            for head in content.heads():
                if head.offset in self._wanted:
                    self.entries[head.offset] = entry_of(head, content.producer_id)
        return len(self.entries) < len(self._wanted)

    def is_past(self, offset: int) -> bool:
        """See Sink; never."""
        del offset
        return False


class FirstSink:
    """Keeps the first `copies` records of each wanted digest, at most."""

    def __init__(self, digests: Collection[bytes], *, copies: int = 1) -> None:
        self.entries: dict[bytes, list[Entry]] = {}
        self._wanted = frozenset(digests)
        self._missing = copies * len(self._wanted)
        self._copies = copies

    def take(self, content: Content) -> bool:
        """See Sink; no more is wanted once all are there."""
        if isinstance(content, CommittedBatch):
            digests = record_digests(content.times_ms, content.tails)
            for digest, head in zip(digests, content.heads(), strict=True):
                if digest in self._wanted:
                    self._keep(entry_of(head, content.producer_id, digest))
        return self._missing > 0

    def _keep(self, entry: Entry) -> None:
        of_digest = self.entries.setdefault(entry.digest, [])
        if len(of_digest) < self._copies:
            of_digest.append(entry)
            self._missing -= 1

    def is_past(self, offset: int) -> bool:
        """See Sink; never."""
        del offset
        return False


@dataclass(slots=True, kw_only=True)
class KeyPlaces:
    """Where one key's records lie in a log; offsets."""

    first: int
    last: int
    tombstone: int | None = None
    """The last one of those before the mirrored end."""
    of_other: int | None = None
    """The last one that is not of the direction compared: where both sites write, or of a record
    that was set aside."""
    held: frozenset[int] = frozenset()
    """Those of the records asked about that are there still."""


class KeySink:
    """Keeps where the records of each wanted key lie; tombstones count before `mirrored_end`."""

    def __init__(
        self,
        keys: Collection[bytes],
        places: dict[bytes, KeyPlaces],
        end: int,
        *,
        is_other: Callable[[int], bool] | None = None,
        asked: Collection[int] = (),
    ) -> None:
        """Add to `places`; `is_other` tells by its offset what is not of the direction compared.

        Of the records at the offsets that are `asked` it notes whether they are there still.
        """
        self.places = places
        self._wanted = frozenset(keys)
        self._mirrored_end = end
        self._is_other = is_other
        self._asked = frozenset(asked)

    def take(self, content: Content) -> bool:
        """See Sink; there is always more wanted."""
        if isinstance(content, CommittedBatch):
            for head in content.heads():
                key, is_tombstone = key_of(head.tail)
                if key is not None and (digest := key_digest(key)) in self._wanted:
                    self._note(digest, head.offset, is_tombstone=is_tombstone)
        return True

    def _note(self, digest: bytes, offset: int, *, is_tombstone: bool) -> None:
        known = self.places.setdefault(digest, KeyPlaces(first=offset, last=offset))
        known.first, known.last = min(known.first, offset), max(known.last, offset)
        if offset in self._asked:
            known.held |= {offset}
        if self._is_other is not None and self._is_other(offset):
            known.of_other = max(offset, known.of_other or 0)
        if is_tombstone and offset < self._mirrored_end:
            before = known.tombstone
            known.tombstone = offset if before is None else max(before, offset)

    def is_past(self, offset: int) -> bool:
        """See Sink; never."""
        del offset
        return False


class RecordSink:
    """Keeps the records with a wanted digest as rows."""

    def __init__(self, digests: Collection[bytes]) -> None:
        self._wanted = frozenset(digests)
        self._rows: list[ScanRow] = []

    def take(self, content: Content) -> bool:
        """See Sink; there is always more wanted."""
        if isinstance(content, CommittedBatch):
            digests = record_digests(content.times_ms, content.tails)
            self._rows += (
                ScanRow(RowKind.RECORD.value, offset, offset + 1, 1, digest)
                for offset, digest in enumerate(digests, content.first_offset)
                if digest in self._wanted
            )
        return True

    def is_past(self, offset: int) -> bool:
        """See Sink; never."""
        del offset
        return False

    def rows(self) -> list[ScanRow]:
        """Return the rows."""
        return self._rows
