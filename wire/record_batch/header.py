"""The 61-byte header of a record batch: parsed, checked, rewritten; the records stay untouched.

    0           8        12       16    17    21          61
    | base      | length | leader | mag | crc | 40 bytes  | records ...
    | offset    |        | epoch  | ic  |     | under crc | under crc
                         '-- length counts from here ------------------'

Base offset and leader epoch lie outside the checksum, so a broker assigns them in place; a
forwarder changes fields under it and computes it again. Layout: Kafka's documentation,
"Message Format / Record Batch".
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from wire.compression import Compression
from wire.record_batch.checksum import crc32c, crc32c_with_head

Buffer: TypeAlias = bytes | bytearray | memoryview

HEADER_BYTES: Final = 61
MAX_BATCH_BYTES: Final = 256 * 1024 * 1024
"""A batch that claims to be larger is taken for damage. Kafka's own bound on what a producer can
send is socket.request.max.bytes, 100 MiB unless someone changed it."""

MAGIC: Final = 2
SEQUENCES: Final = 2**31
"""Sequences are int32 and begin again at 0."""
LENGTH_STARTS_AT: Final = 12
MOST_OFFSET: Final = (1 << 63) - 2
"""The last record of a log lies here at most: the log's end, one behind it, is an int64 too."""
_LEADER_EPOCH_AT: Final = 12
_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
CRC_STARTS_AT: Final = 21
_MAX_TIMESTAMP_AT: Final = 35
HEADER: Final = Struct(">qiibIhiqqqhii")
BEFORE_CRC: Final = Struct(">qiibI")
UNDER_CRC: Final = Struct(">hiqqqhii")
_LENGTH: Final = Struct(">i")
_BASE_OFFSET: Final = Struct(">q")
_LEADER_EPOCH: Final = Struct(">i")
_CRC: Final = Struct(">I")
_ATTRIBUTES: Final = Struct(">h")
_MAX_TIMESTAMP: Final = Struct(">q")

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40


