"""`__consumer_offsets` records: Kafka's bytes, written out by hand from its message definitions."""

import struct
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.consumer_offsets import (
    NO_TIMESTAMP,
    GroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetKey,
    OffsetValue,
    UnknownKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_value,
    encode_key,
    encode_offset_value,
    partition_for,
)
from wire.primitives import MalformedMessage

names = st.text(max_size=30)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
members = st.builds(
    GroupMember,
    member_id=names,
    group_instance_id=st.none() | names,
    client_id=names,
    client_host=names,
    rebalance_timeout_ms=int32s,
    session_timeout_ms=int32s,
    subscription=st.binary(max_size=50),
    assignment=st.binary(max_size=50),
)
group_values = st.builds(
    GroupMetadataValue,
    protocol_type=names,
    generation=int32s,
    protocol=st.none() | names,
    leader=st.none() | names,
    current_state_timestamp_ms=int64s,
    members=st.lists(members, max_size=3).map(tuple),
)
offset_values = st.builds(
    OffsetValue,
    offset=int64s,
    leader_epoch=int32s,
    metadata=names,
    commit_timestamp_ms=int64s,
    expire_timestamp_ms=st.just(NO_TIMESTAMP),
)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def compact(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return bytes([len(raw) + 1]) + raw


OFFSET_KEY = text("g") + text("orders") + struct.pack(">i", 7)


@pytest.mark.parametrize("version", [0, 1])
def test_an_offset_key_is_read(version: int) -> None:
    key = struct.pack(">h", version) + OFFSET_KEY
    assert decode_key(key) == OffsetKey(group="g", topic="orders", partition=7)


def test_keys_are_written_as_kafka_writes_them() -> None:
    key = OffsetKey(group="g", topic="orders", partition=7)
    assert encode_key(key) == b"\x00\x01" + OFFSET_KEY
    assert encode_key(GroupMetadataKey(group="g")) == b"\x00\x02\x00\x01g"
    assert decode_key(b"\x00\x02\x00\x01g") == GroupMetadataKey(group="g")


@pytest.mark.parametrize("version", [3, 8, 16, -1])
def test_the_keys_of_newer_group_protocols_are_known_to_be_unknown(version: int) -> None:
    assert decode_key(struct.pack(">h", version) + b"anything") == UnknownKey(version=version)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            struct.pack(">hq", 0, 42) + text("m") + struct.pack(">q", 9),
            OffsetValue(offset=42, metadata="m", commit_timestamp_ms=9),
        ),
        (
            struct.pack(">hq", 1, 42) + text("m") + struct.pack(">qq", 9, 99),
            OffsetValue(offset=42, metadata="m", commit_timestamp_ms=9, expire_timestamp_ms=99),
        ),
        (
            struct.pack(">hq", 2, 42) + text("m") + struct.pack(">q", 9),
            OffsetValue(offset=42, metadata="m", commit_timestamp_ms=9),
        ),
        (
            struct.pack(">hqi", 3, 42, 5) + text("m") + struct.pack(">q", 9),
            OffsetValue(offset=42, leader_epoch=5, metadata="m", commit_timestamp_ms=9),
        ),
        (
            struct.pack(">hqi", 4, 42, 5)
            + compact("m")
            + struct.pack(">q", 9)
            + bytes([1, 0, 16])
            + bytes(16),
            OffsetValue(offset=42, leader_epoch=5, metadata="m", commit_timestamp_ms=9),
        ),
    ],
    ids=["v0", "v1", "v2", "v3", "v4 with a tagged topic id"],
)
def test_every_version_of_an_offset_is_read(value: bytes, expected: OffsetValue) -> None:
    assert decode_offset_value(value) == expected


