"""OffsetFetch and OffsetCommit as a mirror speaks them: positions of many groups, by hand.

The layouts are those of OffsetFetch v8-9, which name several groups at once, and of OffsetCommit
v8-9. Positions without metadata, nearly all of them, have one size, and are read as one array.
Other versions are left to the schema codec.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Final, NamedTuple

from wire.headers import decode_response
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from wire.primitives import (
    Buffer,
    MalformedMessage,
    pack_compact_string,
    pack_int32,
    pack_unsigned_varint,
    read_compact_nullable_string,
    read_compact_string,
    read_unsigned_varint,
    skip_tagged_fields,
)
from wire.schema import encode
from wire.topic_partition import TopicPartition

BY_HAND: Final = range(8, 10)
GROUPS_SINCE: Final = 8
"""OffsetFetch names several groups at once from this version on, in fields of their own."""
STABLE_SINCE: Final = 7
"""OffsetFetch refuses positions that an open transaction may change (KIP-447), if told to."""
MEMBERS_SINCE: Final = 9


_NO_TAGS: Final = b"\x00"
_NULL: Final = b"\x00"
_FALSE: Final = b"\x00"
_TRUE: Final = b"\x01"
_NO_MEMBER: Final = _NULL + pack_int32(-1)
_FROM_OUTSIDE: Final = pack_int32(-1) + b"\x01" + _NULL
"""No generation, no member, no instance."""
_ANSWER_AT: Final = 5
_THROTTLE_BYTES: Final = 4
_FOUND: Final = Struct(">iqiBhB")
"""Partition, offset, leader epoch, length of no metadata, error, no tags."""
_FOUND_HEAD: Final = Struct(">iqi")
_ERROR: Final = Struct(">h")
_STORE: Final = Struct(">iqiBB")
"""Partition, offset, leader epoch, length of no metadata, no tags."""
_STORE_HEAD: Final = Struct(">iqi")
_STORED: Final = Struct(">ihB")
_EMPTY: Final = 1
"""The compact length of an empty string; 0 is null."""

_length = lru_cache(maxsize=4096)(pack_unsigned_varint)
_name = lru_cache(maxsize=16384)(pack_compact_string)
_partition = lru_cache(maxsize=65536)(TopicPartition)
"""Groups name the same partitions: making each name anew costs as much as reading a position."""


class GroupOffset(NamedTuple):
    """A stored position: the offset of the next record to read."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class GroupFound(NamedTuple):
    """A coordinator's answer about one group."""

    group: str
    error_code: int
    """The first that is not 0, of the group or of one of its partitions."""
    positions: dict[TopicPartition, GroupOffset]
    """Without those where nothing is stored."""


def fetch_body(groups: Sequence[str], version: int, *, require_stable: bool = False) -> bytes:
    """Return the body of a request for everything that these groups have stored; since v8."""
    if version not in BY_HAND:
        asked = tuple(OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups)
        return encode(OffsetFetchRequest(groups=asked, require_stable=require_stable), version)
    rest = (_NO_MEMBER if version >= MEMBERS_SINCE else b"") + _NULL + _NO_TAGS
    parts = [_length(len(groups) + 1)]
    for group in groups:
        parts += (_name(group), rest)
    parts.append((_TRUE if require_stable else _FALSE) + _NO_TAGS)
    return b"".join(parts)


def read_fetched(frame: Buffer, version: int) -> list[GroupFound]:
    """Return what a whole answer of v8 or later says, without its size but with its header.

    Raises MalformedMessage.
    """
    if version in BY_HAND:
        try:
            return _read_fetched(memoryview(frame))
        except (MalformedMessage, StructError, IndexError):
            pass  # the schema codec says what is wrong, and where
    answer = decode_response(OffsetFetchResponse, frame, version)
    return [found_of(one.group_id, one) for one in answer.groups]


def found_of(group: str, answer: OffsetFetchResponse | OffsetFetchResponseGroup) -> GroupFound:
    """Return the same of an answer that the schema codec has read."""
    code = answer.error_code
    positions: dict[TopicPartition, GroupOffset] = {}
    for topic in answer.topics:
        for found in topic.partitions:
            code = code or found.error_code
            if found.committed_offset >= 0:
                partition = _partition(topic.name, found.partition_index)
                positions[partition] = GroupOffset(
                    found.committed_offset, found.committed_leader_epoch, found.metadata or ""
                )
    return GroupFound(group, code, positions)


def _read_fetched(frame: memoryview) -> list[GroupFound]:
    _, position = skip_tagged_fields(frame, _ANSWER_AT - 1)
    count, position = _count(frame, position + _THROTTLE_BYTES)
    groups = []
    for _ in range(count):
        name, position = read_compact_string(frame, position)
        topics, position = _count(frame, position)
        positions: dict[TopicPartition, GroupOffset] = {}
        code = 0
        for _ in range(topics):
            topic, position = read_compact_string(frame, position)
            refused, position = _read_positions(frame, position, topic, positions)
            code = code or refused
            _, position = skip_tagged_fields(frame, position)
        (of_group,) = _ERROR.unpack_from(frame, position)
        _, position = skip_tagged_fields(frame, position + _ERROR.size)
        groups.append(GroupFound(name, of_group or code, positions))
    skip_tagged_fields(frame, position)
    return groups


