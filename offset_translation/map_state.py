"""The state that the records of a map topic make: maps, seals and who wrote them, by replay."""

from collections.abc import Mapping
from typing import assert_never
from uuid import UUID

from offset_translation.begins import Begins
from offset_translation.binary import MalformedRecord
from offset_translation.map_records import (
    BeginKey,
    BegunKey,
    Field,
    FlowBegunKey,
    MirrorProducer,
    MirrorProducerKey,
    PieceStartKey,
    Reached,
    ReachedKey,
    RunStartKey,
    Seal,
    SealKey,
    SetAsideKey,
    SourceTopicKey,
    StartDueKey,
    StateKey,
    TargetTopicKey,
    TrimmedKey,
    WriterKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    mirror_producer,
)
from offset_translation.offset_map import InconsistentPiece, OffsetMap
from offset_translation.runs import Place
from wire.topic_partition import TopicPartition


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
        self.begins = Begins()
        """Where the flow and its partitions were begun."""
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
            field = None if value is None else decode_value(decoded, value)
            if isinstance(decoded, WriterKey):
                return  # only who decides whom to believe looks at it
            if isinstance(decoded, BeginKey):
                self.begins.replay(decoded, field)
            elif field is None:
                self._withdraw(decoded)
            else:
                self._apply(decoded, field)
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
        value: Field | None
        match key:
            case WriterKey():
                return []
            case FlowBegunKey() | StartDueKey() | BegunKey():
                value = self.begins.value_of(key)
            case MirrorProducerKey(producer_id=producer_id):
                if producer_id not in self.producer_ids or self.producer is None:
                    return []
                known = MirrorProducer(producer_id=producer_id, producer_epoch=0)
                is_last = self.producer.producer_id == producer_id
                return [mirror_producer(one) for one in [known, self.producer][is_last:]]
            case SourceTopicKey(topic=topic):
                value = self.topic_ids.get(topic)
            case _:
                value = self._value_of(key, TopicPartition(key.topic, key.partition))
        return [] if value is None else [(encode_key(key), encode_value(value))]

    def _value_of(self, key: StateKey, name: TopicPartition) -> int | UUID | Reached | None:
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

    def _apply(self, key: StateKey, field: Field) -> None:
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

    def _withdraw(self, key: StateKey) -> None:
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
