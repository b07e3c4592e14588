"""The compaction of one batch. Pure; the rules are Kafka's LogCleaner's.

    a record with a later one of its key      goes
    a record without a key                    goes
    a tombstone                               stays until the batch's delete horizon
    a record of an aborted transaction        goes
    a marker                                  stays until its transaction's records are gone, then
                                              until the batch's delete horizon
    the last batch of a producer              stays, be it as an empty header: it tells the sequence

Offsets, sequences and the compression stay as they are; a batch that loses nothing is passed on as
it is. The delete horizon (KIP-534) is now + delete.retention.ms when the cleaner first meets a
batch with a tombstone, or a marker without records; attribute bit 6 says that it stands in the
place of the base timestamp.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from broker.log.config import LONG_MAX
from broker.log.markers import AbortedTransaction, Marker, read_marker
from broker.log.record_scan import ScannedRecord, scan_records, unpacked_at_once
from broker.log.segment import NumberedBatch
from broker.log.skimpy_offset_map import SkimpyOffsetMap
from broker.log.steps import Slow, Steps
from wire.compression import Compression, compress
from wire.record_batch import HEADER_BYTES, BatchHeader, parse_header, records_payload
from wire.record_batch.header import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    pack_header,
)
from wire.record_batch.varints import varint

RECORDS_PER_STEP: Final = 500
"""Looked at in less than a millisecond."""
_SLOW_BYTES: Final = 64 * 1024
"""Compressing this much takes more than a step should."""
_NO_TIME: Final = -1


class LastRecord(NamedTuple):
    """The end of what a producer wrote."""

    last_offset: int
    """Of its last batch of records, -1 if only a marker is left of it."""
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningRules:
    """The rules of one cleaning of a log."""

    offset_map: SkimpyOffsetMap
    last_records: Mapping[int, LastRecord]
    """Of the producers that the log still remembers, by id."""
    now_ms: int
    delete_retention_ms: int

    def is_last_of_producer(self, header: BatchHeader) -> bool:
        """Say whether the producer's state hangs on this batch."""
        last = self.last_records.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    def keeps(self, record: ScannedRecord, offset: int, horizon_ms: int | None) -> bool:
        """Say whether a record stays that no transaction took away."""
        if offset > self.offset_map.latest_offset:
            return True
        if record.key is None or offset < self.offset_map.get(record.key):
            return False
        return record.has_value or horizon_ms is None or self.now_ms < horizon_ms


class _Aborted:
    """An aborted transaction between its first record and its marker."""

    __slots__ = ("transaction", "was_seen")

    def __init__(self, transaction: AbortedTransaction) -> None:
        self.transaction = transaction
        self.was_seen = False