def _read_positions(
    frame: memoryview, position: int, topic: str, positions: dict[TopicPartition, GroupOffset]
) -> tuple[int, int]:
    """Add one topic's positions; return the first error, and where the topic's array ends."""
    count, position = _count(frame, position)
    end = position + count * _FOUND.size
    code = 0
    added: dict[TopicPartition, GroupOffset] = {}
    for index, offset, epoch, length, refused, tags in _FOUND.iter_unpack(frame[position:end]):
        if length > _EMPTY or tags:
            break
        if refused:
            code = code or refused
        if offset >= 0:
            added[_partition(topic, index)] = GroupOffset(offset, epoch)
    else:
        if len(frame) < end:
            raise MalformedMessage("positions are missing", position=len(frame))
        positions.update(added)
        return code, end
    code = 0
    for _ in range(count):
        index, offset, epoch = _FOUND_HEAD.unpack_from(frame, position)
        metadata, position = read_compact_nullable_string(frame, position + _FOUND_HEAD.size)
        (refused,) = _ERROR.unpack_from(frame, position)
        _, position = skip_tagged_fields(frame, position + _ERROR.size)
        code = code or refused
        if offset >= 0:
            positions[_partition(topic, index)] = GroupOffset(offset, epoch, metadata or "")
    return code, position


def commit_body(
    group: str, commits: Mapping[TopicPartition, tuple[int, str]], version: int
) -> bytes:
    """Return the body of a request that stores (offset, metadata) for a group from outside it."""
    if version not in BY_HAND:
        return encode(commit_request(group, commits), version)
    by_topic: defaultdict[str, list[bytes]] = defaultdict(list)
    pack = _STORE.pack
    for (topic, partition), (offset, metadata) in commits.items():
        if metadata:
            head = _STORE_HEAD.pack(partition, offset, -1)
            by_topic[topic].append(head + pack_compact_string(metadata) + _NO_TAGS)
        else:
            by_topic[topic].append(pack(partition, offset, -1, _EMPTY, 0))
    parts = [_name(group), _FROM_OUTSIDE, _length(len(by_topic) + 1)]
    for topic, stored in by_topic.items():
        parts += (_name(topic), _length(len(stored) + 1), *stored, _NO_TAGS)
    parts.append(_NO_TAGS)
    return b"".join(parts)


def commit_request(
    group: str, commits: Mapping[TopicPartition, tuple[int, str]]
) -> OffsetCommitRequest:
    """Return the same request for the schema codec."""
    by_topic: defaultdict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for (topic, partition), (offset, metadata) in commits.items():
        by_topic[topic].append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    topics = tuple(
        OffsetCommitRequestTopic(name=name, partitions=tuple(stored))
        for name, stored in by_topic.items()
    )
    return OffsetCommitRequest(group_id=group, topics=topics)


def read_committed(frame: Buffer, version: int) -> dict[TopicPartition, int]:
    """Return each partition's error code out of a whole answer, header included.

    Raises MalformedMessage.
    """
    if version in BY_HAND:
        try:
            return _read_committed(memoryview(frame))
        except (MalformedMessage, StructError, IndexError):
            pass  # the schema codec says what is wrong, and where
    answer = decode_response(OffsetCommitResponse, frame, version)
    return {
        TopicPartition(topic.name, stored.partition_index): stored.error_code
        for topic in answer.topics
        for stored in topic.partitions
    }


def _read_committed(frame: memoryview) -> dict[TopicPartition, int]:
    _, position = skip_tagged_fields(frame, _ANSWER_AT - 1)
    topics, position = _count(frame, position + _THROTTLE_BYTES)
    codes: dict[TopicPartition, int] = {}
    for _ in range(topics):
        topic, position = read_compact_string(frame, position)
        count, position = _count(frame, position)
        end = position + count * _STORED.size
        for index, code, tags in _STORED.iter_unpack(frame[position:end]):
            if tags:
                raise MalformedMessage("tagged fields, which nobody knows", position=position)
            codes[_partition(topic, index)] = code
        if len(frame) < end:
            raise MalformedMessage("error codes are missing", position=len(frame))
        _, position = skip_tagged_fields(frame, end)
    skip_tagged_fields(frame, position)
    return codes


def _count(frame: memoryview, position: int) -> tuple[int, int]:
    """Return how many elements follow; of a null array the schema codec says what is wrong."""
    count, position = read_unsigned_varint(frame, position)
    if count == 0:
        raise MalformedMessage("null where null is not allowed", position=position)
    return count - 1, position
