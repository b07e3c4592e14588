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
from wire.record_batch.varints import as_int64, read_varint, read_varlong, varint

MAX_RECORDS_EACH: Final = 32
"""Of a batch of more no two fit together whose numbers take one byte."""
JOINED_BYTES: Final = 256 * 1024
JOINED_RECORDS: Final = 4_096
ONE_BYTE: Final = 64
"""Numbers from 0 to below this, and milliseconds, take one byte in a record, whatever is added."""

LEAST_RECORD: Final = 6
"""The length of attributes, time and offset alone, as a byte says it."""
_TOO_LONG: Final = 0x4001
"""Of a length as two bytes say it: odd, or going on."""
_SMALL: Final = tuple(varint(value) for value in range(JOINED_RECORDS))


class Joined(NamedTuple):
    """A joined batch whose header is still to be written."""

    batches: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    payload: memoryview
    stop: int
    """Where in the chunk the first batch begins that is not in it."""


class _Found(NamedTuple):
    """A batch that may be joined, as far as its header says."""

    start: int
    stop: int
    first: int
    """The number that its first record gets."""
    record_count: int
    first_timestamp: int
    max_timestamp: int
    crc: int
    keeps_widths: bool
    """Its records' new numbers and times take one byte, as the old ones do."""


def join_batches(
    view: memoryview, position: int, *, most_records: int, unusual: int, refused: frozenset[int]
) -> Joined | None:
    """Join the uncompressed batches of few records from `position` on; None if that is under two.

    Few are at most `most_records`; and at most MAX_RECORDS_EACH, where only single bytes change,
    which costs a fifth of what it does to make records longer.

    Ends before the first that is larger, compressed, damaged, cut off, behind a hole, of one of the
    `refused` producers, or has one of the `unusual` attributes. Timestamps are those of the
    records; a batch with LogAppendTime must be among the unusual.
    """
    most_records = min(most_records, MAX_RECORDS_EACH)
    found = _find(view, position, most_records, unusual | COMPRESSION_MASK, refused)
    if len(found) < 2:
        return None
    payload = bytearray()
    batches = count = 0
    base_timestamp, max_timestamp = found[0].first_timestamp, found[0].max_timestamp
    for each in found:
        if crc32c(view[each.start + CRC_STARTS_AT : each.stop]) != each.crc:
            break
        if not _add(payload, view, each, each.first_timestamp - base_timestamp, most_records):
            break
        batches += 1
        count += each.record_count
        max_timestamp = max(max_timestamp, each.max_timestamp)
        position = each.stop
    if batches < 2:
        return None
    return Joined(batches, count, base_timestamp, max_timestamp, memoryview(payload), position)


def _find(
    view: memoryview, position: int, most_records: int, unusual: int, refused: frozenset[int]
) -> list[_Found]:
    """Return the batches from `position` on that may be one, by their headers."""
    end = len(view)
    found: list[_Found] = []
    count = size = base = base_timestamp = 0
    while end - position >= HEADER_BYTES:
        fields = HEADER.unpack_from(view, position)
        base_offset, length, _, magic, crc, attributes, last_delta = fields[:7]
        first_timestamp, last_timestamp, writer, _, _, here = fields[7:]
        stop = position + LENGTH_STARTS_AT + length
        if not found:
            base, base_timestamp = base_offset, first_timestamp
        keeps_widths = (
            count + here <= ONE_BYTE
            and base_timestamp <= first_timestamp <= last_timestamp < base_timestamp + ONE_BYTE
        )
        if (
            not 0 < here <= (MAX_RECORDS_EACH if keeps_widths else most_records)
            or here != last_delta + 1
            or base_offset != base + count
            or attributes & unusual
            or magic != MAGIC
            or not position + HEADER_BYTES <= stop <= end
            or count + here > JOINED_RECORDS
            or size + length > JOINED_BYTES
            or writer in refused
        ):
            break
        found.append(
            _Found(position, stop, count, here, first_timestamp, last_timestamp, crc, keeps_widths)
        )
        count += here
        size += length
        position = stop
    return found


def _add(
    payload: bytearray, view: memoryview, found: _Found, later_ms: int, most_records: int
) -> bool:
    """Add the batch's records, numbered and timed anew; whether they are what the header says.

    Of the first, which stays as it is, that is not looked at: as if it went on alone.
    """
    size = len(payload)
    first, count = found.first, found.record_count
    records = found.start + HEADER_BYTES
    if found.keeps_widths:
        payload += view[records : found.stop]
        if not first or _renumber_in_place(payload, size, first, count, later_ms):
            return True
        del payload[size:]
        if count > most_records:
            return False
    parts = _renumber(view, records, found.stop, first, count, later_ms)
    if parts is None:
        return False
    payload += b"".join(parts)
    return True


def _renumber_in_place(
    payload: bytearray, position: int, first: int, count: int, later_ms: int
) -> bool:
    """Renumber the records from `position` to the end; False, and damage, if widths would change.

    Zigzag varints of one byte are twice the number; odd: it is negative; from 0x80 on: it goes on.
    """
    first, later_ms = first << 1, later_ms << 1
    lengths = stamps = wrong = 0
    try:
        for number in range(0, count << 1, 2):
            length = payload[position]
            if length & 0x80:
                position += 1
                length += (payload[position] << 7) - 0x80
            stamp = payload[position + 2] + later_ms
            lengths |= length
            stamps |= stamp
            wrong |= payload[position + 3] ^ number | (length < LEAST_RECORD)
            payload[position + 2] = stamp
            payload[position + 3] = first + number
            position += (length >> 1) + 1
    except (IndexError, ValueError):  # behind the end; a time of more than a byte
        return False
    return position == len(payload) and not (wrong or lengths & _TOO_LONG or stamps & 0x81)


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
                known_delta, stamp = time_delta, b"\x00" + _varint(as_int64(time_delta + later_ms))
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