class CleanedTransactions:
    """Which transactions the batches passed belong to; Kafka's CleanedTransactionMetadata.

    retained    aborted transactions that still have records, for the cleaned segment's index;
                whoever writes that takes them out
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Begin before the first batch; `aborted` are all that reach into the range."""
        self._coming = [(one.first_offset, one) for one in aborted]
        heapq.heapify(self._coming)
        self._aborted: dict[int, _Aborted] = {}
        self._committed: set[int] = set()
        self.retained: list[AbortedTransaction] = []

    def _pass(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            _, transaction = heapq.heappop(self._coming)
            self._aborted.setdefault(transaction.producer_id, _Aborted(transaction))

    def pass_marker(self, header: BatchHeader, marker: Marker | None) -> bool:
        """Take in a control batch; say whether nothing of its transaction is left before it."""
        self._pass(header.last_offset)
        if header.record_count == 0:
            return True
        if marker is None:
            return False
        if marker.is_abort:
            aborted = self._aborted.pop(header.producer_id, None)
            if aborted is None or not aborted.was_seen:
                return True
            self.retained.append(aborted.transaction)
            return False
        if header.producer_id not in self._committed:
            return True
        self._committed.discard(header.producer_id)
        return False

    def pass_records(self, header: BatchHeader) -> bool:
        """Take in a batch of records; say whether it is of an aborted transaction."""
        self._pass(header.last_offset)
        if not header.is_transactional:
            return False
        aborted = self._aborted.get(header.producer_id)
        if aborted is None:
            self._committed.add(header.producer_id)
            return False
        aborted.was_seen = True
        return True


def delete_horizon(header: BatchHeader) -> int | None:
    """Return when tombstones and markers in the batch may go, None if that is not settled."""
    return header.base_timestamp if header.attributes & DELETE_HORIZON else None


def map_batch(
    batch: memoryview, header: BatchHeader, offset_map: SkimpyOffsetMap, start_offset: int
) -> Steps[None]:
    """Take the keys of a batch's records from `start_offset` on into the map."""
    payload = yield from _payload(batch, header)
    for number, record in enumerate(scan_records(payload, header.record_count)):
        if number % RECORDS_PER_STEP == RECORDS_PER_STEP - 1:
            yield None
        offset = header.base_offset + record.offset_delta
        if record.key is not None and offset >= start_offset:
            offset_map.put(record.key, offset)


def compact_batch(
    batch: memoryview,
    header: BatchHeader,
    rules: CleaningRules,
    transactions: CleanedTransactions,
) -> Steps[NumberedBatch | None]:
    """Return what stays of a batch, None for nothing. Raises CorruptBatch."""
    if header.is_control:
        is_idle = transactions.pass_marker(header, read_marker(batch))
        left = yield from _compact_marker(batch, header, rules, is_idle=is_idle)
    else:
        is_aborted = transactions.pass_records(header)
        left = yield from _compact_records(batch, header, rules, is_aborted=is_aborted)
    if left is None and rules.is_last_of_producer(header):
        return empty_batch(header)
    return left


def _compact_marker(
    batch: memoryview, header: BatchHeader, rules: CleaningRules, *, is_idle: bool
) -> Steps[NumberedBatch | None]:
    if header.record_count == 0:
        return None
    horizon_ms = delete_horizon(header)
    if not is_idle or (horizon_ms is not None and rules.now_ms < horizon_ms):
        return _as_it_is(batch, header)
    if horizon_ms is not None:
        return None
    payload = yield from _payload(batch, header)
    every = list(scan_records(payload, header.record_count))
    return (yield from _rebuilt(header, payload, every, _new_horizon(rules)))


def _compact_records(
    batch: memoryview, header: BatchHeader, rules: CleaningRules, *, is_aborted: bool
) -> Steps[NumberedBatch | None]:
    if is_aborted:
        return None
    if header.base_offset > rules.offset_map.latest_offset:
        return _as_it_is(batch, header)
    payload = yield from _payload(batch, header)
    kept = yield from _kept(payload, header, rules)
    if not kept:
        return None
    needs_horizon = delete_horizon(header) is None and not all(r.has_value for r in kept)
    if len(kept) == header.record_count and not needs_horizon:
        return _as_it_is(batch, header)
    horizon_ms = _new_horizon(rules) if needs_horizon else None
    return (yield from _rebuilt(header, payload, kept, horizon_ms))


def _new_horizon(rules: CleaningRules) -> int:
    return _as_long(rules.now_ms + rules.delete_retention_ms)


def _as_long(number: int) -> int:
    """Return the nearest that a header or a record can hold: a retention may be for ever."""
    return min(max(number, -LONG_MAX - 1), LONG_MAX)


def _as_it_is(batch: memoryview, header: BatchHeader) -> NumberedBatch:
    return NumberedBatch(batch[:HEADER_BYTES], batch[HEADER_BYTES:], header)


def _kept(payload: bytes, header: BatchHeader, rules: CleaningRules) -> Steps[list[ScannedRecord]]:
    horizon_ms = delete_horizon(header)
    kept: list[ScannedRecord] = []
    for number, record in enumerate(scan_records(payload, header.record_count)):
        if number % RECORDS_PER_STEP == RECORDS_PER_STEP - 1:
            yield None
        if rules.keeps(record, header.base_offset + record.offset_delta, horizon_ms):
            kept.append(record)
    return kept


def _payload(batch: memoryview, header: BatchHeader) -> Steps[bytes]:
    is_small = header.compression is Compression.NONE or len(batch) < _SLOW_BYTES
    at_once = unpacked_at_once(batch, header) if is_small else None
    if at_once is not None:
        return at_once
    unpack: Slow = partial(records_payload, batch, header)
    payload: bytes = yield unpack
    return payload


def _rebuilt(
    header: BatchHeader, payload: bytes, kept: Sequence[ScannedRecord], horizon_ms: int | None
) -> Steps[NumberedBatch]:
    """Return a batch of fewer records, or the same with a horizon; `kept` is not empty."""
    base_timestamp, attributes = header.base_timestamp, header.attributes
    if horizon_ms is not None:
        base_timestamp, attributes = horizon_ms, attributes | DELETE_HORIZON
    shift = header.base_timestamp - base_timestamp
    pieces: list[bytes] = []
    for number, record in enumerate(kept):
        if number % RECORDS_PER_STEP == RECORDS_PER_STEP - 1:
            yield None
        whole = payload[record.start : record.end]
        pieces.append(whole if shift == 0 else _shifted(payload, record, shift))
    yield None
    records = b"".join(pieces)
    if header.compression is not Compression.NONE:
        pack: Slow = partial(compress, header.compression, records)
        records = pack() if len(records) < _SLOW_BYTES else (yield pack)
    newest_ms = header.max_timestamp
    if not header.is_log_append_time:
        newest_ms = _as_long(header.base_timestamp + max(record.time_delta for record in kept))
    head = pack_header(
        header._replace(
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=newest_ms,
            record_count=len(kept),
        ),
        records,
    )
    return NumberedBatch(head, records, parse_header(head))


def _shifted(payload: bytes, record: ScannedRecord, shift: int) -> bytes:
    """Return a record counted from another base timestamp."""
    body = b"".join(
        (
            b"\x00",
            varint(_as_long(record.time_delta + shift)),
            varint(record.offset_delta),
            payload[record.tail : record.end],
        )
    )
    return varint(len(body)) + body


def empty_batch(header: BatchHeader) -> NumberedBatch:
    """Return the header alone: offsets, producer and sequences of a batch without its records."""
    attributes = header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    head = pack_header(
        header._replace(attributes=attributes, base_timestamp=_NO_TIME, record_count=0), b""
    )
    return NumberedBatch(head, b"", parse_header(head))
