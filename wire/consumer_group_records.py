"""The records of `__consumer_offsets` about groups of the new protocol (KIP-848).

A group is many records. Every key is an int16 version, which says what the record is about, and
the names of the group and of what belongs to it; every value an int16 version, always 0, and a
flexible message:

    3  group    its epoch                       6  group          the epoch of the target
    4  group    the topics that it reads        7  group, member  what it is to own
    5  group, member  its subscription          8  group, member  what it owns
                                               16  group, pattern  the topics that it matches

Kafka 4.1 and later write no record 4 and hold a hash in record 3 instead; both are read. Source of
the layouts: Kafka's `group-coordinator/src/main/resources/common/message`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, fields
from typing import ClassVar, Final, TypeAlias

from wire.primitives import (
    Buffer,
    MalformedMessage,
    Reader,
    pack_int16,
    pack_string,
    read_int16,
    read_string,
)
from wire.schema import (
    bytes_,
    decode_prefix,
    encode,
    int8,
    int32,
    int64,
    message,
    nullable_string,
    string,
    tagged,
    uuid,
)
from wire.values import frozen

VALUE_VERSION: Final = 0


@frozen(kw_only=False)
class GroupKey:
    """The key of a group's epoch."""

    group: str
    VERSION: ClassVar[int] = 3


@frozen(kw_only=False)
class TopicsKey:
    """The key of the topics that a group reads, as they were when it last looked."""

    group: str
    VERSION: ClassVar[int] = 4


@frozen(kw_only=False)
class MemberKey:
    """The key of what a member has told of itself."""

    group: str
    member_id: str
    VERSION: ClassVar[int] = 5


@frozen(kw_only=False)
class TargetEpochKey:
    """The key of the group epoch that the target assignment is for."""

    group: str
    VERSION: ClassVar[int] = 6


@frozen(kw_only=False)
class TargetKey:
    """The key of what a member is to own."""

    group: str
    member_id: str
    VERSION: ClassVar[int] = 7


@frozen(kw_only=False)
class CurrentKey:
    """The key of what a member owns."""

    group: str
    member_id: str
    VERSION: ClassVar[int] = 8


@frozen(kw_only=False)
class PatternKey:
    """The key of what a pattern matches that members subscribe to."""

    group: str
    pattern: str
    VERSION: ClassVar[int] = 16


@message
class GroupValue:
    """A group's epoch; it grows with each change of members, subscriptions or topics."""

    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    epoch: int32
    metadata_hash: int64 = tagged(0, since=0, default=0)
    """A hash of the topics that it reads; Kafka 4.1 and later compare it instead of record 4."""


@message
class PartitionRacks:
    partition: int32
    racks: tuple[string, ...]


@message
class TopicShape:
    topic_id: uuid
    topic_name: string
    num_partitions: int32
    partition_metadata: tuple[PartitionRacks, ...] = ()
    """Kafka has not read it since 4.0, and it is not written here."""


@message
class TopicsValue:
    """The topics that a group reads."""

    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    topics: tuple[TopicShape, ...]


@message
class ClassicProtocol:
    name: string
    metadata: bytes_


@message
class ClassicMember:
    session_timeout_ms: int32
    supported_protocols: tuple[ClassicProtocol, ...]


@message
class MemberValue:
    """A member as it has told of itself; `classic` for one that speaks the classic protocol."""

    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    instance_id: nullable_string
    rack_id: nullable_string
    client_id: string
    client_host: string
    subscribed_topic_names: tuple[string, ...]
    subscribed_topic_regex: nullable_string
    rebalance_timeout_ms: int32 = -1
    server_assignor: nullable_string
    classic: ClassicMember | None = tagged(0, since=0, default=None)


@message
class TargetEpochValue:
    """The group epoch that the target assignment is for."""

    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    epoch: int32


@message
class TopicPartitions:
    topic_id: uuid
    partitions: tuple[int32, ...]


@message
class TargetValue:
    """The partitions that a member is to own."""

    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    topic_partitions: tuple[TopicPartitions, ...]


@message
class CurrentValue:
    """The partitions that a member owns, and how far it is on its way to the target."""

    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    member_epoch: int32
    previous_member_epoch: int32
    state: int8
    assigned_partitions: tuple[TopicPartitions, ...]
    partitions_pending_revocation: tuple[TopicPartitions, ...]


@message
class PatternValue:
    """The topics that a pattern matches; `version` says of which cluster metadata."""

    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    topics: tuple[string, ...]
    version: int64
    timestamp_ms: int64


Key: TypeAlias = (
    GroupKey | TopicsKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | PatternKey
)
Value: TypeAlias = (
    GroupValue
    | TopicsValue
    | MemberValue
    | TargetEpochValue
    | TargetValue
    | CurrentValue
    | PatternValue
)

_VALUE_OF: Final[dict[type[Key], type[Value]]] = {
    GroupKey: GroupValue,
    TopicsKey: TopicsValue,
    MemberKey: MemberValue,
    TargetEpochKey: TargetEpochValue,
    TargetKey: TargetValue,
    CurrentKey: CurrentValue,
    PatternKey: PatternValue,
}
_KEYS: Final[dict[int, type[Key]]] = {key.VERSION: key for key in _VALUE_OF}


def decode_key(key: Buffer) -> Key | None:
    """Return what a record is about, None for records of other kinds.

    Raises MalformedMessage for a key that is damaged.
    """
    with _naming("key"):
        reader = Reader(key)
        kind = _KEYS.get(reader.take(read_int16))
        if kind is None:
            return None
        found = kind(*(reader.take(read_string) for _ in fields(kind)))
        _expect_end(key, reader.position)
        return found


def decode_value(key: Key, value: Buffer) -> Value:
    """Return the value under a key; MalformedMessage if damaged or of a newer version."""
    decoded: Value
    with _naming(f"value of {type(key).__name__}"):
        version, start = read_int16(memoryview(value), 0)
        _expect_known(version)
        decoded, end = decode_prefix(_VALUE_OF[type(key)], value, version, start)
        _expect_end(value, end)
    return decoded


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name the key or the value in every fault."""
    try:
        yield
    except MalformedMessage as fault:
        where = f"__consumer_offsets {name}"
        raise MalformedMessage(fault.reason, position=fault.position, where=where) from None


def _expect_end(buffer: Buffer, position: int) -> None:
    if position != len(buffer):
        raise MalformedMessage(f"{len(buffer) - position} bytes too many", position=position)


def _expect_known(version: int) -> None:
    if version != VALUE_VERSION:
        raise MalformedMessage(f"unknown version {version}", position=0)


def encode_key(key: Key) -> bytes:
    """Return the key's bytes; ValueError for names beyond 32,767 bytes."""
    return b"".join((pack_int16(key.VERSION), *map(pack_string, astuple(key))))


def encode_value(value: Value) -> bytes:
    """Return the value's bytes."""
    return pack_int16(VALUE_VERSION) + encode(value, VALUE_VERSION)
