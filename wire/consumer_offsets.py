"""The records of `__consumer_offsets`, as Kafka's group coordinator writes and reads them.

Every key and value starts with an int16 version. Keys 0 and 1 are a committed offset, 2 is a
classic group; higher ones belong to newer group protocols and are returned as `UnknownKey`. Values
are read from version 0 to 4 (4 is flexible) and written as Kafka 3.9 writes them: offsets as 3
(1 when they carry an expiry of their own), groups as 3. A null value is a tombstone: it means
"deleted", and is the caller's to notice. Source of the layouts: Kafka's
`group-coordinator/src/main/resources/common/message`.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from wire.primitives import (
    MalformedMessage,
    Reader,
    pack_bytes,
    pack_int16,
    pack_int32,
    pack_int64,
    pack_nullable_string,
    pack_string,
    read_bytes,
    read_compact_bytes,
    read_compact_length,
    read_compact_nullable_string,
    read_compact_string,
    read_int16,
    read_int32,
    read_int32_length,
    read_int64,
    read_nullable_string,
    read_string,
    skip_tagged_fields,
)
from wire.values import frozen

Buffer: TypeAlias = bytes | bytearray | memoryview

OFFSET_KEY_VERSION: Final = 1
GROUP_KEY_VERSION: Final = 2
OFFSET_VALUE_VERSION: Final = 3
OFFSET_VALUE_WITH_EXPIRY_VERSION: Final = 1
GROUP_VALUE_VERSION: Final = 3
FLEXIBLE_SINCE: Final = 4
NO_TIMESTAMP: Final = -1
_VALUE_3_HEAD: Final = Struct(">hqih")
"""Version, offset, leader epoch, length of the metadata; behind that the commit's timestamp."""
_VALUE_3_BYTES: Final = _VALUE_3_HEAD.size + 8


@frozen
class OffsetKey:
    """The key of a committed offset: the group, and the partition."""

    group: str
    topic: str
    partition: int


class OffsetValue(NamedTuple):
    """A committed position: the offset of the next record to read. Made thousands a second."""

    offset: int
    commit_timestamp_ms: int
    leader_epoch: int = -1
    metadata: str = ""
    expire_timestamp_ms: int = NO_TIMESTAMP
    """When the commit itself named its retention (OffsetCommit v2-4), else -1."""


@frozen
class GroupMetadataKey:
    """Which classic group."""

    group: str


@frozen
class GroupMember:
    """One member of a classic group's stored generation."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int = -1
    """-1 in version 0, which had only the session timeout."""
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@frozen
class GroupMetadataValue:
    """A classic group's last stable generation."""

    protocol_type: str
    generation: int
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp_ms: int = NO_TIMESTAMP
    members: tuple[GroupMember, ...] = ()


@frozen
class UnknownKey:
    """A key of another record type, of a newer group protocol for instance."""

    version: int


def decode_key(key: Buffer) -> OffsetKey | GroupMetadataKey | UnknownKey:
    """Return what a record is about; MalformedMessage if the key is damaged."""
    with _read_whole(key, "key") as reader:
        version = reader.take(read_int16)
        match version:
            case 0 | 1:
                return OffsetKey(
                    group=reader.take(read_string),
                    topic=reader.take(read_string),
                    partition=reader.take(read_int32),
                )
            case 2:
                return GroupMetadataKey(group=reader.take(read_string))
            case _:
                reader.position = len(reader.buffer)
                return UnknownKey(version=version)


def decode_offset_value(value: Buffer) -> OffsetValue:
    """Return a committed position; MalformedMessage if damaged or newer than version 4."""
    if len(value) >= _VALUE_3_BYTES:
        # What brokers write, thousands a second: one call instead of six.
        version, offset, epoch, length = _VALUE_3_HEAD.unpack_from(value)
        if version == OFFSET_VALUE_VERSION and len(value) == _VALUE_3_BYTES + length:
            metadata = bytes(value[_VALUE_3_HEAD.size : -8])
            with suppress(UnicodeDecodeError):  # named below
                stamp_ms = int.from_bytes(value[-8:], signed=True)
                return OffsetValue(offset, stamp_ms, epoch, metadata.decode() if length else "")
    with _read_whole(value, "offset value") as reader:
        version = _known_version(reader)
        flexible = version >= FLEXIBLE_SINCE
        decoded = OffsetValue(
            offset=reader.take(read_int64),
            leader_epoch=reader.take(read_int32) if version >= 3 else -1,
            metadata=reader.take(read_compact_string if flexible else read_string),
            commit_timestamp_ms=reader.take(read_int64),
            expire_timestamp_ms=reader.take(read_int64) if version == 1 else NO_TIMESTAMP,
        )
        if flexible:
            reader.take(skip_tagged_fields)
        return decoded


