"""Records taken out of a batch, one after the other, only when somebody asks for them.

    length | attributes | timestamp delta | offset delta | key | value | headers
    varint   int8         varlong           varint       '-- the tail, kept as bytes --'

Three ways: `iterate_records` decodes everything; `iterate_record_heads` parses the first four
numbers and keeps the tail as bytes, which is all that renumbering a batch with holes needs;
`times_and_tails` leaves out the offsets too, and makes no object for a record.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from wire.compression import Compression, DecompressionFailed, decompress
from wire.record_batch.header import HEADER_BYTES, BatchHeader, Buffer, CorruptBatch, parse_header
from wire.record_batch.varints import as_int64, read_varint, read_varlong

MAX_RECORDS_BYTES: Final = 64 * 1024 * 1024
"""What the records of one batch may take decompressed, unless a caller says otherwise."""

_LEAST_MS: Final = -(1 << 62)
_MOST_MS: Final = 1 << 62
"""Between these no sum has wrapped: nearly all times, and a call for each would cost more."""


class Record(NamedTuple):
    """One record. A named tuple, because millions are made."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """Keys that are no UTF-8 carry surrogate escapes and are written back as they were."""


def is_same_record(one: Record, other: Record, *, is_stamped: bool) -> bool:
    """Say whether two logs hold the same record, wherever it lies in each.

    `is_stamped`: a broker has stamped one of them with its own time, so times say nothing.
    """
    is_same_time = is_stamped or one.timestamp_ms == other.timestamp_ms
    return is_same_time and one[2:] == other[2:]


class RecordHead(NamedTuple):
    """One record of which only the place and time are known."""

    offset: int
    timestamp_ms: int
    tail: bytes
    """Key, value and headers, still encoded."""


def records_payload(
    batch: Buffer, header: BatchHeader | None = None, *, limit_bytes: int = MAX_RECORDS_BYTES
) -> bytes:
    """Return the decompressed records of one whole batch; CorruptBatch if damaged or too large."""
    header = header or parse_header(batch)
    payload = memoryview(batch)[HEADER_BYTES:]
    codec = header.compression
    if codec is Compression.NONE:
        return bytes(payload)
    try:
        return bytes(decompress(codec, payload, limit_bytes=limit_bytes))
    except DecompressionFailed as fault:
        raise CorruptBatch(HEADER_BYTES, str(fault)) from fault


def iterate_records(batch: Buffer, *, limit_bytes: int = MAX_RECORDS_BYTES) -> Iterator[Record]:
    """Yield the records of one whole batch, control records too, in order.

    A LogAppendTime batch gives its max_timestamp to every record. Raises CorruptBatch, at the
    byte of the (decompressed) records where they break, also when there are more or fewer than
    the header counts. Nothing of the checksum: `crc_is_valid`.
    """
    header = parse_header(batch)
    payload = records_payload(batch, header, limit_bytes=limit_bytes)
    append_time_ms = header.max_timestamp if header.is_log_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    position, end = 0, len(payload)
    for _ in range(header.record_count):
        start = position
        try:
            record_end, time_delta, offset_delta, position = _head(payload, position)
            key, value, headers, position = _tail(payload, position)
        except (IndexError, ValueError) as fault:
            raise CorruptBatch(start, "a record is damaged or missing") from fault
        if position != record_end or record_end > end:
            raise CorruptBatch(start, f"a record ends at {position}, not at {record_end}")
        timestamp_ms = append_time_ms
        if timestamp_ms is None:
            timestamp_ms = base_timestamp + time_delta
            if not _LEAST_MS <= timestamp_ms <= _MOST_MS:
                timestamp_ms = as_int64(timestamp_ms)
        yield Record(base_offset + offset_delta, timestamp_ms, key, value, headers)
    if position != end:
        raise CorruptBatch(position, f"{end - position} bytes follow the last counted record")


def iterate_record_heads(
    batch: Buffer, *, limit_bytes: int = MAX_RECORDS_BYTES
) -> Iterator[RecordHead]:
    """Yield place, time and raw tail of each record of one whole batch; fails as the above does.

    The tails' insides are not checked.
    """
    header = parse_header(batch)
    payload = records_payload(batch, header, limit_bytes=limit_bytes)
    append_time_ms = header.max_timestamp if header.is_log_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    position, end = 0, len(payload)
    for _ in range(header.record_count):
        start = position
        try:
            position, time_delta, offset_delta, tail_start = _head(payload, position)
        except (IndexError, ValueError) as fault:
            raise CorruptBatch(start, "a record's head is damaged or missing") from fault
        if not tail_start <= position <= end:
            raise CorruptBatch(start, f"a record from {tail_start} cannot end at {position}")
        timestamp_ms = append_time_ms
        if timestamp_ms is None:
            timestamp_ms = base_timestamp + time_delta
            if not _LEAST_MS <= timestamp_ms <= _MOST_MS:
                timestamp_ms = as_int64(timestamp_ms)
        yield RecordHead(base_offset + offset_delta, timestamp_ms, payload[tail_start:position])
    if position != end:
        raise CorruptBatch(position, f"{end - position} bytes follow the last counted record")


def times_and_tails(  # noqa: C901, PLR0912 - a call for each number would double its time
    batch: Buffer, header: BatchHeader | None = None, *, limit_bytes: int = MAX_RECORDS_BYTES
) -> tuple[list[int], list[bytes]]:
    """Return the time in ms and the raw tail of each record of one whole batch, in order.

    For batches without holes, whose records lie one behind the other whatever they claim. A third
    of the time of `iterate_record_heads`, and fails as that does.
    """
    header = header or parse_header(batch)
    payload = records_payload(batch, header, limit_bytes=limit_bytes)
    base_timestamp = header.base_timestamp
    times: list[int] = []
    tails: list[bytes] = []
    position, size = 0, len(payload)
    for _ in range(header.record_count):
        start = position
        try:
            raw = payload[position]
            if raw < 0x80:
                end = position + 1 + ((raw >> 1) ^ -(raw & 1))
                position += 2
            elif (second := payload[position + 1]) < 0x80:
                end = position + 2 + (((raw & 0x7F) >> 1 | second << 6) ^ -(raw & 1))
                position += 3
            else:
                length, position = read_varint(payload, position)
                end, position = position + length, position + 1
            raw = payload[position]
            if raw < 0x80:
                times.append(base_timestamp + ((raw >> 1) ^ -(raw & 1)))
                position += 1
            elif (second := payload[position + 1]) < 0x80:
                delta = ((raw & 0x7F) >> 1 | second << 6) ^ -(raw & 1)
                times.append(base_timestamp + delta)
                position += 2
            else:
                delta, position = read_varlong(payload, position)
                times.append(base_timestamp + delta)
            if payload[position] < 0x80:
                position += 1
            elif payload[position + 1] < 0x80:
                position += 2
            else:
                _, position = read_varint(payload, position)
        except (IndexError, ValueError) as fault:
            raise CorruptBatch(start, "a record's head is damaged or missing") from fault
        if not position <= end <= size:
            raise CorruptBatch(start, f"a record from {position} cannot end at {end}")
        tails.append(payload[position:end])
        position = end
    if position != size:
        raise CorruptBatch(position, f"{size - position} bytes follow the last counted record")
    if header.is_log_append_time:
        return [header.max_timestamp] * len(tails), tails
    if times and (min(times) < _LEAST_MS or max(times) > _MOST_MS):
        times = list(map(as_int64, times))
    return times, tails


def _head(payload: bytes, position: int) -> tuple[int, int, int, int]:
    """Return (record end, timestamp delta, offset delta, where the tail starts).

    Numbers of one byte, nearly all of them, are decoded on the spot: a call would cost more.
    """
    raw = payload[position]
    if raw < 0x80:
        length, position = (raw >> 1) ^ -(raw & 1), position + 1
    else:
        length, position = read_varint(payload, position)
    record_end = position + length
    raw = payload[position + 1]
    if raw < 0x80:
        time_delta, position = (raw >> 1) ^ -(raw & 1), position + 2
    else:
        time_delta, position = read_varlong(payload, position + 1)
    raw = payload[position]
    if raw < 0x80:
        return record_end, time_delta, (raw >> 1) ^ -(raw & 1), position + 1
    offset_delta, position = read_varint(payload, position)
    return record_end, time_delta, offset_delta, position


def _tail(
    payload: bytes, position: int
) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]:
    """Return (key, value, headers, end). The caller compares the end with the record's.

    A length that points behind the payload gives a shorter slice and an end that cannot match.
    """
    key, position = _bytes(payload, position)
    value, position = _bytes(payload, position)
    if payload[position] == 0:
        return key, value, (), position + 1
    count, position = read_varint(payload, position)
    if count < 0:
        raise ValueError("a negative count of headers")
    headers = []
    for _ in range(count):
        name, position = _bytes(payload, position)
        if name is None:
            raise ValueError("a header without a key")
        header_value, position = _bytes(payload, position)
        headers.append((name.decode(errors="surrogateescape"), header_value))
    return key, value, tuple(headers), position


def _bytes(payload: bytes, position: int) -> tuple[bytes | None, int]:
    raw = payload[position]
    if raw < 0x80:
        if raw & 1:
            return None, position + 1
        end = position + 1 + (raw >> 1)
        return payload[position + 1 : end], end
    length, position = read_varint(payload, position)
    if length < 0:
        return None, position
    return payload[position : position + length], position + length
