"""The records of the offset map topic, ``<source>.offset-map.internal`` on the target cluster.

One partition, compacted. Integers are big-endian, a string is an int16 length and UTF-8. Keys begin
with an int16 kind, values with an int16 version (0):

    kind 0  piece start     key: string topic, int32 partition, int64 place
                            value: int64 source_start
    kind 1  seal            key: string topic, int32 partition, int64 target_end
                            value: int64 source_end
    kind 2  mirror producer key: int64 producer_id        value: int16 producer_epoch
    kind 3  source topic    key: string topic             value: 16 bytes topic id
    kind 4  run start       key: string topic, int32 partition, int64 place
                            value: int64 target_start
    kind 5  reached         key: string topic, int32 partition
                            value: int64 place, int64 target_end
    kind 6  trimmed         key: string topic, int32 partition
                            value: int64 place: pieces and runs before it are forgotten
    kind 7  target topic    key: string topic, int32 partition
                            value: 16 bytes id of the topic on the target that holds the copy
    kind 8  set aside       key: string topic, int32 partition, int64 source_start
                            value: int64 source_end: what the source alone has between these is not
                            mirrored; it lies in the topic's `.diverged` topic on both sites
    kind 9  writer          key: 16 bytes id of its registry       value: int64 number: a writer
                            begins here; it says nothing of the mirrored stream
    kind 10 flow begun      key: string id of the writer's registry, string set of topics, empty for
                            all
                            value: int64 time in milliseconds: what comes into the flow from now on
                            begins at its first record, whatever the flow's `start` says
    kind 11 start due       key: string topic, int32 partition
                            value: 16 bytes topic id: it was there when the flow began, and begins
                            by the flow's `start`
    kind 12 begun           key: string topic, int32 partition
                            value: int64 source_start, int64 target_start, 16 bytes topic id,
                            string start: nothing before that source offset is mirrored

A place is a record's number in the mirrored stream. Without run starts it is the target offset, so
records of before there were run starts mean the same.

A record without value takes the one of the same key back. A piece start is durable before the
first record behind it is produced. The topic is a table: its meaning does not depend on the order
of different keys, so it may be compacted. Before a piece is announced in the place of starts whose
records never arrived, those starts are taken back.
"""

import struct
from collections.abc import Set
from enum import IntEnum
from typing import Final, TypeAlias, assert_never
from uuid import UUID

from offset_translation.binary import MalformedRecord, RecordCursor, put_string
from offset_translation.runs import Place
from wire.topic_partition import TopicPartition
from wire.values import frozen

VALUE_VERSION: Final = 0


def map_topic_name(source: str) -> str:
    """Return the name of the topic, on the target, that maps what came from ``source``."""
    return f"{source}.offset-map.internal"


class KeyKind(IntEnum):
    """The first two bytes of a key."""

    PIECE_START = 0
    SEAL = 1
    MIRROR_PRODUCER = 2
    SOURCE_TOPIC = 3
    RUN_START = 4
    REACHED = 5
    TRIMMED = 6
    TARGET_TOPIC = 7
    SET_ASIDE = 8
    WRITER = 9
    FLOW_BEGUN = 10
    START_DUE = 11
    BEGUN = 12


@frozen
class PieceStartKey:
    """A piece of (topic, partition) begins at this place."""

    topic: str
    partition: int
    place: Place


@frozen
class SealKey:
    """A seal: from this target offset on, the target's log grows by its own writers."""

    topic: str
    partition: int
    target_end: int


@frozen
class RunStartKey:
    """A run: from this place on, records lie behind more records of the target's own."""

    topic: str
    partition: int
    place: Place


@frozen
class ReachedKey:
    """The least mirrored end of a partition that others write to."""

    topic: str
    partition: int


@frozen
class TrimmedKey:
    """Everything before a place of a partition is forgotten, in one record for all its pieces."""

    topic: str
    partition: int


@frozen
class TargetTopicKey:
    """The topic on the target into which a partition was mirrored."""

    topic: str
    partition: int


@frozen
class SetAsideKey:
    """Source offsets, from this one on, whose records were set aside and are not mirrored."""

    topic: str
    partition: int
    source_start: int


@frozen
class MirrorProducerKey:
    """A producer id that a mirror has used on this cluster."""

    producer_id: int


@frozen
class SourceTopicKey:
    """The source topic that was mirrored under this name."""

    topic: str


@frozen
class FlowBegunKey:
    """The flow of a set of topics, "" for all, has looked for the first time.

    Pairs of other topics may have their maps in the same topic, so each has its own key.
    """

    registry: str
    topic_set: str


