"""How each primitive type is read and packed, in its plain, nullable and compact forms."""

from typing import Any, Final

from wire import primitives
from wire.primitives import MalformedMessage, Pack, Read
from wire.schema.plan import Primitive
from wire.schema.vocabulary import PrimitiveKind

LAYOUTS: Final = {
    PrimitiveKind.BOOLEAN: "?",
    PrimitiveKind.INT8: "b",
    PrimitiveKind.INT16: "h",
    PrimitiveKind.UINT16: "H",
    PrimitiveKind.INT32: "i",
    PrimitiveKind.UINT32: "I",
    PrimitiveKind.INT64: "q",
    PrimitiveKind.FLOAT64: "d",
}
"""The `struct` letters of the types with a fixed size, which are coded several at a time."""


def _records(read_length: Read[int], *, nullable: bool) -> Read[memoryview | None]:
    def read(buffer: memoryview, position: int) -> tuple[memoryview | None, int]:
        length, start = read_length(buffer, position)
        if length >= 0:
            return primitives.read_view(buffer, start, length)
        if not nullable:
            raise MalformedMessage("null where null is not allowed", position=position)
        return None, start

    return read


_READERS: Final[dict[PrimitiveKind, tuple[Read[Any], Read[Any], Read[Any], Read[Any]]]] = {
    PrimitiveKind.STRING: (
        primitives.read_string,
        primitives.read_nullable_string,
        primitives.read_compact_string,
        primitives.read_compact_nullable_string,
    ),
    PrimitiveKind.BYTES: (
        primitives.read_bytes,
        primitives.read_nullable_bytes,
        primitives.read_compact_bytes,
        primitives.read_compact_nullable_bytes,
    ),
    PrimitiveKind.RECORDS: (
        _records(primitives.read_int32_length, nullable=False),
        _records(primitives.read_int32_length, nullable=True),
        _records(primitives.read_compact_length, nullable=False),
        _records(primitives.read_compact_length, nullable=True),
    ),
}
"""By the forms plain, nullable, compact, compact and nullable."""

_PACKERS: Final[dict[PrimitiveKind, tuple[Pack[Any], Pack[Any], Pack[Any], Pack[Any]]]] = {
    PrimitiveKind.STRING: (
        primitives.pack_string,
        primitives.pack_nullable_string,
        primitives.pack_compact_string,
        primitives.pack_compact_nullable_string,
    ),
    PrimitiveKind.BYTES: (
        primitives.pack_bytes,
        primitives.pack_nullable_bytes,
        primitives.pack_compact_bytes,
        primitives.pack_compact_nullable_bytes,
    ),
}

_FIXED_READERS: Final[dict[PrimitiveKind, Read[Any]]] = {
    PrimitiveKind.BOOLEAN: primitives.read_boolean,
    PrimitiveKind.INT8: primitives.read_int8,
    PrimitiveKind.INT16: primitives.read_int16,
    PrimitiveKind.UINT16: primitives.read_uint16,
    PrimitiveKind.INT32: primitives.read_int32,
    PrimitiveKind.UINT32: primitives.read_uint32,
    PrimitiveKind.INT64: primitives.read_int64,
    PrimitiveKind.FLOAT64: primitives.read_float64,
    PrimitiveKind.UUID: primitives.read_uuid,
}

_FIXED_PACKERS: Final[dict[PrimitiveKind, Pack[Any]]] = {
    PrimitiveKind.BOOLEAN: primitives.pack_boolean,
    PrimitiveKind.INT8: primitives.pack_int8,
    PrimitiveKind.INT16: primitives.pack_int16,
    PrimitiveKind.UINT16: primitives.pack_uint16,
    PrimitiveKind.INT32: primitives.pack_int32,
    PrimitiveKind.UINT32: primitives.pack_uint32,
    PrimitiveKind.INT64: primitives.pack_int64,
    PrimitiveKind.FLOAT64: primitives.pack_float64,
    PrimitiveKind.UUID: primitives.pack_uuid,
}


def reader(shape: Primitive, *, flexible: bool) -> Read[Any]:
    """Return the function that reads a value of this shape."""
    if shape.kind in _FIXED_READERS:
        return _FIXED_READERS[shape.kind]
    return _READERS[shape.kind][2 * flexible + shape.nullable]


def packer(shape: Primitive, *, flexible: bool) -> Pack[Any]:
    """Return the function that packs a value of this shape; records are not packed but passed."""
    if shape.kind in _FIXED_PACKERS:
        return _FIXED_PACKERS[shape.kind]
    return _PACKERS[shape.kind][2 * flexible + shape.nullable]


def smallest(shape: Primitive, *, flexible: bool) -> int:
    """Return how many bytes a value of this shape takes at least."""
    if shape.kind in LAYOUTS:
        return len(_FIXED_PACKERS[shape.kind](0))
    if shape.kind is PrimitiveKind.UUID:
        return primitives.UUID_BYTES
    if flexible:
        return 1
    return 2 if shape.kind is PrimitiveKind.STRING else 4
