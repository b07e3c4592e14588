"""Primitive types: known bytes, round trips, and what is refused."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from wire import primitives
from wire.primitives import MalformedMessage, Reader

KNOWN_BYTES = [
    ("int8", -2, "fe"),
    ("int16", -2, "fffe"),
    ("uint16", 65_534, "fffe"),
    ("int32", 258, "00000102"),
    ("uint32", 2**32 - 2, "fffffffe"),
    ("int64", -2, "fffffffffffffffe"),
    ("float64", 1.5, "3ff8000000000000"),
    ("boolean", True, "01"),
    ("uuid", UUID(int=5), "00000000000000000000000000000005"),
    ("unsigned_varint", 300, "ac02"),
    ("string", "é", "0002c3a9"),
    ("nullable_string", None, "ffff"),
    ("compact_string", "é", "03c3a9"),
    ("compact_nullable_string", None, "00"),
    ("bytes", b"ab", "000000026162"),
    ("nullable_bytes", None, "ffffffff"),
    ("compact_bytes", b"ab", "036162"),
    ("compact_nullable_bytes", None, "00"),
]


def functions(name: str) -> tuple[Callable[[Any], bytes], Callable[[memoryview, int], Any]]:
    return getattr(primitives, f"pack_{name}"), getattr(primitives, f"read_{name}")


@pytest.mark.parametrize(("name", "value", "raw"), KNOWN_BYTES)
def test_a_primitive_has_the_bytes_of_the_protocol(name: str, value: object, raw: str) -> None:
    pack, read = functions(name)

    assert pack(value) == bytes.fromhex(raw)
    assert read(memoryview(b"?" + bytes.fromhex(raw) + b"?"), 1) == (value, 1 + len(raw) // 2)


@pytest.mark.parametrize(("name", "value", "raw"), KNOWN_BYTES)
def test_a_primitive_that_is_cut_off_is_refused(name: str, value: object, raw: str) -> None:
    _, read = functions(name)
    whole = bytes.fromhex(raw)

    for end in range(len(whole)):
        with pytest.raises(MalformedMessage):
            read(memoryview(whole[:end]), 0)
    assert value == read(memoryview(whole), 0)[0]


@pytest.mark.parametrize(
    ("read", "raw", "reason"),
    [
        (primitives.read_unsigned_varint, "ffffffffff01", "longer than 5 bytes"),
        (primitives.read_unsigned_varint, "ffffffff1f", "exceeds 32 bits"),
        (primitives.read_string, "ffff", "null"),
        (primitives.read_compact_string, "00", "null"),
        (primitives.read_nullable_string, "fffe", "length -2"),
        (primitives.read_nullable_bytes, "80000000", "length -2147483648"),
        (primitives.read_bytes, "7fffffff00", "needs 2147483647 bytes, 1 are left"),
        (primitives.read_string, "0001ff", "not UTF-8"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(
    read: Callable[[memoryview, int], Any], raw: str, reason: str
) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        read(memoryview(bytes.fromhex(raw)), 0)


def test_a_string_longer_than_its_length_can_say_is_not_packed() -> None:
    with pytest.raises(ValueError, match="32768 bytes"):
        primitives.pack_string("x" * 2**15)


def test_a_negative_unsigned_varint_is_not_packed() -> None:
    with pytest.raises(ValueError, match="-1"):
        primitives.pack_unsigned_varint(-1)


def test_tagged_fields_are_stepped_over() -> None:
    raw = bytes.fromhex("02 00 01 ff 05 02 ffff 07")
    assert primitives.skip_tagged_fields(memoryview(raw), 0) == (None, len(raw) - 1)


def test_more_tagged_fields_than_anyone_sends_are_refused_unread() -> None:
    raw = primitives.pack_unsigned_varint(50_000_000)
    with pytest.raises(MalformedMessage, match="50000000 tagged fields; the limit is 1000 at"):
        primitives.skip_tagged_fields(memoryview(raw), 0)


def test_a_reader_moves_on_but_not_over_what_is_malformed() -> None:
    reader = Reader(primitives.pack_int32(7) + b"\x00")

    assert reader.take(primitives.read_int32) == 7
    with pytest.raises(MalformedMessage, match="needs 8 bytes, 1 are left at byte 4"):
        reader.take(primitives.read_int64)
    assert (reader.position, reader.remaining) == (4, 1)