@frozen
class StartDueKey:
    """A partition was there at that first look, and begins by the flow's `start`."""

    topic: str
    partition: int


@frozen
class BegunKey:
    """A partition was begun behind records that are left on the source on purpose."""

    topic: str
    partition: int


@frozen(kw_only=False)
class WriterKey:
    """A writer of this registry begins; `runtime.coordination.map_writers` reads its number."""

    registry: bytes


StateKey: TypeAlias = (
    PieceStartKey
    | SealKey
    | MirrorProducerKey
    | SourceTopicKey
    | RunStartKey
    | ReachedKey
    | TrimmedKey
    | TargetTopicKey
    | SetAsideKey
)
"""The keys of records that make the state of a map."""
BeginKey: TypeAlias = FlowBegunKey | StartDueKey | BegunKey
"""The keys of records that say where a flow and its partitions were begun."""
MapKey: TypeAlias = StateKey | BeginKey | WriterKey


@frozen
class MirrorProducer:
    """The producer id and epoch by which mirrored records are written."""

    producer_id: int
    producer_epoch: int


@frozen
class Seal:
    """Where the mirrored part of a partition ends on both sides."""

    source_end: int
    target_end: int


@frozen
class Reached:
    """The places before this one lie before this target offset, and no later one does."""

    place: Place
    target_end: int


@frozen
class Begun:
    """Where a partition was begun, and by which `start` of the flow.

    Records of the source before ``source_start`` are not mirrored, on purpose; the first that is
    lies at ``target_start`` or behind it. It holds for the source topic of this id alone.
    """

    source_start: int
    target_start: int
    topic_id: UUID
    start: str


Field: TypeAlias = int | UUID | Reached | Begun
"""What a record's value holds."""


def lost_head(start: int) -> str:
    """Return what to say of a map topic whose log begins behind its first record."""
    return (
        f"begins at offset {start}: what it held before, by which positions are translated, was"
        " deleted by retention or by somebody; delete the topic, and `mirror rebuild-map --write`"
        " finds the map again from both logs"
    )


def piece_start(
    topic: str, partition: int, *, source_start: int, place: Place
) -> tuple[bytes, bytes]:
    """Return key and value that announce a piece."""
    key = PieceStartKey(topic=topic, partition=partition, place=place)
    return encode_key(key), struct.pack(">hq", VALUE_VERSION, source_start)


def seal(topic: str, partition: int, *, source_end: int, target_end: int) -> tuple[bytes, bytes]:
    """Return key and value that bound the mirrored part."""
    key = SealKey(topic=topic, partition=partition, target_end=target_end)
    return encode_key(key), struct.pack(">hq", VALUE_VERSION, source_end)


def run_start(
    topic: str, partition: int, *, place: Place, target_start: int
) -> tuple[bytes, bytes]:
    """Return key and value that tell where records lie from this place on."""
    key = RunStartKey(topic=topic, partition=partition, place=place)
    return encode_key(key), struct.pack(">hq", VALUE_VERSION, target_start)


def reached(topic: str, partition: int, at: Reached) -> tuple[bytes, bytes]:
    """Return key and value that tell how far the partition is mirrored."""
    key = encode_key(ReachedKey(topic=topic, partition=partition))
    return key, struct.pack(">hqq", VALUE_VERSION, at.place, at.target_end)


def trimmed(topic: str, partition: int, place: Place) -> tuple[bytes, bytes]:
    """Return key and value that forget what lies before a place."""
    key = encode_key(TrimmedKey(topic=topic, partition=partition))
    return key, struct.pack(">hq", VALUE_VERSION, place)


def mirror_producer(producer: MirrorProducer) -> tuple[bytes, bytes]:
    """Return key and value that keep the mirror's producer id."""
    key = MirrorProducerKey(producer_id=producer.producer_id)
    return encode_key(key), struct.pack(">hh", VALUE_VERSION, producer.producer_epoch)


def source_topic(topic: str, topic_id: UUID) -> tuple[bytes, bytes]:
    """Return key and value that keep the identity of the source topic."""
    value = struct.pack(">h", VALUE_VERSION) + topic_id.bytes
    return encode_key(SourceTopicKey(topic=topic)), value


def target_topic(topic: str, partition: int, topic_id: UUID) -> tuple[bytes, bytes]:
    """Return key and value that keep the identity of the topic that holds a partition's copy."""
    value = struct.pack(">h", VALUE_VERSION) + topic_id.bytes
    return encode_key(TargetTopicKey(topic=topic, partition=partition)), value