def decode_group_value(value: Buffer) -> GroupMetadataValue:
    """Return a group's generation; MalformedMessage if damaged or newer than version 4."""
    with _read_whole(value, "group value") as reader:
        version = _known_version(reader)
        flexible = version >= FLEXIBLE_SINCE
        read_text = read_compact_string if flexible else read_string
        read_nullable = read_compact_nullable_string if flexible else read_nullable_string
        decoded = GroupMetadataValue(
            protocol_type=reader.take(read_text),
            generation=reader.take(read_int32),
            protocol=reader.take(read_nullable),
            leader=reader.take(read_nullable),
            current_state_timestamp_ms=reader.take(read_int64) if version >= 2 else NO_TIMESTAMP,
            members=_members(reader, version),
        )
        if flexible:
            reader.take(skip_tagged_fields)
        return decoded


def encode_key(key: OffsetKey | GroupMetadataKey) -> bytes:
    """Return the key's bytes; ValueError for names beyond 32,767 bytes."""
    match key:
        case OffsetKey():
            return b"".join(
                (
                    pack_int16(OFFSET_KEY_VERSION),
                    pack_string(key.group),
                    pack_string(key.topic),
                    pack_int32(key.partition),
                )
            )
        case GroupMetadataKey():
            return pack_int16(GROUP_KEY_VERSION) + pack_string(key.group)


def encode_offset_value(value: OffsetValue) -> bytes:
    """Return the value's bytes. The version with an expiry has no room for the leader epoch."""
    if value.expire_timestamp_ms != NO_TIMESTAMP:
        version, epoch = OFFSET_VALUE_WITH_EXPIRY_VERSION, b""
        expiry = pack_int64(value.expire_timestamp_ms)
    else:
        version, epoch = OFFSET_VALUE_VERSION, pack_int32(value.leader_epoch)
        expiry = b""
    return b"".join(
        (
            pack_int16(version),
            pack_int64(value.offset),
            epoch,
            pack_string(value.metadata),
            pack_int64(value.commit_timestamp_ms),
            expiry,
        )
    )


def encode_group_value(value: GroupMetadataValue) -> bytes:
    """Return the value's bytes."""
    parts = [
        pack_int16(GROUP_VALUE_VERSION),
        pack_string(value.protocol_type),
        pack_int32(value.generation),
        pack_nullable_string(value.protocol),
        pack_nullable_string(value.leader),
        pack_int64(value.current_state_timestamp_ms),
        pack_int32(len(value.members)),
    ]
    for member in value.members:
        parts += (
            pack_string(member.member_id),
            pack_nullable_string(member.group_instance_id),
            pack_string(member.client_id),
            pack_string(member.client_host),
            pack_int32(member.rebalance_timeout_ms),
            pack_int32(member.session_timeout_ms),
            pack_bytes(member.subscription),
            pack_bytes(member.assignment),
        )
    return b"".join(parts)


def partition_for(group_id: str, partition_count: int) -> int:
    """Return the partition of `__consumer_offsets` that holds a group.

    Java's String.hashCode over UTF-16 code units, then Kafka's Utils.abs: the absolute value,
    and 0 for the one int32 that has none.
    """
    code_units = group_id.encode("utf-16-be", errors="surrogatepass")
    hash_code = 0
    for high, low in zip(code_units[::2], code_units[1::2], strict=True):
        hash_code = (31 * hash_code + (high << 8 | low)) & 0xFFFFFFFF
    if hash_code == 1 << 31:
        return 0
    return min(hash_code, (1 << 32) - hash_code) % partition_count


def _members(reader: Reader, version: int) -> tuple[GroupMember, ...]:
    flexible = version >= FLEXIBLE_SINCE
    count = reader.take(read_compact_length if flexible else read_int32_length)
    if not 0 <= count <= reader.remaining:
        raise MalformedMessage(f"{count} members cannot be", position=reader.position)
    return tuple(_member(reader, version) for _ in range(count))


def _member(reader: Reader, version: int) -> GroupMember:
    flexible = version >= FLEXIBLE_SINCE
    read_text = read_compact_string if flexible else read_string
    read_nullable = read_compact_nullable_string if flexible else read_nullable_string
    read_blob = read_compact_bytes if flexible else read_bytes
    member = GroupMember(
        member_id=reader.take(read_text),
        group_instance_id=reader.take(read_nullable) if version >= 3 else None,
        client_id=reader.take(read_text),
        client_host=reader.take(read_text),
        rebalance_timeout_ms=reader.take(read_int32) if version >= 1 else -1,
        session_timeout_ms=reader.take(read_int32),
        subscription=reader.take(read_blob),
        assignment=reader.take(read_blob),
    )
    if flexible:
        reader.take(skip_tagged_fields)
    return member


def _known_version(reader: Reader) -> int:
    version = reader.take(read_int16)
    if not 0 <= version <= 4:
        raise MalformedMessage(f"unknown version {version}", position=0)
    return version


@contextmanager
def _read_whole(buffer: Buffer, name: str) -> Iterator[Reader]:
    """Give a reader of one key or value, name it in every fault, and let no byte be left over."""
    reader = Reader(buffer)
    try:
        yield reader
        _expect_end(reader)
    except MalformedMessage as fault:
        where = f"__consumer_offsets {name}"
        raise MalformedMessage(fault.reason, position=fault.position, where=where) from None


def _expect_end(reader: Reader) -> None:
    if reader.remaining:
        raise MalformedMessage(f"{reader.remaining} bytes too many", position=reader.position)
