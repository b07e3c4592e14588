"""The checks before a batch is appended, and the header that it gets. Pure.

Rules, codes and their order are those of Kafka's UnifiedLog and LogValidator, as far as the header
tells. Records are decoded for a compacted topic only, where each must have a key, and for a topic
that takes no old ones (`message.timestamp.before.max.ms`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, TypeAlias

from broker.fairness import RECORDS_AT_ONCE
from broker.log.config import LONG_MAX, LogConfig
from broker.log.record_scan import scan_records, unpacked_at_once
from broker.log.results import BatchRefused
from broker.log.segment import NumberedBatch, RunBatch
from wire.errors import ErrorCode
from wire.hot.produce_run import PlainBatch
from wire.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    Buffer,
    CorruptBatch,
    UnsupportedMagic,
    crc_is_valid,
    iterate_batches,
    parse_header,
    records_payload,
)
from wire.record_batch.checksum import crc32c
from wire.record_batch.header import LENGTH_STARTS_AT

MOST_NAMED: Final = 1_000
"""Of records that are to blame; a batch may hold a million."""
_PLACE: Final = Struct(">qii")
_CRC: Final = Struct(">I")
_ATTRIBUTES: Final = Struct(">h")
_TIMESTAMP: Final = Struct(">q")
_CRC_AT, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 17, 21, 35
_LOG_APPEND_TIME: Final = 0x08


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRules:
    """What single records have to comply with; times in ms, bounds included."""

    needs_keys: bool
    """A compacted topic: compaction would take a record without a key away at once."""
    oldest_ms: int
    newest_ms: int

    def check(self, header: BatchHeader, batch: Buffer) -> BatchRefused | None:
        """Look at each record. Those of one batch may take MAX_RECORDS_BYTES unpacked."""
        try:
            payload = records_payload(batch, header)
        except CorruptBatch as fault:
            return _corrupt(str(fault))
        return self.check_unpacked(header, payload)

    def check_unpacked(self, header: BatchHeader, payload: bytes) -> BatchRefused | None:
        """Do as `check` does for records that are unpacked already.

        Each record that is to blame is named, as in Kafka's LogValidator, up to MOST_NAMED.
        """
        keyless: list[int] = []
        untimely: list[tuple[int, int]] = []
        try:
            for place, record in enumerate(scan_records(payload, header.record_count)):
                if self.needs_keys and record.offset_delta != place:
                    # It would count as later than those of its key that come behind it.
                    return _invalid(
                        f"record {place} of the batch has offset delta {record.offset_delta}"
                    )
                if self.needs_keys and record.key is None:
                    keyless.append(place)
                time_ms = header.base_timestamp + record.time_delta
                if time_ms >= 0 and not self.oldest_ms <= time_ms <= self.newest_ms:
                    untimely.append((place, time_ms))
        except CorruptBatch as fault:
            return _corrupt(str(fault))
        return _refuse_records(keyless, untimely)


def record_rules(config: LogConfig, now_ms: int) -> RecordRules | None:
    """Return what single records have to comply with, None if nobody has to look at them.

    The largest timestamp stands in a batch's header, so `message.timestamp.after.max.ms` alone is
    no reason to look.
    """
    has_oldest = not config.stamps_append_time and config.oldest_ms < LONG_MAX
    return _rules(config, now_ms) if config.compacts or has_oldest else None


def _rules(config: LogConfig, now_ms: int) -> RecordRules:
    is_stamped = config.stamps_append_time
    return RecordRules(
        needs_keys=config.compacts,
        oldest_ms=0 if is_stamped else now_ms - config.oldest_ms,
        newest_ms=2 * LONG_MAX if is_stamped else now_ms + config.newest_ms,
    )


def _refuse_records(
    keyless: Sequence[int], untimely: Sequence[tuple[int, int]]
) -> BatchRefused | None:
    """Refuse a batch for single records; the code is that of times, where any is wrong."""
    found = [(place, "a compacted topic takes no record without a key") for place in keyless]
    found += [(place, f"timestamp {time_ms} is out of bounds") for place, time_ms in untimely]
    if not found:
        return None
    count = len({place for place, _ in found})
    return BatchRefused(
        error=ErrorCode.INVALID_TIMESTAMP if untimely else ErrorCode.INVALID_RECORD,
        reason=f"{count} of the batch's records are refused: {found[0][1]}",
        record_errors=tuple(sorted(found)[:MOST_NAMED]),
    )


KeyCheck: TypeAlias = Callable[[BatchHeader, Buffer], BatchRefused | None]
"""`RecordRules.check`, or what it has said of a batch for which it took long."""


def check_produced(
    batch: Buffer, config: LogConfig, now_ms: int, check_keys: KeyCheck | None = None
) -> BatchHeader | BatchRefused:
    """Check what a producer sent for one partition: exactly one sound batch."""
    try:
        header = parse_header(batch)
    except UnsupportedMagic as fault:
        return _invalid(str(fault)) if fault.magic in (0, 1) else _corrupt(str(fault))
    except CorruptBatch as fault:
        return _corrupt(str(fault))
    if header.batch_bytes > len(batch):
        return _corrupt(f"the batch has {len(batch)} of its {header.batch_bytes} bytes")
    if header.batch_bytes < len(batch):
        return _invalid("a produce request may hold only one batch per partition")
    if header.base_offset != 0:
        return _invalid(f"base offset {header.base_offset} instead of 0")
    return (
        _check_size(header, config)
        or _check_crc(header, batch)
        or _check_contents(header)
        or _check_timestamps(header, batch, config, now_ms)
        or _check_records(header, batch, record_rules(config, now_ms), check_keys)
        or header
    )


def _check_records(
    header: BatchHeader, batch: Buffer, rules: RecordRules | None, known: KeyCheck | None
) -> BatchRefused | None:
    if rules is None:
        return None
    return rules.check(header, batch) if known is None else known(header, batch)


def check_own(
    batches: Buffer, config: LogConfig
) -> list[tuple[BatchHeader, memoryview]] | BatchRefused:
    """Check what this broker built itself: one or more sound batches of any kind."""
    return _check_each(batches, config)


def check_fetched(
    batches: Buffer, log_end_offset: int, *, is_empty: bool
) -> list[tuple[BatchHeader, memoryview]] | BatchRefused:
    """Check what a leader sent: sound batches whose offsets grow from the log's end on.

    An incomplete batch at the end, where the leader's size limit fell, is left out. The first batch
    of a log that `is_empty` may begin before its end: DeleteRecords moves a log's start into one.
    """
    checked = _check_each(batches, None)
    if isinstance(checked, BatchRefused):
        return checked
    expected = log_end_offset
    if is_empty and checked and checked[0][0].last_offset >= log_end_offset:
        expected = min(expected, checked[0][0].base_offset)
    for header, _ in checked:
        if header.base_offset < expected:
            return _invalid(f"offset {header.base_offset} from the leader, expected {expected}")
        expected = header.next_offset
    return checked


def _check_each(
    batches: Buffer, config: LogConfig | None
) -> list[tuple[BatchHeader, memoryview]] | BatchRefused:
    checked: list[tuple[BatchHeader, memoryview]] = []
    try:
        for header, batch in iterate_batches(batches):
            refused = _check_crc(header, batch)
            if refused is None and config is not None:
                refused = _check_size(header, config)
            if refused is not None:
                return refused
            checked.append((header, batch))
    except CorruptBatch as fault:
        return _corrupt(str(fault))
    return checked


def _check_size(header: BatchHeader, config: LogConfig) -> BatchRefused | None:
    if header.batch_bytes > config.max_message_bytes:
        return BatchRefused(
            error=ErrorCode.MESSAGE_TOO_LARGE,
            reason=f"{header.batch_bytes} bytes are more than "
            f"max.message.bytes={config.max_message_bytes}",
        )
    if header.batch_bytes > config.segment_bytes:
        return BatchRefused(
            error=ErrorCode.RECORD_LIST_TOO_LARGE,
            reason=f"{header.batch_bytes} bytes are more than segment.bytes={config.segment_bytes}",
        )
    return None


def _check_crc(header: BatchHeader, batch: Buffer) -> BatchRefused | None:
    return None if crc_is_valid(batch) else _corrupt(f"stored checksum {header.crc} does not hold")


def _check_contents(header: BatchHeader) -> BatchRefused | None:
    if header.record_count <= 0 or header.has_offset_holes:
        return _invalid(f"{header.record_count} records for {header.last_offset_delta + 1} offsets")
    if header.is_control:
        return _invalid("a producer may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        return _invalid(f"producer {header.producer_id} without a sequence")
    if header.is_transactional and header.producer_id < 0:
        return _invalid("a transactional batch without a producer id")
    return None


def _check_timestamps(
    header: BatchHeader, batch: Buffer, config: LogConfig, now_ms: int
) -> BatchRefused | None:
    """Refuse by what the header says; the records are named where looking at them is quick."""
    if config.stamps_append_time:
        if header.is_log_append_time:
            return _timestamp("a producer may not stamp with LogAppendTime")
        return None
    refused = None
    if header.max_timestamp - now_ms > config.newest_ms:
        refused = _timestamp(f"{header.max_timestamp} is too far in the future")
    elif 0 <= header.base_timestamp < now_ms - config.oldest_ms:
        refused = _timestamp(f"{header.base_timestamp} is too far in the past")
    if refused is None or header.record_count > RECORDS_AT_ONCE:
        return refused
    payload = unpacked_at_once(batch, header)
    named = None if payload is None else _rules(config, now_ms).check_unpacked(header, payload)
    return named if named is not None and named.record_errors else refused


def _corrupt(reason: str) -> BatchRefused:
    return BatchRefused(error=ErrorCode.CORRUPT_MESSAGE, reason=reason)


def _invalid(reason: str) -> BatchRefused:
    return BatchRefused(error=ErrorCode.INVALID_RECORD, reason=reason)


def _timestamp(reason: str) -> BatchRefused:
    return BatchRefused(error=ErrorCode.INVALID_TIMESTAMP, reason=reason)


def number(
    header: BatchHeader, batch: Buffer, *, base_offset: int, leader_epoch: int, append_time_ms: int
) -> NumberedBatch:
    """Give the batch its place, and the broker's time if `append_time_ms` is not -1.

    The header is patched in a copy of its 61 bytes, the records are passed through. Offset and
    epoch lie outside the checksum; the time lies inside, so then it is computed again. A producer's
    claim of LogAppendTime is taken back where the topic says CreateTime, as Kafka does.
    """
    view = memoryview(batch)
    head = bytearray(view[:HEADER_BYTES])
    records = view[HEADER_BYTES:]
    _PLACE.pack_into(head, 0, base_offset, header.batch_bytes - LENGTH_STARTS_AT, leader_epoch)
    attributes, timestamp, crc = header.attributes, header.max_timestamp, header.crc
    if append_time_ms >= 0:
        attributes, timestamp = attributes | _LOG_APPEND_TIME, append_time_ms
    else:
        attributes &= ~_LOG_APPEND_TIME
    if (attributes, timestamp) != (header.attributes, header.max_timestamp):
        _ATTRIBUTES.pack_into(head, _ATTRIBUTES_AT, attributes)
        _TIMESTAMP.pack_into(head, _MAX_TIMESTAMP_AT, timestamp)
        crc = crc32c(records, crc32c(memoryview(head)[_ATTRIBUTES_AT:]))
        _CRC.pack_into(head, _CRC_AT, crc)
    numbered = BatchHeader(
        base_offset,
        header.batch_bytes,
        leader_epoch,
        header.magic,
        crc,
        attributes,
        header.last_offset_delta,
        header.base_timestamp,
        timestamp,
        *header[9:],
    )
    return NumberedBatch(head, records, numbered)


def number_in_place(
    view: memoryview, batch: PlainBatch, base_offset: int, leader_epoch: int
) -> RunBatch:
    """Give a plain batch its place where it lies; offset and epoch lie outside the checksum."""
    start, size = batch.start, batch.size
    _PLACE.pack_into(view, start, base_offset, size - LENGTH_STARTS_AT, leader_epoch)
    last_offset = base_offset + batch.record_count - 1
    return RunBatch(view[start : start + size], base_offset, last_offset, batch.max_timestamp)


def as_fetched(header: BatchHeader, batch: Buffer) -> NumberedBatch:
    """Take a batch as its leader numbered it."""
    view = memoryview(batch)
    return NumberedBatch(view[:HEADER_BYTES], view[HEADER_BYTES:], header)