def set_aside(
    topic: str, partition: int, *, source_start: int, source_end: int
) -> tuple[bytes, bytes]:
    """Return key and value that name source offsets whose records were set aside."""
    key = SetAsideKey(topic=topic, partition=partition, source_start=source_start)
    return encode_key(key), struct.pack(">hq", VALUE_VERSION, source_end)


def flow_begun(registry: str, topic_set: str | None, at_ms: int) -> tuple[bytes, bytes]:
    """Return key and value that say that a flow has looked for the first time."""
    key = FlowBegunKey(registry=registry, topic_set=topic_set or "")
    return encode_key(key), encode_value(at_ms)


def start_due(topic: str, partition: int, topic_id: UUID) -> tuple[bytes, bytes]:
    """Return key and value of a partition that begins by the flow's `start`."""
    return encode_key(StartDueKey(topic=topic, partition=partition)), encode_value(topic_id)


def begun(topic: str, partition: int, at: Begun) -> tuple[bytes, bytes]:
    """Return key and value that keep where a partition was begun."""
    return encode_key(BegunKey(topic=topic, partition=partition)), encode_value(at)


def withdrawal(key: MapKey) -> tuple[bytes, None]:
    """Return the record that takes back the one of this key."""
    return encode_key(key), None


_OF_OFFSET: Final[dict[type, KeyKind]] = {
    PieceStartKey: KeyKind.PIECE_START,
    SealKey: KeyKind.SEAL,
    RunStartKey: KeyKind.RUN_START,
    SetAsideKey: KeyKind.SET_ASIDE,
}
"""The kinds of keys that name a partition and a place or offset in it."""

_OF_PARTITION: Final[dict[type, KeyKind]] = {
    ReachedKey: KeyKind.REACHED,
    TrimmedKey: KeyKind.TRIMMED,
    TargetTopicKey: KeyKind.TARGET_TOPIC,
    StartDueKey: KeyKind.START_DUE,
    BegunKey: KeyKind.BEGUN,
}
"""The kinds of keys that name a partition and nothing else."""


def encode_key(key: MapKey) -> bytes:
    """Encode a key, kind first."""
    match key:
        case (
            PieceStartKey(topic=topic, partition=index, place=number)
            | SealKey(topic=topic, partition=index, target_end=number)
            | RunStartKey(topic=topic, partition=index, place=number)
            | SetAsideKey(topic=topic, partition=index, source_start=number)
        ):
            kind = _OF_OFFSET[type(key)]
            return struct.pack(">h", kind) + put_string(topic) + struct.pack(">iq", index, number)
        case MirrorProducerKey(producer_id=producer_id):
            return struct.pack(">hq", KeyKind.MIRROR_PRODUCER, producer_id)
        case SourceTopicKey(topic=topic):
            return struct.pack(">h", KeyKind.SOURCE_TOPIC) + put_string(topic)
        case FlowBegunKey(registry=registry, topic_set=topic_set):
            names = put_string(registry) + put_string(topic_set)
            return struct.pack(">h", KeyKind.FLOW_BEGUN) + names
        case (
            ReachedKey(topic=topic, partition=index)
            | TrimmedKey(topic=topic, partition=index)
            | TargetTopicKey(topic=topic, partition=index)
            | StartDueKey(topic=topic, partition=index)
            | BegunKey(topic=topic, partition=index)
        ):
            kind = _OF_PARTITION[type(key)]
            return struct.pack(">h", kind) + put_string(topic) + struct.pack(">i", index)
        case WriterKey(registry=raw):
            return struct.pack(">h", KeyKind.WRITER) + raw
        case _:
            assert_never(key)


def decode_key(buffer: bytes) -> MapKey:
    """Decode a key; raises MalformedRecord."""
    cursor = RecordCursor(buffer)
    number = cursor.integer(2)
    key: MapKey
    match number:
        case KeyKind.PIECE_START:
            key = PieceStartKey(
                topic=cursor.string(), partition=cursor.integer(4), place=Place(cursor.integer(8))
            )
        case KeyKind.SEAL:
            key = SealKey(
                topic=cursor.string(), partition=cursor.integer(4), target_end=cursor.integer(8)
            )
        case KeyKind.RUN_START:
            key = RunStartKey(
                topic=cursor.string(), partition=cursor.integer(4), place=Place(cursor.integer(8))
            )
        case KeyKind.REACHED:
            key = ReachedKey(topic=cursor.string(), partition=cursor.integer(4))
        case KeyKind.TRIMMED:
            key = TrimmedKey(topic=cursor.string(), partition=cursor.integer(4))
        case KeyKind.TARGET_TOPIC:
            key = TargetTopicKey(topic=cursor.string(), partition=cursor.integer(4))
        case KeyKind.SET_ASIDE:
            key = SetAsideKey(
                topic=cursor.string(), partition=cursor.integer(4), source_start=cursor.integer(8)
            )
        case KeyKind.START_DUE:
            key = StartDueKey(topic=cursor.string(), partition=cursor.integer(4))
        case KeyKind.BEGUN:
            key = BegunKey(topic=cursor.string(), partition=cursor.integer(4))
        case _:
            key = _key_of_no_partition(number, cursor)
    cursor.finish()
    _refuse_negative(key)
    return key


