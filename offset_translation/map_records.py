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

A place is a record's number in the mirrored stream. Without run starts it is the target offset, so
records of before there were run starts mean the same.

A record without value takes the one of the same key back. A piece start is durable before the
first record behind it is produced. The topic is a table: its meaning does not depend on the order
of different keys, so it may be compacted. Before a piece is announced in the place of starts whose
records never arrived, those starts are taken back.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias, assert_never
from uuid import UUID

from offset_translation.binary import Cursor, MalformedRecord, put_string
from offset_translation.offset_map import InconsistentPiece, OffsetMap
from offset_translation.runs import Place
from wire.topic_partition import TopicPartition

VALUE_VERSION: Final = 0


def map_topic_name(source: str) -> str:
    """Return the name of the topic, on the target, that maps what came from ``source``."""
    return f"{source}.offset-map.internal"


class Kind(IntEnum):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceStartKey:
    """A piece of (topic, partition) begins at this place."""

    topic: str
    partition: int
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class SealKey:
    """A seal: from this target offset on, the target's log grows by its own writers."""

    topic: str
    partition: int
    target_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStartKey:
    """A run: from this place on, records lie behind more records of the target's own."""

    topic: str
    partition: int
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedKey:
    """The least mirrored end of a partition that others write to."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedKey:
    """Everything before a place of a partition is forgotten, in one record for all its pieces."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTopicKey:
    """The topic on the target into which a partition was mirrored."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideKey:
    """Source offsets, from this one on, whose records were set aside and are not mirrored."""

    topic: str
    partition: int
    source_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorProducerKey:
    """A producer id that a mirror has used on this cluster."""

    producer_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTopicKey:
    """The source topic that was mirrored under this name."""

    topic: str


MapKey: TypeAlias = (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorProducer:
    """The producer id and epoch by which mirrored records are written."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Where the mirrored part of a partition ends on both sides."""

    source_end: int
    target_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The places before this one lie before this target offset, and no later one does."""

    place: Place
    target_end: int


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


def withdrawal(key: MapKey) -> tuple[bytes, None]:
    """Return the record that takes back the one of this key."""
    return encode_key(key), None


_OF_OFFSET: Final[dict[type, Kind]] = {
    PieceStartKey: Kind.PIECE_START,
    SealKey: Kind.SEAL,
    RunStartKey: Kind.RUN_START,
    SetAsideKey: Kind.SET_ASIDE,
}
"""The kinds of keys that name a partition and a place or offset in it."""

_OF_PARTITION: Final[dict[type, Kind]] = {
    ReachedKey: Kind.REACHED,
    TrimmedKey: Kind.TRIMMED,
    TargetTopicKey: Kind.TARGET_TOPIC,
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
            return struct.pack(">hq", Kind.MIRROR_PRODUCER, producer_id)
        case SourceTopicKey(topic=topic):
            return struct.pack(">h", Kind.SOURCE_TOPIC) + put_string(topic)
        case (
            ReachedKey(topic=topic, partition=index)
            | TrimmedKey(topic=topic, partition=index)
            | TargetTopicKey(topic=topic, partition=index)
        ):
            kind = _OF_PARTITION[type(key)]
            return struct.pack(">h", kind) + put_string(topic) + struct.pack(">i", index)
        case _:
            assert_never(key)


def decode_key(buffer: bytes) -> MapKey:
    """Decode a key; raises MalformedRecord."""
    cursor = Cursor(buffer)
    number = cursor.integer(2)
    key: MapKey
    match number:
        case Kind.PIECE_START:
            key = PieceStartKey(
                topic=cursor.string(), partition=cursor.integer(4), place=Place(cursor.integer(8))
            )
        case Kind.SEAL:
            key = SealKey(
                topic=cursor.string(), partition=cursor.integer(4), target_end=cursor.integer(8)
            )
        case Kind.MIRROR_PRODUCER:
            key = MirrorProducerKey(producer_id=cursor.integer(8))
        case Kind.SOURCE_TOPIC:
            key = SourceTopicKey(topic=cursor.string())
        case Kind.RUN_START:
            key = RunStartKey(
                topic=cursor.string(), partition=cursor.integer(4), place=Place(cursor.integer(8))
            )
        case Kind.REACHED:
            key = ReachedKey(topic=cursor.string(), partition=cursor.integer(4))
        case Kind.TRIMMED:
            key = TrimmedKey(topic=cursor.string(), partition=cursor.integer(4))
        case Kind.TARGET_TOPIC:
            key = TargetTopicKey(topic=cursor.string(), partition=cursor.integer(4))
        case Kind.SET_ASIDE:
            key = SetAsideKey(
                topic=cursor.string(), partition=cursor.integer(4), source_start=cursor.integer(8)
            )
        case _:
            raise MalformedRecord(f"unknown kind {number} of map record")
    cursor.finish()
    _refuse_negative(key)
    return key


def _refuse_negative(key: MapKey) -> None:
    """Raise MalformedRecord for a number that no mirror writes: -1 is every plain producer's id."""
    for name in ("partition", "place", "target_end", "producer_id", "source_start"):
        if getattr(key, name, 0) < 0:
            raise MalformedRecord(f"a map record cannot have {name} {getattr(key, name)}")


