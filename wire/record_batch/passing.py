"""Pass plain batches on as bytes, under headers of our own: one after the other, small ones joined.

A forwarder's third of all work. The chunk kernel (`wire.kernel`) does the same in native code; this
is its reference, and does its work where it is not there.
"""

from struct import Struct
from typing import Final, NamedTuple, TypeVar

from wire.compression import Compression
from wire.record_batch.checksum import SHORT_BYTES, crc32c, crc32c_with_head
from wire.record_batch.header import (
    BEFORE_CRC,
    COMPRESSION_MASK,
    CRC_STARTS_AT,
    DELETE_HORIZON,
    HEADER_BYTES,
    LENGTH_STARTS_AT,
    MAGIC,
    SEQUENCES,
    TRANSACTIONAL,
    UNDER_CRC,
)
from wire.record_batch.joining import MAX_RECORDS_EACH, Joined, join_batches

_SEEN: Final = Struct(">qi4xbIhiqqq6xi")
"""Of a batch's header what a forwarder looks at: neither leader epoch nor epoch and sequence."""

_passed: Final = tuple.__new__
"""Makes one of all its fields, twice as fast as its own constructor: in C."""

OneT = TypeVar("OneT", bound=tuple[object, ...])


class PassingTerms(NamedTuple):
    """What plain batches are, and what becomes of them."""

    shift: int
    """A batch is plain where its base offset minus its place is this."""
    unusual: int
    """It has none of these attributes."""
    refused: frozenset[int]
    """It is of no producer with such an id."""
    join_records: int
    """The most records that joined batches have each (`join_batches`); 0 where none are joined."""
    producer_id: int
    producer_epoch: int
    arrived_ms: int


def pass_on(
    view: memoryview, position: int, source: int, place: int, terms: PassingTerms, kind: type[OneT]
) -> tuple[int, int, int, list[OneT]]:
    """Pass on the plain batches from ``position`` on, whose first record has offset ``source``.

    Return where the first begins that is not plain, the offset and place behind the last, and the
    batches: instances of ``kind``, a named tuple of place, record count, offset behind it, newest
    time, size, parts, how many batches it was, and when it arrived.

    Plain: whole, undamaged, at the offset that is expected, without holes, and within the terms.
    `parse_header`, `crc_is_valid` and `rewrite` in one.
    """
    end = len(view)
    passed: list[OneT] = []
    shift, unusual, refused, join_records, producer_id, producer_epoch, arrived_ms = terms
    most = join_records and MAX_RECORDS_EACH
    while end - position >= HEADER_BYTES:
        (
            base_offset, length, magic, crc, attributes, last_delta,
            base_timestamp, max_timestamp, writer, count,
        ) = _SEEN.unpack_from(view, position)  # fmt: skip
        stop = position + LENGTH_STARTS_AT + length
        if (
            base_offset != source
            or base_offset - place != shift
            or count != last_delta + 1
            or count <= 0
            or attributes & unusual
            or magic != MAGIC
            or not position + HEADER_BYTES <= stop <= end
            or writer in refused
            or crc32c(view[position + CRC_STARTS_AT : stop]) != crc
        ):
            break
        if count <= most and stop < end and not attributes & COMPRESSION_MASK:
            joined = join_batches(
                view,
                position,
                most_records=join_records,
                unusual=unusual,
                refused=refused,
            )
            if joined is not None:
                passed.append(_joined(joined, source, place, terms, kind))
                source += joined.record_count
                place += joined.record_count
                position = joined.stop
                continue
        under_crc = UNDER_CRC.pack(
            attributes & ~(TRANSACTIONAL | DELETE_HORIZON),
            last_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            place % SEQUENCES,
            count,
        )
        records = view[position + HEADER_BYTES : stop]
        if length < SHORT_BYTES:  # as crc32c_with_head has it: 0.2 of 2.3 us are slice and call
            crc = crc32c(records, crc32c(under_crc))
        else:
            old_head = view[position + CRC_STARTS_AT : position + HEADER_BYTES]
            crc = crc32c_with_head(under_crc, records, instead_of=old_head, crc=crc)
        # Base offset 0: with any other a broker takes the inner offsets of a compressed batch for
        # wrong and compresses it again (LogValidator), although it assigns the same ones.
        before_crc = BEFORE_CRC.pack(0, length, -1, MAGIC, crc)
        source += count
        size, parts = length + LENGTH_STARTS_AT, (before_crc + under_crc, records)
        fields = (place, count, source, max_timestamp, size, parts, 1, arrived_ms)
        passed.append(_passed(kind, fields))
        place += count
        position = stop
    return position, source, place, passed


def _joined(joined: Joined, source: int, place: int, terms: PassingTerms, kind: type[OneT]) -> OneT:
    """Return several small batches as one."""
    count, payload = joined.record_count, joined.payload
    under_crc = UNDER_CRC.pack(
        Compression.NONE,
        count - 1,
        joined.base_timestamp,
        joined.max_timestamp,
        terms.producer_id,
        terms.producer_epoch,
        place % SEQUENCES,
        count,
    )
    size = HEADER_BYTES + len(payload)
    crc = crc32c(payload, crc32c(under_crc))
    head = BEFORE_CRC.pack(0, size - LENGTH_STARTS_AT, -1, MAGIC, crc) + under_crc
    end, newest, batches = source + count, joined.max_timestamp, joined.batches
    fields = (place, count, end, newest, size, (head, payload), batches, terms.arrived_ms)
    return _passed(kind, fields)
