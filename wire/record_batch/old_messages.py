"""Messages of Kafka before 0.11, magic 0 and 1, which brokers up to 3.9 may still hold.

    offset | size  | crc   | magic | attributes | timestamp   | key   | value
    int64    int32   int32   int8    int8         int64, 1 only  int32 length and bytes, -1 is null

A compressed message's value holds messages in its turn (KIP-31): in magic 1 they are numbered from
0 and the outer offset is the last one's; in magic 0 they have their own. The checksum is zlib's.
The LZ4 frames of magic 0 carry a wrong checksum of their header (KAFKA-3160): it is put right.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Final, NamedTuple

from wire.compression import Compression, DecompressionFailed, decompress
from wire.record_batch.building import encode_tail
from wire.record_batch.header import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME,
    MOST_OFFSET,
    CorruptBatch,
)
from wire.record_batch.reading import MAX_RECORDS_BYTES, Record, RecordHead

OLD_MAGICS: Final = (0, 1)
MAGIC_AT: Final = 16
NO_TIMESTAMP: Final = -1

_LZ4_FLAGS_AT: Final = 4
_LZ4_HAS_SIZE: Final = 8
_XXH: Final = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
"""The five primes of the 32-bit xxHash."""
_OUTSIDE: Final = Struct(">qi")
_INSIDE: Final = Struct(">Ibb")
_TIMESTAMP: Final = Struct(">q")
_LENGTH: Final = Struct(">i")


class OldMessages(NamedTuple):
    """Some messages in a row, as records that a batch of today can hold."""

    heads: list[RecordHead]
    compression: Compression
    next_offset: int
    stop: int
    """Where the next message or batch begins."""


class _Message(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp_ms: int
    key: memoryview | None
    value: memoryview | None
    stop: int


def read_old_messages(view: memoryview, position: int, limit_bytes: int) -> OldMessages:
    """Return the messages from `position`, the first of which is there, up to so many bytes.

    A compressed one is returned alone. Raises CorruptBatch if already the first is damaged.
    """
    first = _message_at(view, position)
    codec = _codec(first)
    if codec is not Compression.NONE:
        return OldMessages(list(_unpacked(first, codec)), codec, first.offset + 1, first.stop)
    last, heads = first, [_head(first, first.offset, first.timestamp_ms)]
    while last.stop - position < limit_bytes and _is_whole(view, last.stop):
        try:
            message = _message_at(view, last.stop)
        except CorruptBatch:
            break
        if _codec(message) is not Compression.NONE:
            break
        heads.append(_head(message, message.offset, message.timestamp_ms))
        last = message
    return OldMessages(heads, Compression.NONE, last.offset + 1, last.stop)


def _unpacked(outer: _Message, codec: Compression) -> Iterator[RecordHead]:
    """Yield what is in a compressed message, by the offsets and times that count."""
    if outer.value is None:
        raise CorruptBatch(0, f"the compressed message at offset {outer.offset} is empty")
    packed = outer.value
    if codec is Compression.LZ4 and not outer.magic:
        packed = _with_right_checksum(packed)
    try:
        payload = memoryview(bytes(decompress(codec, packed, limit_bytes=MAX_RECORDS_BYTES)))
    except DecompressionFailed as fault:
        raise CorruptBatch(0, f"the message at offset {outer.offset}: {fault}") from fault
    inner: list[_Message] = []
    position = 0
    while position < len(payload):
        if not _is_whole(payload, position):
            raise CorruptBatch(position, f"the message at offset {outer.offset} ends too early")
        inner.append(_message_at(payload, position))
        position = inner[-1].stop
    if not inner:
        raise CorruptBatch(0, f"nothing is in the message at offset {outer.offset}")
    shift = outer.offset - inner[-1].offset if outer.magic else 0
    for message in inner:
        is_stamped = outer.attributes & LOG_APPEND_TIME
        time_ms = outer.timestamp_ms if is_stamped else message.timestamp_ms
        yield _head(message, message.offset + shift, time_ms)


def _with_right_checksum(frame: memoryview) -> memoryview:
    """Return an LZ4 frame whose header's checksum does not cover the frame's magic number."""
    right = bytearray(frame)
    if len(right) > _LZ4_FLAGS_AT:
        flags = right[_LZ4_FLAGS_AT]
        place = _LZ4_FLAGS_AT + 2 + (8 if flags & _LZ4_HAS_SIZE else 0)
        if place < len(right):
            right[place] = _xxh32(right[_LZ4_FLAGS_AT:place]) >> 8 & 0xFF
    return memoryview(right)


def _xxh32(data: bytes | bytearray) -> int:
    """Return the xxHash of less than 16 bytes, seed 0."""
    value = _XXH[4] + len(data)
    whole = len(data) // 4 * 4
    for place in range(0, whole, 4):
        value += int.from_bytes(data[place : place + 4], "little") * _XXH[2]
        value = _rotated(value, 17) * _XXH[3]
    for byte in data[whole:]:
        value = _rotated(value + byte * _XXH[4], 11) * _XXH[0]
    value &= 0xFFFFFFFF
    value = (value ^ value >> 15) * _XXH[1] & 0xFFFFFFFF
    value = (value ^ value >> 13) * _XXH[2] & 0xFFFFFFFF
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return value << bits | value >> 32 - bits


def _is_whole(view: memoryview, position: int) -> bool:
    """Say whether a message of the old kind is there with all its bytes."""
    if len(view) - position <= MAGIC_AT or view[position + MAGIC_AT] not in OLD_MAGICS:
        return False
    _, size = _OUTSIDE.unpack_from(view, position)
    return bool(0 <= size <= len(view) - position - _OUTSIDE.size)


def _message_at(view: memoryview, position: int) -> _Message:
    """Return the whole message at `position`; CorruptBatch if it is damaged."""
    offset, size = _OUTSIDE.unpack_from(view, position)
    if not 0 <= offset <= MOST_OFFSET:
        raise CorruptBatch(position, f"a message cannot have offset {offset}")
    start = position + _OUTSIDE.size
    try:
        return _message(view[start : start + size], offset, start + size)
    except (StructError, ValueError) as fault:
        raise CorruptBatch(position, f"message at offset {offset}: {fault}") from fault


def _message(body: memoryview, offset: int, stop: int) -> _Message:
    crc, magic, attributes = _INSIDE.unpack_from(body)
    if zlib.crc32(body[_LENGTH.size :]) != crc:
        raise ValueError("its checksum is wrong")
    position, timestamp_ms = _INSIDE.size, NO_TIMESTAMP
    if magic:
        (timestamp_ms,) = _TIMESTAMP.unpack_from(body, position)
        position += _TIMESTAMP.size
    key, position = _bytes(body, position)
    value, position = _bytes(body, position)
    if position != len(body):
        raise ValueError(f"it ends at {position} of {len(body)} bytes")
    return _Message(offset, magic, attributes, timestamp_ms, key, value, stop)


def _bytes(body: memoryview, position: int) -> tuple[memoryview | None, int]:
    (length,) = _LENGTH.unpack_from(body, position)
    position += _LENGTH.size
    if length < 0:
        return None, position
    return body[position : position + length], position + length


def _codec(message: _Message) -> Compression:
    try:
        return Compression(message.attributes & COMPRESSION_MASK)
    except ValueError as fault:
        raise CorruptBatch(0, f"message at offset {message.offset}: {fault}") from fault


def _head(message: _Message, offset: int, timestamp_ms: int) -> RecordHead:
    key = None if message.key is None else bytes(message.key)
    value = None if message.value is None else bytes(message.value)
    return RecordHead(offset, timestamp_ms, encode_tail(Record(offset, timestamp_ms, key, value)))
