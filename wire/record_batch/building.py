"""New batches: out of records, or out of record heads whose tails stay encoded."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypedDict, Unpack

from wire.compression import Compression, compress
from wire.record_batch.header import CONTROL, TRANSACTIONAL, BatchHeader, pack_header
from wire.record_batch.reading import Record, RecordHead
from wire.record_batch.varints import as_int64, varint


class BatchFields(TypedDict, total=False):
    """The fields that a caller may choose for a new batch; each has a default."""

    base_offset: int
    """Where the first record goes, whatever its own offset says; 0."""
    compression: Compression
    producer_id: int
    producer_epoch: int
    base_sequence: int
    partition_leader_epoch: int
    is_transactional: bool
    is_control: bool
    last_offset_delta: int
    """At least the last record's; more keeps a hole behind it, as compaction does."""


def build_batch(records: Iterable[Record], **fields: Unpack[BatchFields]) -> bytes:
    """Return one batch of `records`, at least one, whose offsets ascend; ValueError otherwise.

    Distances between offsets are kept, holes too; the place of the first is `base_offset`.
    """
    heads = [
        RecordHead(record.offset, record.timestamp_ms, encode_tail(record)) for record in records
    ]
    return _build(heads, [head.offset - heads[0].offset for head in heads], fields)


def build_batch_from_heads(heads: Sequence[RecordHead], **fields: Unpack[BatchFields]) -> bytes:
    """Return one batch of the same records numbered without holes, as brokers demand of Produce.

    LogAppendTime becomes each record's own timestamp. ValueError without any record.
    """
    return _build(heads, range(len(heads)), fields)


def _build(heads: Sequence[RecordHead], deltas: Sequence[int], fields: BatchFields) -> bytes:
    if not heads:
        raise ValueError("a batch needs at least one record")
    if any(later <= earlier for earlier, later in pairwise(deltas)):
        raise ValueError("the offsets of a batch's records must ascend")
    base_timestamp = heads[0].timestamp_ms
    parts = []
    for head, delta in zip(heads, deltas, strict=True):
        body = (
            b"\x00"
            + varint(as_int64(head.timestamp_ms - base_timestamp))
            + varint(delta)
            + head.tail
        )
        parts.append(varint(len(body)) + body)
    codec = fields.get("compression", Compression.NONE)
    payload = compress(codec, b"".join(parts))
    attributes = int(codec)
    if fields.get("is_transactional", False):
        attributes |= TRANSACTIONAL
    if fields.get("is_control", False):
        attributes |= CONTROL
    header = BatchHeader(
        base_offset=fields.get("base_offset", 0),
        batch_bytes=0,
        partition_leader_epoch=fields.get("partition_leader_epoch", -1),
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=fields.get("last_offset_delta", deltas[-1]),
        base_timestamp=base_timestamp,
        max_timestamp=max(head.timestamp_ms for head in heads),
        producer_id=fields.get("producer_id", -1),
        producer_epoch=fields.get("producer_epoch", -1),
        base_sequence=fields.get("base_sequence", -1),
        record_count=len(heads),
    )
    return pack_header(header, payload) + payload


def encode_tail(record: Record) -> bytes:
    """Return key, value and headers as they stand behind a record's numbers."""
    if not record.headers:
        return _bytes(record.key) + _bytes(record.value) + b"\x00"
    parts = [_bytes(record.key), _bytes(record.value), varint(len(record.headers))]
    for name, value in record.headers:
        parts.append(_bytes(name.encode(errors="surrogateescape")))
        parts.append(_bytes(value))
    return b"".join(parts)


def _bytes(value: bytes | None) -> bytes:
    return b"\x01" if value is None else varint(len(value)) + value