def decode_value(key: MapKey, buffer: bytes) -> int | UUID | Reached:
    """Decode what a value holds behind its version; raises MalformedRecord.

    The source start of a piece, the source end of a seal, the producer epoch, the topic id, the
    target start of a run, or how far it goes.
    """
    cursor = Cursor(buffer)
    version = cursor.integer(2)
    if version != VALUE_VERSION:
        raise MalformedRecord(f"unknown version {version} of a map record's value")
    field: int | UUID | Reached
    match key:
        case PieceStartKey() | SealKey() | RunStartKey() | TrimmedKey() | SetAsideKey():
            field = cursor.integer(8)
        case MirrorProducerKey():
            field = cursor.integer(2)
        case SourceTopicKey() | TargetTopicKey():
            field = UUID(bytes=cursor.raw(16))
        case ReachedKey():
            field = Reached(place=Place(cursor.integer(8)), target_end=cursor.integer(8))
        case _:
            assert_never(key)
    cursor.finish()
    numbers = (field.place, field.target_end) if isinstance(field, Reached) else (field,)
    if any(isinstance(number, int) and number < 0 for number in numbers):
        raise MalformedRecord(f"a map record cannot hold {field}")
    return field


def _encode_value(value: int | UUID | Reached) -> bytes:
    """Return what `decode_value` reads as this, of any key but a producer's."""
    match value:
        case Reached(place=place, target_end=target_end):
            return struct.pack(">hqq", VALUE_VERSION, place, target_end)
        case UUID():
            return struct.pack(">h", VALUE_VERSION) + value.bytes
        case _:
            return struct.pack(">hq", VALUE_VERSION, value)


