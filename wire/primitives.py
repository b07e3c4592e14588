"""The protocol's primitive types as pairs: `read_x` takes bytes apart, `pack_x` makes them.

Every `read_x(buffer, position)` returns the value and the position behind it, and raises
MalformedMessage if the value does not end within the buffer: no length that a peer sends is
trusted before it has been compared with what is left. Numbers are big endian. In the compact forms
a length is an unsigned varint of the length plus one, where zero stands for null (KIP-482).
"""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

Buffer: TypeAlias = bytes | bytearray | memoryview
Value = TypeVar("Value")
Read: TypeAlias = Callable[[memoryview, int], tuple[Value, int]]
Pack: TypeAlias = Callable[[Value], bytes]

ZERO_UUID: Final = UUID(int=0)
UUID_BYTES: Final = 16
MAX_INT16: Final = 2**15 - 1
MAX_VARINT_BYTES: Final = 5
MOST_TAGGED_FIELDS: Final = 1_000
"""In one section. None in use has ten, and a frame has room for 50 million empty ones."""


class MalformedMessage(ValueError):
    """Bytes that are not what they should be: truncated, or with a length that cannot be.

    `where` names class and field once they are known; `position` counts bytes from the start of
    the buffer that was decoded.
    """

    def __init__(self, reason: str, *, position: int, where: str = "") -> None:
        self.reason = reason
        self.position = position
        self.where = where
        super().__init__(f"{where or 'message'}: {reason} at byte {position}")


class Reader:
    """A position that moves over a buffer: `reader.take(read_int32)` returns the next int32."""

    __slots__ = ("buffer", "position")

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        self.buffer = memoryview(buffer)
        self.position = position

    def take(self, read: Callable[[memoryview, int], tuple[Value, int]]) -> Value:
        """Return the next value and step over it; raises MalformedMessage and then stays."""
        value, self.position = read(self.buffer, self.position)
        return value

    @property
    def remaining(self) -> int:
        """How many bytes are left."""
        return len(self.buffer) - self.position


# Numbers of fixed size.

pack_int8: Final[Pack[int]] = Struct(">b").pack
pack_int16: Final[Pack[int]] = Struct(">h").pack
pack_uint16: Final[Pack[int]] = Struct(">H").pack
pack_int32: Final[Pack[int]] = Struct(">i").pack
pack_uint32: Final[Pack[int]] = Struct(">I").pack
pack_int64: Final[Pack[int]] = Struct(">q").pack
pack_float64: Final[Pack[float]] = Struct(">d").pack
pack_boolean: Final[Pack[bool]] = Struct(">?").pack


def _fixed(layout: str) -> Read[Any]:
    unpack = Struct(layout).unpack_from
    size = Struct(layout).size

    def read(buffer: memoryview, position: int) -> tuple[Any, int]:
        try:
            return unpack(buffer, position)[0], position + size
        except StructError:
            raise truncated(size, buffer, position) from None

    return read


def truncated(needed: int, buffer: memoryview, position: int) -> MalformedMessage:
    """Return the fault of a value that needs more bytes than are left."""
    left = max(len(buffer) - position, 0)
    return MalformedMessage(f"needs {needed} bytes, {left} are left", position=position)


read_int8: Final[Read[int]] = _fixed(">b")
read_int16: Final[Read[int]] = _fixed(">h")
read_uint16: Final[Read[int]] = _fixed(">H")
read_int32: Final[Read[int]] = _fixed(">i")
read_uint32: Final[Read[int]] = _fixed(">I")
read_int64: Final[Read[int]] = _fixed(">q")
read_float64: Final[Read[float]] = _fixed(">d")
read_boolean: Final[Read[bool]] = _fixed(">?")


@lru_cache(maxsize=4096)
def _uuid_of(raw: bytes) -> UUID:
    # Building a UUID costs as much as the rest of a small struct, and the same few topics recur.
    return UUID(bytes=raw)


def read_uuid(buffer: memoryview, position: int) -> tuple[UUID, int]:
    """Read 16 bytes, big endian."""
    end = position + UUID_BYTES
    if end > len(buffer):
        raise truncated(UUID_BYTES, buffer, position)
    return _uuid_of(bytes(buffer[position:end])), end


def pack_uuid(value: UUID) -> bytes:
    """Pack as 16 bytes, big endian."""
    return value.bytes


# Numbers of variable size, 7 bits a byte, lowest first.


def read_unsigned_varint(buffer: memoryview, position: int) -> tuple[int, int]:
    """Read an unsigned number of at most 32 bits."""
    try:
        first = buffer[position]
    except IndexError:
        raise truncated(1, buffer, position) from None
    if first < 0x80:
        return first, position + 1
    return _read_long_varint(buffer, position)


