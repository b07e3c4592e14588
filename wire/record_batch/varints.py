"""Zigzag varints, as records are built from them (Kafka's ByteUtils, Protocol Buffers' rule)."""

from typing import Final

_INT32_BYTES: Final = 5
_INT64_BYTES: Final = 10
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1


def read_varint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return an int32 and the position behind it.

    Raises IndexError at the end of the buffer and ValueError for more than 32 bits.
    """
    raw = buffer[position]
    if raw < 0x80:
        return (raw >> 1) ^ -(raw & 1), position + 1
    second = buffer[position + 1]
    if second < 0x80:
        # Two bytes: the lengths of most records and values. The second shifts by 7 - 1.
        return ((raw & 0x7F) >> 1 | second << 6) ^ -(raw & 1), position + 2
    return _read_long(buffer, position, _INT32_BYTES)


def read_varlong(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return an int64 and the position behind it; fails as `read_varint` does."""
    raw = buffer[position]
    if raw < 0x80:
        return (raw >> 1) ^ -(raw & 1), position + 1
    return _read_long(buffer, position, _INT64_BYTES)


def _read_long(buffer: bytes | memoryview, position: int, max_bytes: int) -> tuple[int, int]:
    raw = shift = 0
    for index in range(position, position + max_bytes):
        byte = buffer[index]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> (32 if max_bytes == _INT32_BYTES else 64):
                break
            return (raw >> 1) ^ -(raw & 1), index + 1
        shift += 7
    raise ValueError(f"the number at byte {position} has more bits than its type")


def as_int64(value: int) -> int:
    """Return the sum or difference of two int64 as Java's long holds it: it wraps."""
    return value if _LEAST <= value <= _MOST else (value - _LEAST) % (1 << 64) + _LEAST


def varint(value: int) -> bytes:
    """Return `value`, an int32 or int64, as a zigzag varint."""
    if -64 <= value < 64:
        return _ONE_BYTE[value]
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    if raw < 1 << 14:
        return bytes((raw & 0x7F | 0x80, raw >> 7))
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


# Index -1 is the last entry, and so on: Python's negative indices give the negative values.
_ONE_BYTE: Final = [bytes((value << 1,)) for value in range(64)] + [
    bytes(((-value << 1) - 1,)) for value in range(-64, 0)
]
