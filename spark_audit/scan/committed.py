"""A fetched log as committed records, and the named holes between them. Pure.

A consumer that reads committed never sees transaction markers, aborted transactions, records that
compaction took or batches whose checksum fails. The audit must not see them as records either, but
it has to know of them: a hole explains why two logs differ, or is a finding itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import NamedTuple, TypeAlias

from spark_audit.scan.digests import section_digest
from spark_audit.snapshot.origins import Part
from wire.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    RecordHead,
    crc_is_valid,
    iterate_batches,
    iterate_record_heads,
    iterate_records,
    times_and_tails,
)
from wire.record_batch.header import COMPRESSION_MASK

_CONTROL_KEY = Struct(">hh")  # version, type: Kafka's ControlRecordType
_ABORT = 0


class HoleReason(Enum):
    """The reasons for which offsets of a log carry no committed record."""

    MARKER = "transaction marker"
    ABORTED = "aborted transaction"
    GAP = "no record at these offsets"
    """Between batches or inside one: what compaction leaves."""
    RETENTION = "before the log start"
    CORRUPT = "corrupt batch"
    ELSEWHERE = "compared by the other direction"
    """A batch of the part of the log that is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Offsets start_offset..stop_offset-1 without a committed record."""

    start_offset: int
    stop_offset: int
    reason: HoleReason
    detail: str = ""


class CommittedBatch(NamedTuple):
    """Records of one batch inside the asked range, one behind the other; no object for each."""

    producer_id: int
    first_offset: int
    times_ms: Sequence[int]
    tails: Sequence[bytes]
    """Key, value and headers, still encoded."""
    leader_epoch: int = -1
    """The epoch of the leader that took the batch; -1 where brokers do not say."""

    @property
    def stop_offset(self) -> int:
        """Return the offset behind the last record."""
        return self.first_offset + len(self.tails)

    def heads(self) -> Iterator[RecordHead]:
        """Yield the records one by one."""
        for offset, (time_ms, tail) in enumerate(
            zip(self.times_ms, self.tails, strict=True), self.first_offset
        ):
            yield RecordHead(offset, time_ms, tail)


class SealedBatch(NamedTuple):
    """The records of one compressed batch, all inside the range, without a look at each."""

    first_offset: int
    records: int
    first_ms: int
    digest: bytes
    """Equal where the section of records is equal in every byte, and in what its header says."""
    leader_epoch: int = -1

    @property
    def stop_offset(self) -> int:
        """Return the offset behind the last record."""
        return self.first_offset + self.records


Content: TypeAlias = CommittedBatch | SealedBatch | Hole
"""What a log holds, in order."""


class AbortedTransaction(NamedTuple):
    """Data of a Fetch answer: of this producer, from this offset to its next abort marker."""

    producer_id: int
    first_offset: int


class CommittedLog:
    """One pass over a partition from `start` to `stop` (exclusive), fed with Fetch answers."""

    def __init__(
        self,
        start: int,
        stop: int,
        part: Part | None = None,
        *,
        keeps_sealed: bool = False,
        range_start: int | None = None,
    ) -> None:
        """With `keeps_sealed` compressed batches are not opened, unless the range cuts them.

        The range begins at `range_start` if other passes read what lies before `start`. The batch
        in which `start` lies is closed here then, too, and begins before it: two passes that see
        one batch in two ways do not agree where the ranges of the one end.
        """
        self._keeps_sealed = keeps_sealed
        self._start = start
        self._range_start = start if range_start is None else range_start
        self.position = start
        """The next offset to fetch."""
        self._stop = stop
        self._part = part
        """The part of the log, if not all: other batches count as holes that explain nothing."""

    def extend(self, stop: int) -> None:
        """Go on up to `stop`, if that is further."""
        self._stop = max(self._stop, stop)

    @property
    def is_done(self) -> bool:
        """Return whether nothing before `stop` is left to fetch."""
        return self.position >= self._stop

    def feed(self, fetched: memoryview, aborted: Iterable[AbortedTransaction]) -> Iterator[Content]:
        """Yield what one Fetch answer for `position` holds, and move `position` behind it.

        Only whole batches count; the incomplete one at the end is fetched again. UnsupportedMagic
        (a log from before Kafka 0.11) is the caller's to report.
        """
        transactions = _Transactions(aborted)
        batches = _with_next_offset(fetched)
        for header, batch, next_offset in batches:
            if header.base_offset >= self._stop:
                yield from self._skip_to(self._stop, HoleReason.GAP)
                return
            if header.base_offset > self.position:
                yield from self._skip_to(header.base_offset, HoleReason.GAP)
            if not crc_is_valid(batch):
                detail = f"the checksum of the batch at offset {header.base_offset} fails"
                # At least one offset on: where it ends may be what is damaged.
                behind = max(next_offset, self.position + 1)
                yield from self._skip_to(behind, HoleReason.CORRUPT, detail)
            elif (reason := transactions.hole(header, batch)) is not None:
                yield from self._skip_to(header.next_offset, reason)
            elif self._part is not None and not self._part.takes(header):
                yield from self._skip_to(header.next_offset, HoleReason.ELSEWHERE)
            else:
                yield from self._records(header, batch)

    def skip_to(self, offset: int, reason: HoleReason) -> Iterator[Hole]:
        """Yield the hole from `position` to `offset`, if there is one inside the range."""
        yield from self._skip_to(offset, reason)

    def _skip_to(self, offset: int, reason: HoleReason, detail: str = "") -> Iterator[Hole]:
        end = min(offset, self._stop)
        if end > self.position:
            start, self.position = self.position, end
            yield Hole(start_offset=start, stop_offset=end, reason=reason, detail=detail)

    def _records(self, header: BatchHeader, batch: memoryview) -> Iterator[Content]:
        if self._keeps_sealed and self._may_stay_sealed(header):
            yield _sealed(header, batch)
            self.position = header.next_offset
            return
        try:
            if header.has_offset_holes:
                found = _runs(header, list(iterate_record_heads(batch)))
            else:
                run = _run(header, header.base_offset, *times_and_tails(batch, header))
                if self.position <= run.first_offset and run.stop_offset <= self._stop:
                    self.position = run.stop_offset
                    yield run
                    return
                found = [run]
        except CorruptBatch as fault:
            detail = f"the batch at offset {header.base_offset}: {fault.reason}"
            yield from self._skip_to(header.next_offset, HoleReason.CORRUPT, detail)
            return
        for run in found:
            inside = _between(run, self.position, self._stop)
            if inside.tails:
                yield from self._skip_to(inside.first_offset, HoleReason.GAP)
                yield inside
                self.position = inside.stop_offset
        yield from self._skip_to(header.next_offset, HoleReason.GAP)

    def _may_stay_sealed(self, header: BatchHeader) -> bool:
        return (
            header.attributes & COMPRESSION_MASK != 0
            and not header.has_offset_holes
            and self._range_start <= header.base_offset
            and (self.position <= header.base_offset or self.position == self._start)
            and header.next_offset <= self._stop
        )


def _sealed(header: BatchHeader, batch: memoryview) -> SealedBatch:
    append_ms = header.max_timestamp if header.is_log_append_time else None
    return SealedBatch(
        header.base_offset,
        header.record_count,
        header.base_timestamp if append_ms is None else append_ms,
        section_digest(
            batch[HEADER_BYTES:],
            codec=header.attributes & COMPRESSION_MASK,
            records=header.record_count,
            base_timestamp_ms=header.base_timestamp,
            append_ms=append_ms,
        ),
        header.partition_leader_epoch,
    )


def _run(
    header: BatchHeader, first_offset: int, times_ms: Sequence[int], tails: Sequence[bytes]
) -> CommittedBatch:
    return CommittedBatch(
        header.producer_id, first_offset, times_ms, tails, header.partition_leader_epoch
    )


def _runs(header: BatchHeader, heads: Sequence[RecordHead]) -> list[CommittedBatch]:
    """Return the records between whose offsets others are missing, in parts without holes."""
    starts = [
        number
        for number, head in enumerate(heads)
        if number == 0 or head.offset != heads[number - 1].offset + 1
    ]
    stops = [*starts[1:], len(heads)] if heads else []
    return [
        _run(
            header,
            heads[start].offset,
            [head.timestamp_ms for head in heads[start:stop]],
            [head.tail for head in heads[start:stop]],
        )
        for start, stop in zip(starts, stops, strict=True)
    ]


def _between(run: CommittedBatch, start: int, stop: int) -> CommittedBatch:
    """Return the part of a run whose offsets lie in [start, stop)."""
    if start <= run.first_offset and run.stop_offset <= stop:
        return run
    first = min(max(0, start - run.first_offset), len(run.tails))
    last = max(first, min(stop - run.first_offset, len(run.tails)))
    return run._replace(
        first_offset=run.first_offset + first,
        times_ms=run.times_ms[first:last],
        tails=run.tails[first:last],
    )


class _Transactions:
    """Finds control batches and those that belong to an aborted transaction (KIP-98)."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._waiting = sorted(
            aborted, key=lambda transaction: transaction.first_offset, reverse=True
        )
        self._open: set[int] = set()

    def hole(self, header: BatchHeader, batch: memoryview) -> HoleReason | None:
        """Return why this batch has no committed records, None when it has some."""
        while self._waiting and self._waiting[-1].first_offset <= header.last_offset:
            self._open.add(self._waiting.pop().producer_id)
        if header.is_control:
            if _is_abort_marker(batch):
                self._open.discard(header.producer_id)
            return HoleReason.MARKER
        if header.is_transactional and header.producer_id in self._open:
            return HoleReason.ABORTED
        return None


def _is_abort_marker(batch: memoryview) -> bool:
    for record in iterate_records(batch):
        if record.key is not None and len(record.key) >= _CONTROL_KEY.size:
            _, kind = _CONTROL_KEY.unpack_from(record.key)
            return bool(kind == _ABORT)
    return False


def _with_next_offset(
    fetched: memoryview,
) -> Iterator[tuple[BatchHeader, memoryview, int]]:
    """Yield each whole batch with the offset at which the log goes on behind it.

    Taken from the next batch where there is one: a batch's own word for it lies under its checksum,
    and this is asked when that fails. The last one is believed if its numbers agree.
    """
    before: tuple[BatchHeader, memoryview] | None = None
    for header, batch in iterate_batches(fetched):
        if before is not None:
            yield *before, header.base_offset
        before = header, batch
    if before is not None:
        header = before[0]
        believed = header.next_offset if not header.has_offset_holes else header.base_offset + 1
        yield *before, believed
