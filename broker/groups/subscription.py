"""What consumers of the classic protocol tell each other through the group.

The coordinator of a classic group passes this on without reading it, except for the topics:
offsets of a topic that members read neither expire nor may be deleted. Where a group changes to
the new protocol, the coordinator assigns for such members too, and speaks their format.

Source of the formats: Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from wire.primitives import (
    MalformedMessage,
    Reader,
    pack_int16,
    pack_int32,
    pack_string,
    read_int16,
    read_int32,
    read_nullable_bytes,
    read_nullable_string,
    read_string,
)
from wire.topic_partition import TopicPartition

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
MOST_READ: Final = 250_000
"""Names and partitions, a third of a second. A request has room for fifty million of them, and a
group's are read again at each generation."""
_MIN_TOPIC_BYTES: Final = 2
_MIN_PARTITIONS_BYTES: Final = 6
_PARTITION_BYTES: Final = 4
_OWNED_SINCE: Final = 1
_GENERATION_SINCE: Final = 2
_RACK_SINCE: Final = 3
_NO_USER_DATA: Final = pack_int32(-1)


class Subscription(NamedTuple):
    """What a consumer subscribes to, and owns until it joins."""

    topics: tuple[str, ...]
    owned: frozenset[TopicPartition] = frozenset()
    rack_id: str | None = None


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics in these subscriptions, None if one cannot be read, or they are too many.

    Every version of the format begins with the fields of version 0, so that is what is read.
    """
    topics, left = set[str](), MOST_READ
    try:
        for subscription in subscriptions:
            reader = Reader(subscription)
            reader.take(read_int16)
            named = _topics(reader, left)
            topics.update(named)
            left -= len(named)
    except MalformedMessage:
        # The metadata is the members' own affair; not knowing the topics only means keeping all.
        return None
    return frozenset(topics)


def decode_subscription(metadata: bytes) -> Subscription:
    """Return what a member subscribes to; later versions add fields at the end.

    Raises MalformedMessage.
    """
    reader = Reader(metadata)
    version = reader.take(read_int16)
    topics = tuple(_topics(reader, MOST_READ))
    reader.take(read_nullable_bytes)
    owned = frozenset(_partitions(reader)) if version >= _OWNED_SINCE else frozenset()
    if version >= _GENERATION_SINCE:
        reader.take(read_int32)
    rack_id = reader.take(read_nullable_string) if version >= _RACK_SINCE else None
    return Subscription(topics=topics, owned=owned, rack_id=rack_id)


def decode_assignment(assignment: bytes) -> frozenset[TopicPartition]:
    """Return the partitions that a leader has assigned to a member, none for no bytes.

    Raises MalformedMessage.
    """
    if not assignment:
        return frozenset()
    reader = Reader(assignment)
    reader.take(read_int16)
    return frozenset(_partitions(reader))


def encode_assignment(version: int, partitions: Mapping[str, Iterable[int]]) -> bytes:
    """Return an assignment as consumers read it, in the version that they subscribe with."""
    parts = [pack_int16(version), pack_int32(len(partitions))]
    for topic, indexes in partitions.items():
        numbers = list(indexes)
        parts += [pack_string(topic), pack_int32(len(numbers)), *map(pack_int32, numbers)]
    return b"".join([*parts, _NO_USER_DATA])


def version_of(metadata: bytes) -> int:
    """Return the version of the format that a member speaks; MalformedMessage if it has none."""
    return Reader(metadata).take(read_int16)


def _topics(reader: Reader, most: int) -> list[str]:
    count = _count(reader, _MIN_TOPIC_BYTES, most)
    return [reader.take(read_string) for _ in range(count)]


def _partitions(reader: Reader) -> Iterator[TopicPartition]:
    topics = _count(reader, _MIN_PARTITIONS_BYTES, MOST_READ)
    left = MOST_READ - topics
    for _ in range(topics):
        topic = reader.take(read_string)
        count = _count(reader, _PARTITION_BYTES, left)
        left -= count
        for _ in range(count):
            yield TopicPartition(topic, reader.take(read_int32))


def _count(reader: Reader, least_bytes: int, most: int) -> int:
    count = reader.take(read_int32)
    if not 0 <= count <= reader.remaining // least_bytes:
        raise MalformedMessage(f"{count} elements cannot be", position=reader.position)
    if count > most:
        raise MalformedMessage(
            f"more than {MOST_READ} topics and partitions", position=reader.position
        )
    return count
