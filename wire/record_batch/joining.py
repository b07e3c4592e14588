"""Several small batches, one behind the other, made one: a broker's cost is per batch.

Only the first four numbers of a record change, because times and offsets count from the batch's
first record. The rest, key, value and headers, is copied as it is.
"""

from typing import Final, NamedTuple

from wire.record_batch.checksum import crc32c
from wire.record_batch.header import (
    COMPRESSION_MASK,
    CRC_STARTS_AT,
    HEADER,
    HEADER_BYTES,
    LENGTH_STARTS_AT,
    MAGIC,
)
from wire.record_batch.varints import read_varint, read_varlong, varint

MAX_RECORDS_EACH: Final = 64
"""In a batch of more a record's number may take two bytes, and joining saves nothing by then."""
JOINED_BYTES: Final = 256 * 1024
JOINED_RECORDS: Final = 4_096

_SMALL: Final = tuple(varint(value) for value in range(JOINED_RECORDS))


class Joined(NamedTuple):
    """What a header is to be put before."""

    batches: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    payload: bytes
    stop: int
    """Where in the chunk the first batch begins that is not in it."""


def join_batches(
    view: memoryview, position: int, *, most_records: int, unusual: int, refused: frozenset[int]
) -> Joined | None:
    """Join the uncompressed batches of few records from `position` on; None if that is under two.

    Few are at most `most_records`, of which MAX_RECORDS_EACH count.

    Ends before the first that is larger, compressed, damaged, cut off, behind a hole, of one of the
    `refused` producers, or has one of the `unusual` attributes. Timestamps are those of the
    records; a batch with LogAppendTime must be among the unusual.
    """
    end = len(view)
    unusual |= COMPRESSION_MASK
    most_records = min(most_records, MAX_RECORDS_EACH)
    parts: list[bytes | memoryview] = []
    batches = count = size = base = 0
    base_timestamp = max_timestamp = 0
    while end - position >= HEADER_BYTES:
        fields = HEADER.unpack_from(view, position)
        base_offset, length, _, magic, crc, attributes, last_delta = fields[:7]
        first_timestamp, last_timestamp, writer, _, _, here = fields[7:]
        stop = position + LENGTH_STARTS_AT + length
        if not batches:
            base, base_timestamp, max_timestamp = base_offset, first_timestamp, last_timestamp
        if (
            not 0 < here <= most_records
            or here != last_delta + 1
            or base_offset != base + count
            or attributes & unusual
            or magic != MAGIC
            or not position + HEADER_BYTES <= stop <= end
            or count + here > JOINED_RECORDS
            or size + length > JOINED_BYTES
            or writer in refused
            or crc32c(view[position + CRC_STARTS_AT : stop]) != crc
        ):
            break
        renumbered = _renumber(
            view, position + HEADER_BYTES, stop, count, here, first_timestamp - base_timestamp
        )
        if renumbered is None:
            break
        parts += renumbered
        batches += 1
        count += here
        size += length
        max_timestamp = max(max_timestamp, last_timestamp)
        position = stop
    if batches < 2:
        return None
    return Joined(batches, count, base_timestamp, max_timestamp, b"".join(parts), position)


def _renumber(
    view: memoryview, position: int, end: int, first: int, count: int, later_ms: int
) -> list[bytes | memoryview] | None:
    """Return the records between position and end, numbered from `first`, their times moved.

    None if they are not what the header says.
    """
    parts: list[bytes | memoryview] = []
    known_delta, stamp = None, b""
    try:
        for place in range(count):
            raw = view[position]
            if raw < 0x80:
                length, position = (raw >> 1) ^ -(raw & 1), position + 1
            elif (second := view[position + 1]) < 0x80:  # as most are: a call would cost a tenth
                length = ((raw & 0x7F) >> 1 | second << 6) ^ -(raw & 1)
                position += 2
            else:
                length, position = read_varint(view, position)
            record_end = position + length
            if view[position]:
                return None
            raw = view[position + 1]
            if raw < 0x80:
                time_delta, position = (raw >> 1) ^ -(raw & 1), position + 2
            else:
                time_delta, position = read_varlong(view, position + 1)
            # A delta that is not one byte cannot be right here: batches are of few records.
            if view[position] != place << 1 or not position < record_end <= end:
                return None
            position += 1
            if time_delta != known_delta:
                known_delta, stamp = time_delta, b"\x00" + _varint(time_delta + later_ms)
            number = _SMALL[first + place]
            length = len(stamp) + len(number) + record_end - position
            size = _SMALL[length] if length < JOINED_RECORDS else varint(length)
            parts.append(size + stamp + number)
            parts.append(view[position:record_end])
            position = record_end
    except (IndexError, ValueError):
        return None
    return parts if position == end else None


def _varint(value: int) -> bytes:
    return _SMALL[value] if 0 <= value < JOINED_RECORDS else varint(value)