def _read_long_varint(buffer: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(buffer[position : position + MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >> 32:
                raise MalformedMessage("varint exceeds 32 bits", position=position)
            return value, position + index + 1
    if len(buffer) - position < MAX_VARINT_BYTES:
        raise MalformedMessage("varint is cut off", position=position)
    raise MalformedMessage(f"varint is longer than {MAX_VARINT_BYTES} bytes", position=position)


_SHORT_VARINTS: Final = tuple(bytes([value]) for value in range(0x80))


def pack_unsigned_varint(value: int) -> bytes:
    """Pack a number that is not negative; the caller sees to its having 32 or 64 bits."""
    if 0 <= value < 0x80:
        return _SHORT_VARINTS[value]
    if value < 0:
        raise ValueError(f"unsigned varint of {value}")
    packed = bytearray()
    while value >= 0x80:
        packed.append((value & 0x7F) | 0x80)
        value >>= 7
    packed.append(value)
    return bytes(packed)


# Lengths. All readers of something long return None for null; `_not_null` turns that into a fault.


def read_int16_length(buffer: memoryview, position: int) -> tuple[int, int]:
    """Read the length of a string: an int16, -1 for null."""
    return _sound(read_int16(buffer, position), position)


def read_int32_length(buffer: memoryview, position: int) -> tuple[int, int]:
    """Read the length of bytes or the count of an array: an int32, -1 for null."""
    return _sound(read_int32(buffer, position), position)


def read_compact_length(buffer: memoryview, position: int) -> tuple[int, int]:
    """Read a length or count in the compact form; null is returned as -1."""
    value, end = read_unsigned_varint(buffer, position)
    return value - 1, end


def pack_compact_length(value: int) -> bytes:
    """Pack a length or count in the compact form, -1 for null."""
    return pack_unsigned_varint(value + 1)


def _sound(length_and_end: tuple[int, int], position: int) -> tuple[int, int]:
    if length_and_end[0] < -1:
        raise MalformedMessage(f"length {length_and_end[0]}", position=position)
    return length_and_end


def read_view(buffer: memoryview, position: int, length: int) -> tuple[memoryview, int]:
    """Return a view of `length` bytes; raises MalformedMessage if there are fewer."""
    end = position + length
    if end > len(buffer):
        raise truncated(length, buffer, position)
    return buffer[position:end], end


# Strings and bytes.


def _text(read_length: Read[int]) -> tuple[Read[str], Read[str | None]]:
    def read_nullable(buffer: memoryview, position: int) -> tuple[str | None, int]:
        length, start = read_length(buffer, position)
        if length < 0:
            return None, start
        end = start + length
        if end > len(buffer):
            raise truncated(length, buffer, start)
        try:
            return str(buffer[start:end], "utf-8"), end
        except UnicodeDecodeError as fault:
            raise MalformedMessage(f"not UTF-8: {fault.reason}", position=start) from None

    return _not_null(read_nullable), read_nullable


def _raw(read_length: Read[int]) -> tuple[Read[bytes], Read[bytes | None]]:
    def read_nullable(buffer: memoryview, position: int) -> tuple[bytes | None, int]:
        length, start = read_length(buffer, position)
        if length < 0:
            return None, start
        view, end = read_view(buffer, start, length)
        return bytes(view), end

    return _not_null(read_nullable), read_nullable


def _not_null(read_nullable: Read[Value | None]) -> Read[Value]:
    def read(buffer: memoryview, position: int) -> tuple[Value, int]:
        value, end = read_nullable(buffer, position)
        if value is None:
            raise MalformedMessage("null where null is not allowed", position=position)
        return value, end

    return read


read_string, read_nullable_string = _text(read_int16_length)
read_compact_string, read_compact_nullable_string = _text(read_compact_length)
read_bytes, read_nullable_bytes = _raw(read_int32_length)
read_compact_bytes, read_compact_nullable_bytes = _raw(read_compact_length)

_NULL_INT16: Final = pack_int16(-1)
_NULL_INT32: Final = pack_int32(-1)
_COMPACT_NULL: Final = b"\x00"


def pack_string(value: str) -> bytes:
    """Pack as int16 length and UTF-8; raises ValueError beyond 32,767 bytes."""
    raw = value.encode()
    if len(raw) > MAX_INT16:
        raise ValueError(f"a string of {len(raw)} bytes does not fit its int16 length")
    return pack_int16(len(raw)) + raw


def pack_nullable_string(value: str | None) -> bytes:
    """Pack as `pack_string` does, null as length -1."""
    return _NULL_INT16 if value is None else pack_string(value)


def pack_compact_string(value: str) -> bytes:
    """Pack as unsigned varint of length + 1 and UTF-8."""
    raw = value.encode()
    return pack_unsigned_varint(len(raw) + 1) + raw


def pack_compact_nullable_string(value: str | None) -> bytes:
    """Pack as `pack_compact_string` does, null as a zero."""
    return _COMPACT_NULL if value is None else pack_compact_string(value)


def pack_bytes(value: Buffer) -> bytes:
    """Pack as int32 length and the bytes."""
    return pack_int32(len(value)) + value


def pack_nullable_bytes(value: Buffer | None) -> bytes:
    """Pack as `pack_bytes` does, null as length -1."""
    return _NULL_INT32 if value is None else pack_bytes(value)


def pack_compact_bytes(value: Buffer) -> bytes:
    """Pack as unsigned varint of length + 1 and the bytes."""
    return pack_unsigned_varint(len(value) + 1) + value


def pack_compact_nullable_bytes(value: Buffer | None) -> bytes:
    """Pack as `pack_compact_bytes` does, null as a zero."""
    return _COMPACT_NULL if value is None else pack_compact_bytes(value)


def read_tagged_count(buffer: memoryview, position: int) -> tuple[int, int]:
    """Read how many fields a section has; raises MalformedMessage for more than anyone sends."""
    count, end = read_unsigned_varint(buffer, position)
    if count > MOST_TAGGED_FIELDS:
        raise MalformedMessage(
            f"{count} tagged fields; the limit is {MOST_TAGGED_FIELDS}", position=position
        )
    return count, end


def skip_tagged_fields(buffer: memoryview, position: int) -> tuple[None, int]:
    """Step over a section of tagged fields, whatever it holds (KIP-482)."""
    count, position = read_tagged_count(buffer, position)
    for _ in range(count):
        _, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        _, position = read_view(buffer, position, size)
    return None, position
