"""Take records out of a log's batches within limits, and say how far that went. Pure.

Nothing here is unbounded: a batch may unpack to anything, a key may never come, and a value may
have a hundred megabytes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, NamedTuple

from wire.record_batch import BatchHeader, CorruptBatch, Record, crc_is_valid, iterate_records
from wire.values import frozen

MOST_SHOWN: Final = 20
MOST_LOOKED: Final = 50_000
"""So many records are looked at."""
MOST_READ_BYTES: Final = 16 * 1024 * 1024
"""So many bytes of batches are read, as they lie in the log; the last one may go beyond."""
MOST_UNPACKED_BYTES: Final = 16 * 1024 * 1024
"""A batch that unpacks to more is not shown."""
MOST_KEY_BYTES: Final = 256
MOST_VALUE_BYTES: Final = 2_048
MOST_HEADERS: Final = 20
MOST_HEADER_BYTES: Final = 256
MOST_FAULTS: Final = 10
LOOK_UP_EVERY: Final = 512
"""Between two looks at the time, so many records: a millisecond."""


class Ended(Enum):
    """Why a look ended where it did."""

    END = "the log's end"
    ENOUGH = f"{MOST_SHOWN} records"
    LOOKED = f"the limit of {MOST_LOOKED:,} records"
    READ = f"the limit of {MOST_READ_BYTES >> 20} MiB"
    TIME = "the limit of time"


class TransactionState(Enum):
    """What became of the transaction that a record is part of."""

    NONE = "no transaction"
    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    COMMIT_MARKER = "control marker: commit"
    ABORT_MARKER = "control marker: abort"
    OTHER_MARKER = "control record"

    @property
    def is_marker(self) -> bool:
        """Return whether it is no application's record at all."""
        return self in _MARKERS


_MARKERS: Final = frozenset(
    {
        TransactionState.COMMIT_MARKER,
        TransactionState.ABORT_MARKER,
        TransactionState.OTHER_MARKER,
    }
)
_BY_TYPE: Final = {0: TransactionState.ABORT_MARKER, 1: TransactionState.COMMIT_MARKER}


class Excerpt(NamedTuple):
    """The beginning of some bytes, and how many there are."""

    data: bytes
    size: int


@frozen
class PeekedRecord:
    """One record as it lies in the log; None is null."""

    offset: int
    timestamp_ms: int
    is_append_time: bool
    key: Excerpt | None
    value: Excerpt | None
    headers: tuple[tuple[str, Excerpt | None], ...]
    more_headers: int
    leader_epoch: int
    producer_id: int
    """-1 of a plain producer."""
    state: TransactionState


class FoundBatch(NamedTuple):
    """A batch of the log, and whether its transaction is known to be aborted."""

    header: BatchHeader
    batch: memoryview
    is_aborted: bool


@dataclass(slots=True, kw_only=True)
class PeekLook:
    """One look from `start` towards `end`: what was found so far, and how far that is."""

    start: int
    end: int
    stable_end: int
    """From here on a transaction may be open."""
    key: bytes | None = None
    next_offset: int = field(init=False)
    records: list[PeekedRecord] = field(default_factory=list)
    looked: int = 0
    read_bytes: int = 0
    faults: list[str] = field(default_factory=list)
    """Batches that cannot be shown, and why."""
    ended: Ended | None = None

    def __post_init__(self) -> None:
        """Begin at the start."""
        self.next_offset = self.start

    def take(self, found: FoundBatch, is_over: Callable[[], bool]) -> None:
        """Take one batch, unless the look has ended; `is_over` says that there is no more time."""
        if self.ended is not None:
            return
        header = found.header
        self.read_bytes += header.batch_bytes
        try:
            self._take_records(found, is_over)
        except CorruptBatch as corrupt:
            self._note(header, str(corrupt))
        if self.ended is None:
            self.next_offset = max(self.next_offset, header.next_offset)
            if self.read_bytes >= MOST_READ_BYTES:
                self.ended = Ended.READ
            elif is_over():
                self.ended = Ended.TIME

    def finish(self, ended: Ended) -> None:
        """End the look where nothing has ended it yet."""
        if self.ended is None:
            self.ended = ended
            if ended is Ended.END:
                self.next_offset = max(self.next_offset, self.end)

    def _take_records(self, found: FoundBatch, is_over: Callable[[], bool]) -> None:
        header, batch, _ = found
        if not crc_is_valid(batch):
            raise CorruptBatch(0, "its checksum is wrong")
        passed = 0
        for record in iterate_records(batch, limit_bytes=MOST_UNPACKED_BYTES):
            passed += 1
            if passed % LOOK_UP_EVERY == 0 and is_over():
                self._end_within(header, record.offset)
                return
            if not self.start <= record.offset < self.end:
                continue
            state = _state(found, record, self.stable_end)
            if state.is_marker:
                self._settle(header, record.offset, state)
            if self.key is None or (record.key == self.key and not state.is_marker):
                self.records.append(_peeked(header, record, state))
            self.looked += 1
            if len(self.records) >= MOST_SHOWN:
                self.ended = Ended.ENOUGH
            elif self.looked >= MOST_LOOKED:
                self.ended = Ended.LOOKED
            if self.ended is not None:
                self.next_offset = record.offset + 1
                return

    def _end_within(self, header: BatchHeader, offset: int) -> None:
        self.ended = Ended.TIME
        self.next_offset = offset
        if offset <= self.start:
            # The next look would begin at the same record of the same batch.
            self.next_offset = header.next_offset
            self._note(header, "it has too many records to look through in the time")

    def _note(self, header: BatchHeader, why: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            where = f"offsets {header.base_offset:,} to {header.last_offset:,}"
            self.faults.append(f"The batch at {where} cannot be shown: {why}")

    def _settle(self, header: BatchHeader, offset: int, marker: TransactionState) -> None:
        """Let a marker behind the last stable offset say what became of records before it."""
        became = {
            TransactionState.COMMIT_MARKER: TransactionState.COMMITTED,
            TransactionState.ABORT_MARKER: TransactionState.ABORTED,
        }.get(marker)
        if became is None:
            return
        for index, one in enumerate(self.records):
            is_its = one.producer_id == header.producer_id and one.offset < offset
            if is_its and one.state is TransactionState.OPEN:
                self.records[index] = replace(one, state=became)


def _state(found: FoundBatch, record: Record, stable_end: int) -> TransactionState:
    header = found.header
    if header.is_control:
        key = record.key or b""
        number = int.from_bytes(key[2:4], "big", signed=True) if len(key) >= 4 else -1
        return _BY_TYPE.get(number, TransactionState.OTHER_MARKER)
    if not header.is_transactional:
        return TransactionState.NONE
    if found.is_aborted:
        return TransactionState.ABORTED
    return TransactionState.OPEN if record.offset >= stable_end else TransactionState.COMMITTED


def _peeked(header: BatchHeader, record: Record, state: TransactionState) -> PeekedRecord:
    headers = record.headers[:MOST_HEADERS]
    return PeekedRecord(
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        is_append_time=header.is_log_append_time,
        key=_excerpt(record.key, MOST_KEY_BYTES),
        value=_excerpt(record.value, MOST_VALUE_BYTES),
        headers=tuple((name, _excerpt(data, MOST_HEADER_BYTES)) for name, data in headers),
        more_headers=len(record.headers) - len(headers),
        leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        state=state,
    )


def _excerpt(data: bytes | None, most: int) -> Excerpt | None:
    return None if data is None else Excerpt(bytes(data[:most]), len(data))
