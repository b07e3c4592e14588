"""ListOffsets as our programs ask it, by hand: the same time of many partitions of one broker.

The layout is that of ListOffsets v6-9. Partitions of an answer without tagged fields, which nobody
sends, have one size, and are read as one array. The rest is left to the schema codec.
"""

from collections import defaultdict
from collections.abc import Iterable
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Final, NamedTuple

from wire.headers import decode_response
from wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from wire.primitives import (
    Buffer,
    MalformedMessage,
    pack_compact_string,
    pack_unsigned_varint,
    read_compact_string,
    read_unsigned_varint,
    skip_tagged_fields,
)
from wire.schema import encode
from wire.topic_partition import TopicPartition

BY_HAND: Final = range(6, 10)
_NO_TAGS: Final = b"\x00"
_HEAD: Final = Struct(">ib")
"""No replica, isolation level."""
_ASKED: Final = Struct(">iiqB")
"""Partition, any leader epoch, time, no tags."""
_ANSWER_AT: Final = 5
_THROTTLE_BYTES: Final = 4
_LISTED: Final = Struct(">ihqqiB")
"""Partition, error, timestamp, offset, leader epoch, no tags."""
_NOBODY: Final = -1


class ListedOffset(NamedTuple):
    """What a broker says of one partition."""

    error_code: int
    offset: int


def question_body(
    partitions: Iterable[TopicPartition], timestamp: int, isolation_level: int, version: int
) -> bytes:
    """Return the body of a request for the offset at one time in each of these partitions."""
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        by_topic[topic].append(partition)
    if version not in BY_HAND:
        return encode(_question(by_topic, timestamp, isolation_level), version)
    pack = _ASKED.pack
    parts = [_HEAD.pack(_NOBODY, isolation_level), pack_unsigned_varint(len(by_topic) + 1)]
    for topic, indexes in by_topic.items():
        parts += (pack_compact_string(topic), pack_unsigned_varint(len(indexes) + 1))
        parts += [pack(index, _NOBODY, timestamp, 0) for index in indexes]
        parts.append(_NO_TAGS)
    parts.append(_NO_TAGS)
    return b"".join(parts)


def _question(
    by_topic: dict[str, list[int]], timestamp: int, isolation_level: int
) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=_NOBODY,
        isolation_level=isolation_level,
        topics=tuple(
            ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                    for index in indexes
                ),
            )
            for topic, indexes in by_topic.items()
        ),
    )


def read_listed(frame: Buffer, version: int) -> dict[TopicPartition, ListedOffset]:
    """Return what a whole answer says of each partition, without its size but with its header.

    Raises MalformedMessage.
    """
    if version in BY_HAND:
        try:
            return _read_listed(memoryview(frame))
        except (MalformedMessage, StructError, IndexError):
            pass  # the schema codec says what is wrong, and where
    answer = decode_response(ListOffsetsResponse, frame, version)
    return {
        TopicPartition(topic.name, one.partition_index): ListedOffset(one.error_code, one.offset)
        for topic in answer.topics
        for one in topic.partitions
    }


def _read_listed(frame: memoryview) -> dict[TopicPartition, ListedOffset]:
    _, position = skip_tagged_fields(frame, _ANSWER_AT - 1)
    topics, position = _count(frame, position + _THROTTLE_BYTES)
    listed: dict[TopicPartition, ListedOffset] = {}
    for _ in range(topics):
        topic, position = read_compact_string(frame, position)
        count, position = _count(frame, position)
        end = position + count * _LISTED.size
        for index, code, _, offset, _, tags in _LISTED.iter_unpack(frame[position:end]):
            if tags:
                raise MalformedMessage("tagged fields, which nobody knows", position=position)
            listed[TopicPartition(topic, index)] = ListedOffset(code, offset)
        if len(frame) < end:
            raise MalformedMessage("partitions are missing", position=len(frame))
        _, position = skip_tagged_fields(frame, end)
    skip_tagged_fields(frame, position)
    return listed


def _count(frame: memoryview, position: int) -> tuple[int, int]:
    """Return how many elements follow; of a null array the schema codec says what is wrong."""
    count, position = read_unsigned_varint(frame, position)
    if count == 0:
        raise MalformedMessage("null where null is not allowed", position=position)
    return count - 1, position