def _key_of_no_partition(number: int, cursor: RecordCursor) -> MapKey:
    match number:
        case KeyKind.MIRROR_PRODUCER:
            return MirrorProducerKey(producer_id=cursor.integer(8))
        case KeyKind.SOURCE_TOPIC:
            return SourceTopicKey(topic=cursor.string())
        case KeyKind.WRITER:
            return WriterKey(cursor.raw(16))
        case KeyKind.FLOW_BEGUN:
            return FlowBegunKey(registry=cursor.string(), topic_set=cursor.string())
        case _:
            raise MalformedRecord(f"unknown kind {number} of map record")


def partition_of(encoded_key: bytes | None) -> Set[TopicPartition]:
    """Return the partition that a key names; nothing of other keys, and of what is no key."""
    try:
        key = decode_key(encoded_key or b"")
    except MalformedRecord:
        return frozenset()
    match key:
        case MirrorProducerKey() | SourceTopicKey() | WriterKey() | FlowBegunKey():
            return frozenset()
        case _:
            return {TopicPartition(key.topic, key.partition)}


def _refuse_negative(key: MapKey) -> None:
    """Raise MalformedRecord for a number that no mirror writes: -1 is every plain producer's id."""
    for name in ("partition", "place", "target_end", "producer_id", "source_start"):
        if getattr(key, name, 0) < 0:
            raise MalformedRecord(f"a map record cannot have {name} {getattr(key, name)}")


def decode_value(key: MapKey, buffer: bytes) -> Field:
    """Decode what a value holds behind its version; raises MalformedRecord.

    The source start of a piece, the source end of a seal, the producer epoch, the topic id, the
    target start of a run, how far it goes, a writer's number, when a flow began, or where a
    partition was begun.
    """
    cursor = RecordCursor(buffer)
    version = cursor.integer(2)
    if version != VALUE_VERSION:
        raise MalformedRecord(f"unknown version {version} of a map record's value")
    field: Field
    match key:
        case (
            PieceStartKey()
            | SealKey()
            | RunStartKey()
            | TrimmedKey()
            | SetAsideKey()
            | WriterKey()
            | FlowBegunKey()
        ):
            field = cursor.integer(8)
        case MirrorProducerKey():
            field = cursor.integer(2)
        case SourceTopicKey() | TargetTopicKey() | StartDueKey():
            field = UUID(bytes=cursor.raw(16))
        case ReachedKey():
            field = Reached(place=Place(cursor.integer(8)), target_end=cursor.integer(8))
        case BegunKey():
            field = Begun(
                source_start=cursor.integer(8),
                target_start=cursor.integer(8),
                topic_id=UUID(bytes=cursor.raw(16)),
                start=cursor.string(),
            )
        case _:
            assert_never(key)
    cursor.finish()
    if any(number < 0 for number in _numbers(field)):
        raise MalformedRecord(f"a map record cannot hold {field}")
    return field


def _numbers(field: Field) -> tuple[int, ...]:
    match field:
        case Reached(place=place, target_end=target_end):
            return place, target_end
        case Begun(source_start=source_start, target_start=target_start):
            return source_start, target_start
        case UUID():
            return ()
        case _:
            return (field,)


def encode_value(value: Field) -> bytes:
    """Return what `decode_value` reads as this, of any key but a producer's."""
    match value:
        case Begun(source_start=source_start, target_start=target_start):
            numbers = struct.pack(">hqq", VALUE_VERSION, source_start, target_start)
            return numbers + value.topic_id.bytes + put_string(value.start)
        case Reached(place=place, target_end=target_end):
            return struct.pack(">hqq", VALUE_VERSION, place, target_end)
        case UUID():
            return struct.pack(">h", VALUE_VERSION) + value.bytes
        case _:
            return struct.pack(">hq", VALUE_VERSION, value)