class MapState:
    """The state that the records of a map topic make, replayed one by one.

    Target log ends are not in the topic: ``advance`` the maps before translating.
    """

    def __init__(self) -> None:
        self.maps: dict[TopicPartition, OffsetMap] = {}
        self.seals: dict[TopicPartition, Seal] = {}
        """The furthest seal of each partition; mirroring may have gone on behind it."""
        self.reached: dict[TopicPartition, Reached] = {}
        """The mirrored ends of partitions that others write to."""
        self.topic_ids: dict[str, UUID] = {}
        self.target_ids: dict[TopicPartition, UUID] = {}
        """The topics on the target that hold the copies; older maps do not say."""
        self.set_aside: dict[TopicPartition, dict[int, int]] = {}
        """Source offsets [start, end) of records that were set aside: they are not mirrored."""
        self.producer: MirrorProducer | None = None
        """The identity announced last."""
        self.producer_ids: set[int] = set()
        """Every producer id a mirror has used on this cluster; what carries one is mirrored."""
        self.rejected: list[str] = []
        """The faults of records that could not be understood; such records are left out."""
        self.contradictions: list[str] = []
        """The faults of map records that cannot be true together with others."""

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Apply one record; one that makes no sense is noted in ``rejected`` and left out."""
        try:
            decoded = decode_key(key or b"")
            if value is None:
                self._withdraw(decoded)
            else:
                self._apply(decoded, decode_value(decoded, value))
        except MalformedRecord as error:
            self.rejected.append(str(error))
        except InconsistentPiece as error:
            self.rejected.append(str(error))
            self.contradictions.append(str(error))

    def advance(self, target_ends: Mapping[TopicPartition, int]) -> None:
        """Tell every map the log end of its target partition.

        Where others write beside the mirror, only places that the mirror has noted (`reached`)
        count as mirrored.
        """
        for partition, target_end in target_ends.items():
            if partition in self.maps:
                offset_map = self.maps[partition]
                offset_map.advance(target_end)
                known = self.reached.get(partition)
                if known is not None and not offset_map.is_sealed:
                    offset_map.reach(min(known.place, offset_map.place_end))

    def bounded(self, partition: TopicPartition) -> OffsetMap | None:
        """Return the map of a partition that others may write to, if its mirrored end is known.

        That is so behind a seal, and where the mirror tells how far it has come.
        """
        offset_map = self.maps.get(partition)
        if offset_map is None or not (offset_map.is_sealed or partition in self.reached):
            return None
        return offset_map

    def records_of(self, encoded_key: bytes) -> list[tuple[bytes, bytes]]:
        """Return the records that say again what the state has under a key; none without it.

        What is trimmed is not said again, as no reader needs it. The producer that writes now comes
        last, as the identity announced last is the one that counts.
        """
        try:
            key = decode_key(encoded_key)
        except MalformedRecord:
            return []
        match key:
            case MirrorProducerKey(producer_id=producer_id):
                if producer_id not in self.producer_ids or self.producer is None:
                    return []
                known = MirrorProducer(producer_id=producer_id, producer_epoch=0)
                is_last = self.producer.producer_id == producer_id
                return [mirror_producer(one) for one in [known, self.producer][is_last:]]
            case SourceTopicKey(topic=topic):
                topic_id = self.topic_ids.get(topic)
                return [] if topic_id is None else [source_topic(topic, topic_id)]
            case _:
                value = self._value_of(key, TopicPartition(key.topic, key.partition))
                return [] if value is None else [(encode_key(key), _encode_value(value))]

    def _value_of(self, key: MapKey, name: TopicPartition) -> int | UUID | Reached | None:
        """Return what the state has under a key of a partition; None without it."""
        offset_map = self.maps.get(name) or OffsetMap()
        match key:
            case PieceStartKey(place=place):
                return offset_map.source_start_at(place)
            case SealKey(target_end=target_end):
                return offset_map.source_end_at_seal(target_end)
            case RunStartKey(place=place):
                return offset_map.runs.start_at(place)
            case SetAsideKey(source_start=source_start):
                return self.set_aside.get(name, {}).get(source_start)
            case ReachedKey():
                return self.reached.get(name)
            case _:
                return self.target_ids.get(name) if isinstance(key, TargetTopicKey) else None

    def _apply(self, key: MapKey, field: int | UUID | Reached) -> None:
        match key, field:
            case PieceStartKey(topic=topic, partition=partition, place=place), int(source):
                self._map(topic, partition).announce(source, place)
            case SealKey(topic=topic, partition=partition, target_end=end), int(source):
                self._map(topic, partition).seal(source, end)
                self._note_seal(topic, partition, Seal(source_end=source, target_end=end))
            case RunStartKey(topic=topic, partition=partition, place=place), int(target):
                self._map(topic, partition).begin_run(place, target)
            case ReachedKey(topic=topic, partition=partition), Reached() as reached_at:
                self.reached[TopicPartition(topic, partition)] = reached_at
            case TrimmedKey(topic=topic, partition=partition), int(place):
                self._map(topic, partition).forget_before(Place(place))
            case SetAsideKey(topic=topic, partition=partition, source_start=start), int(end):
                self.set_aside.setdefault(TopicPartition(topic, partition), {})[start] = end
            case MirrorProducerKey(producer_id=producer_id), int(epoch):
                self.producer = MirrorProducer(producer_id=producer_id, producer_epoch=epoch)
                self.producer_ids.add(producer_id)
            case SourceTopicKey(topic=topic), UUID() as topic_id:
                self.topic_ids[topic] = topic_id
            case TargetTopicKey(topic=topic, partition=partition), UUID() as topic_id:
                self.target_ids[TopicPartition(topic, partition)] = topic_id
            case _:
                raise AssertionError(f"{key} does not hold {field!r}")

    def _withdraw(self, key: MapKey) -> None:
        match key:
            case PieceStartKey(topic=topic, partition=partition, place=place):
                self._map(topic, partition).withdraw(place)
            case SealKey(topic=topic, partition=partition, target_end=target):
                self._map(topic, partition).unseal(target)
                current = self.seals.get(TopicPartition(topic, partition))
                if current is not None and current.target_end == target:
                    del self.seals[TopicPartition(topic, partition)]
            case RunStartKey(topic=topic, partition=partition, place=place):
                self._map(topic, partition).withdraw_run(place)
            case ReachedKey(topic=topic, partition=partition):
                self.reached.pop(TopicPartition(topic, partition), None)
            case TrimmedKey():
                pass  # what is forgotten stays so
            case MirrorProducerKey(producer_id=producer_id):
                self.producer_ids.discard(producer_id)
                if self.producer is not None and self.producer.producer_id == producer_id:
                    self.producer = None
            case SourceTopicKey() | TargetTopicKey() | SetAsideKey():
                self._forget(key)
            case _:
                assert_never(key)

    def _forget(self, key: SourceTopicKey | TargetTopicKey | SetAsideKey) -> None:
        match key:
            case SourceTopicKey(topic=topic):
                self.topic_ids.pop(topic, None)
            case TargetTopicKey(topic=topic, partition=partition):
                self.target_ids.pop(TopicPartition(topic, partition), None)
            case SetAsideKey(topic=topic, partition=partition, source_start=start):
                self.set_aside.get(TopicPartition(topic, partition), {}).pop(start, None)

    def _note_seal(self, topic: str, partition: int, seal: Seal) -> None:
        current = self.seals.get(TopicPartition(topic, partition))
        if current is None or current.target_end <= seal.target_end:
            self.seals[TopicPartition(topic, partition)] = seal

    def map_of(self, topic_partition: TopicPartition) -> OffsetMap:
        """Return a partition's map, which is empty where nothing was ever announced of it."""
        return self.maps.setdefault(topic_partition, OffsetMap())

    def _map(self, topic: str, partition: int) -> OffsetMap:
        return self.map_of(TopicPartition(topic, partition))
