"""A batch's records, of which only key, place and presence of a value are looked at. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from broker.fairness import UNPACKED_AT_ONCE_BYTES
from wire.compression import Compression
from wire.record_batch import BatchHeader, Buffer, CorruptBatch, records_payload
from wire.record_batch.varints import read_varint, read_varlong


def unpacked_at_once(batch: Buffer, header: BatchHeader) -> bytes | None:
    """Return the batch's records if unpacking them takes a moment only.

    None for more than UNPACKED_AT_ONCE_BYTES, which nothing in the batch tells of, and for what is
    damaged: whoever unpacks it beside the loop finds out which.
    """
    if header.compression is Compression.NONE:
        return records_payload(batch, header)
    try:
        return records_payload(batch, header, limit_bytes=UNPACKED_AT_ONCE_BYTES)
    except CorruptBatch:
        return None


class ScannedRecord(NamedTuple):
    """One record in a payload of decompressed records: bytes `start` to `end`."""

    start: int
    end: int
    tail: int
    """Where key, value and headers begin; before it are length, attributes and both deltas."""
    time_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def scan_records(payload: bytes, count: int) -> Iterator[ScannedRecord]:
    """Yield `count` records. Raises CorruptBatch where there is none, and for bytes left over."""
    position = 0
    for _ in range(count):
        try:
            record = _scan(payload, position)
        except (IndexError, ValueError) as fault:
            raise CorruptBatch(position, "a record is damaged or missing") from fault
        if not record.tail < record.end <= len(payload):
            raise CorruptBatch(position, f"a record cannot end at {record.end}")
        yield record
        position = record.end
    if position != len(payload):
        raise CorruptBatch(position, f"{len(payload) - position} bytes follow the last record")


def _scan(payload: bytes, start: int) -> ScannedRecord:
    length, position = read_varint(payload, start)
    end = position + length
    time_delta, position = read_varlong(payload, position + 1)
    offset_delta, tail = read_varint(payload, position)
    key_length, position = read_varint(payload, tail)
    key = None
    if key_length >= 0:
        key = payload[position : position + key_length]
        position += key_length
    value_length, _ = read_varint(payload, position)
    return ScannedRecord(start, end, tail, time_delta, offset_delta, key, value_length >= 0)