class CorruptBatch(ValueError):
    """Bytes that should be a record batch are not: `reason`, found at byte `position`."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(position, reason)
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"corrupt record batch at byte {self.position}: {self.reason}"


class UnsupportedMagic(CorruptBatch):
    """A message set of Kafka before 0.11 (magic 0 or 1), or a format nobody knows."""

    def __init__(self, position: int, magic: int) -> None:
        name = f"old message format, magic {magic}" if magic in (0, 1) else f"magic {magic}"
        super().__init__(position, f"{name}; only magic {MAGIC} is read")
        self.magic = magic


class BatchHeader(NamedTuple):
    """The header of one batch. A named tuple, because one is made for every batch that passes."""

    base_offset: int
    batch_bytes: int
    """The whole batch, the first 12 bytes included (the wire's length field leaves them out)."""
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    """Milliseconds; -1 is none. With a delete horizon set, that horizon."""
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Return where the batch behind this one starts, unless there is a hole between."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> Compression:
        """Return the codec; CorruptBatch if the three bits name none."""
        try:
            return Compression(self.attributes & COMPRESSION_MASK)
        except ValueError:
            codec = self.attributes & COMPRESSION_MASK
            raise CorruptBatch(CRC_STARTS_AT, f"unknown compression {codec}") from None

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def is_log_append_time(self) -> bool:
        """Say whether max_timestamp, set by a broker, stands for every record's own timestamp."""
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def has_offset_holes(self) -> bool:
        """Say whether records are missing inside: compaction took them. Brokers refuse such."""
        return self.record_count != self.last_offset_delta + 1


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Return the header at `position`; the records behind it need not be there.

    Raises CorruptBatch for less than 61 bytes, an impossible length, count or delta, and
    UnsupportedMagic for another format.
    """
    left = len(buffer) - position
    if left > _MAGIC_AT and buffer[position + _MAGIC_AT] != MAGIC:
        raise UnsupportedMagic(position, buffer[position + _MAGIC_AT])
    if left < HEADER_BYTES:
        raise CorruptBatch(position, f"{left} bytes are less than a header")
    fields = HEADER.unpack_from(buffer, position)
    header = BatchHeader(fields[0], fields[1] + LENGTH_STARTS_AT, *fields[2:])
    if header.batch_bytes < HEADER_BYTES:
        raise CorruptBatch(position, f"length {header.batch_bytes} is less than a header")
    if header.record_count < 0 or header.last_offset_delta < 0 or header.base_offset < 0:
        raise CorruptBatch(
            position,
            f"negative count {header.record_count}, last offset delta "
            f"{header.last_offset_delta} or base offset {header.base_offset}",
        )
    if header.last_offset > MOST_OFFSET:
        raise CorruptBatch(position, f"offset {header.last_offset} is beyond any log's end")
    return header


def claims_transaction(buffer: Buffer) -> bool:
    """Say whether the first batch claims to be part of a transaction; nothing of it is checked."""
    return (
        len(buffer) > CRC_STARTS_AT + 1
        and buffer[_MAGIC_AT] == MAGIC
        and bool(buffer[CRC_STARTS_AT + 1] & TRANSACTIONAL)
    )


def iterate_batches(
    buffer: Buffer, *, max_batch_bytes: int = MAX_BATCH_BYTES
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield each whole batch with its header, as views; an incomplete tail ends it silently.

    Only the caller knows what a tail means: a Fetch answer may end inside a batch, a segment after
    a crash too. The bytes consumed are the sum of `batch_bytes`. Raises CorruptBatch where a
    length or a header cannot be. Checksums are not looked at: `crc_is_valid`.
    """
    view = memoryview(buffer)
    position = 0
    while (size := batch_size(view, position, max_batch_bytes=max_batch_bytes)) is not None:
        yield parse_header(view, position), view[position : position + size]
        position += size


def batch_size(
    view: memoryview, position: int, *, max_batch_bytes: int = MAX_BATCH_BYTES
) -> int | None:
    """Return how many bytes the batch at `position` has; None if it is cut off.

    Raises CorruptBatch where a length cannot be.
    """
    left = len(view) - position
    if left < LENGTH_STARTS_AT:
        return None
    size: int = _LENGTH.unpack_from(view, position + 8)[0] + LENGTH_STARTS_AT
    if not _MAGIC_AT < size <= max_batch_bytes:
        raise CorruptBatch(position, f"a batch cannot have {size} bytes")
    return size if size <= left else None


def crc_is_valid(batch: Buffer) -> bool:
    """Say whether the checksum of exactly one whole batch holds."""
    (expected,) = _CRC.unpack_from(batch, _CRC_AT)
    return bool(crc32c(memoryview(batch)[CRC_STARTS_AT:]) == expected)


def pack_header(header: BatchHeader, records: Buffer) -> bytes:
    """Return the 61 bytes for `header` in front of `records`, with size and CRC computed anew."""
    under_crc = UNDER_CRC.pack(*header[5:])
    return (
        BEFORE_CRC.pack(
            header.base_offset,
            HEADER_BYTES - LENGTH_STARTS_AT + len(records),
            header.partition_leader_epoch,
            MAGIC,
            crc32c(records, crc32c(under_crc)),
        )
        + under_crc
    )


def rewrite(  # noqa: PLR0913 - exactly the fields of the header that a forwarder owns
    batch: memoryview,
    *,
    base_offset: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    partition_leader_epoch: int = -1,
    is_transactional: bool = False,
) -> tuple[bytes, memoryview]:
    """Return a new header and the untouched records of one whole, parsed batch.

    Its checksum must hold: that of the result is made from it, without reading many records again.
    The delete horizon is dropped: it is the source cleaner's note of when to forget tombstones,
    and the target's log has its own.
    """
    fields = UNDER_CRC.unpack_from(batch, CRC_STARTS_AT)
    attributes = fields[0] & ~(TRANSACTIONAL | DELETE_HORIZON)
    if is_transactional:
        attributes |= TRANSACTIONAL
    under_crc = UNDER_CRC.pack(
        attributes, *fields[1:4], producer_id, producer_epoch, base_sequence, fields[7]
    )
    records = batch[HEADER_BYTES:]
    crc = crc32c_with_head(
        under_crc,
        records,
        instead_of=batch[CRC_STARTS_AT:HEADER_BYTES],
        crc=_CRC.unpack_from(batch, _CRC_AT)[0],
    )
    before_crc = BEFORE_CRC.pack(
        base_offset, len(batch) - LENGTH_STARTS_AT, partition_leader_epoch, MAGIC, crc
    )
    return before_crc + under_crc, records


def assign_offsets(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Give one whole batch its place in a log, in place; its checksum stays valid."""
    _BASE_OFFSET.pack_into(batch, 0, base_offset)
    _LEADER_EPOCH.pack_into(batch, _LEADER_EPOCH_AT, leader_epoch)


def stamp_append_time(batch: bytearray | memoryview, timestamp_ms: int) -> None:
    """Set LogAppendTime on one whole batch, in place, and redo its checksum."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, CRC_STARTS_AT)
    _ATTRIBUTES.pack_into(batch, CRC_STARTS_AT, attributes | LOG_APPEND_TIME)
    _MAX_TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_AT, timestamp_ms)
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[CRC_STARTS_AT:]))