def member_bytes(version: int) -> bytes:
    if version >= 4:
        return (
            compact("m-1")
            + compact("i")
            + compact("c")
            + compact("/h")
            + struct.pack(">ii", 300, 10)
            + compact(b"sub")
            + compact(b"ass")
            + b"\x00"
        )
    instance = text("i") if version == 3 else b""
    rebalance = struct.pack(">i", 300) if version >= 1 else b""
    return (
        text("m-1")
        + instance
        + text("c")
        + text("/h")
        + rebalance
        + struct.pack(">ii", 10, 3)
        + b"sub"
        + struct.pack(">i", 3)
        + b"ass"
    )


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_is_read(version: int) -> None:
    if version >= 4:
        start = compact("consumer") + struct.pack(">i", 12) + compact("range") + compact("m-1")
    else:
        start = text("consumer") + struct.pack(">i", 12) + text("range") + text("m-1")
    value = struct.pack(">h", version) + start
    value += struct.pack(">q", 1_000) if version >= 2 else b""
    value += b"\x02" if version >= 4 else struct.pack(">i", 1)
    value += member_bytes(version) + (b"\x00" if version >= 4 else b"")
    assert decode_group_value(value) == GroupMetadataValue(
        protocol_type="consumer",
        generation=12,
        protocol="range",
        leader="m-1",
        current_state_timestamp_ms=1_000 if version >= 2 else -1,
        members=(
            GroupMember(
                member_id="m-1",
                group_instance_id="i" if version >= 3 else None,
                client_id="c",
                client_host="/h",
                rebalance_timeout_ms=300 if version >= 1 else -1,
                session_timeout_ms=10,
                subscription=b"sub",
                assignment=b"ass",
            ),
        ),
    )


@given(offset_values)
def test_an_offset_is_written_as_version_3(value: OffsetValue) -> None:
    encoded = encode_offset_value(value)
    assert encoded[:2] == b"\x00\x03"
    assert decode_offset_value(encoded) == value


def test_an_offset_with_an_expiry_is_written_as_version_1() -> None:
    value = OffsetValue(offset=4, commit_timestamp_ms=5, expire_timestamp_ms=6)
    assert encode_offset_value(value) == struct.pack(">hqhqq", 1, 4, 0, 5, 6)
    assert decode_offset_value(encode_offset_value(value)) == value


@given(group_values)
def test_a_group_is_written_as_version_3(value: GroupMetadataValue) -> None:
    encoded = encode_group_value(value)
    assert encoded[:2] == b"\x00\x03"
    assert decode_group_value(encoded) == value


@pytest.mark.parametrize("version", [-1, 5, 300])
@pytest.mark.parametrize("decode", [decode_offset_value, decode_group_value])
def test_a_newer_value_is_named(decode: Callable[[bytes], object], version: int) -> None:
    with pytest.raises(MalformedMessage, match=f"unknown version {version}"):
        decode(struct.pack(">h", version) + bytes(50))


@given(group_values, st.data())
def test_damaged_bytes_are_read_or_named_malformed(
    value: GroupMetadataValue, data: st.DataObject
) -> None:
    encoded = bytearray(encode_group_value(value))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    del encoded[data.draw(st.integers(0, len(encoded))) :]
    for decode in (decode_group_value, decode_offset_value, decode_key):
        with suppress(MalformedMessage):
            decode(encoded)


def test_damage_is_named_with_its_place() -> None:
    with pytest.raises(MalformedMessage, match=r"__consumer_offsets key: .* at byte 4"):
        decode_key(b"\x00\x02\x00\x05g")


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("", 0),
        ("abc", 4),
        ("console-consumer-12345", 6),
        ("payments", 13),
        ("orders-reader", 11),
        ("gruppe-äö", 46),
        ("group-🚀", 35),
        ("polygenelubricants", 0),
    ],
    ids=ascii,
)
def test_a_group_lies_where_java_puts_it(group: str, partition: int) -> None:
    """Computed by Java: hashCode of a negative value, of surrogate pairs, and Integer.MIN_VALUE."""
    assert partition_for(group, 50) == partition
