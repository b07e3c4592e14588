"""The flow in the other direction, which writes into our source, as far as is known. No I/O.

While both directions run, the other mirror may begin to write into our source at any moment. Its id
is in its map before its first batch is in a log, but we have read that map some time before. So a
chunk is cut before the first batch of an unknown producer, which may be a mirror.

Records of that map that are not believed may be the other mirror's all the same: an old copy of the
witness does not know who has written them. Of a producer that they call a mirror nothing is sent
on: its records may have come from our target, and would be there twice.
"""

from collections.abc import Callable, Collection, Container, Iterable
from itertools import islice
from typing import Final, NamedTuple

from mirror.state.partition import MirroredPartition
from offset_translation.binary import MalformedRecord
from offset_translation.map_records import MirrorProducerKey, decode_key, partition_of
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from wire.record_batch import CorruptBatch
from wire.record_batch.header import HEADER, HEADER_BYTES, MAGIC, batch_size
from wire.topic_partition import TopicPartition

WRITER: Final = 9
"""The index of the producer id among the header's fields."""
MAGIC_AT: Final = 3
NO_PRODUCER_ID: Final = -1
KNOWN_IDS: Final = 100_000
"""So many producer ids are remembered; then all are asked for again."""


class UnbelievedArrivals:
    """What records of the map say that are not believed, and may be the mirror's all the same."""

    __slots__ = ("_partitions", "_producers")

    def __init__(self) -> None:
        self._producers: set[int] = set()
        self._partitions: set[TopicPartition] = set()

    def note(self, key: bytes | None) -> None:
        """Take note of the key of such a record."""
        try:
            named = decode_key(key or b"")
        except MalformedRecord:
            return
        if isinstance(named, MirrorProducerKey) and len(self._producers) < KNOWN_IDS:
            self._producers.add(named.producer_id)
        elif len(self._partitions) < KNOWN_IDS:
            self._partitions |= partition_of(key)

    @property
    def name_producers(self) -> bool:
        """Whether they name any producer as a mirror."""
        return bool(self._producers)

    def name(self, producer_id: int) -> bool:
        """Tell whether they name this one; where there are too many to tell, everybody with an id.

        Another pair may have its map in the same topic, and its mirror writes to other partitions.
        """
        if len(self._producers) >= KNOWN_IDS:
            return producer_id != NO_PRODUCER_ID
        return producer_id in self._producers

    def speak_of(self, partition: TopicPartition) -> bool:
        """Tell whether any may speak of this partition."""
        return len(self._partitions) >= KNOWN_IDS or partition in self._partitions


class ReverseFlow:
    """The other direction's map, and which producers of our source are mirrors.

    That map has the target's names. Its keys come here with ours: `mirror.map.reverse_map`.
    """

    __slots__ = (
        "_natives",
        "_unknown_producers",
        "arrivals",
        "arrived",
        "former_names",
        "loop_ids",
        "unbelieved",
    )

    def __init__(self) -> None:
        self.arrived = MapState()
        """The map of the other direction: what came into the source from the target."""
        self.arrivals = 0
        """Grows with what is learned of it."""
        self.loop_ids: frozenset[int] = frozenset()
        """Producer ids of mirrors that write into the source."""
        self.unbelieved = UnbelievedArrivals()
        """The rest of the map: of these producers and partitions nothing is known."""
        self.former_names: set[str] = set()
        """The topics of which that map speaks, and which come into no topic of ours now."""
        self._natives = {NO_PRODUCER_ID}
        """Producer ids on the source that are no mirror's; learned where both directions run."""
        self._unknown_producers: set[int] = set()

    @property
    def unknown_producers(self) -> frozenset[int]:
        """Producer ids that may be mirrors: nothing behind their batches is routed."""
        return frozenset(self._unknown_producers)

    @property
    def meets_unknown(self) -> bool:
        """Whether there is any."""
        return bool(self._unknown_producers)

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Take one record of the other direction's map over."""
        self.arrived.replay(key, value)
        self.arrivals += 1

    def note_former(self, names: Iterable[str]) -> None:
        """Take note of topics of the target that came into topics of ours by other names."""
        self.former_names.update(islice(names, KNOWN_IDS - len(self.former_names)))

    def take_anew(self, arrived: MapState, unbelieved: UnbelievedArrivals) -> None:
        """Take over a map that was begun anew; producers known as mirrors stay mirrors."""
        arrived.producer_ids |= self.loop_ids
        self.arrived = arrived
        self.unbelieved = unbelieved
        self.arrivals += 1

    def know_mirrors(self) -> None:
        """Take the producers of the map, as far as it has been read, for mirrors."""
        self.loop_ids = frozenset(self.arrived.producer_ids)

    def know_natives(self, met: Collection[int]) -> None:
        """Take producers met before the map was read, and not in it, for no mirrors.

        A mirror's id is in the map before its first batch is in a log.
        """
        if len(self._natives) > KNOWN_IDS:
            self._natives = {NO_PRODUCER_ID}
        self._natives.update(one for one in met if not self._may_be_mirror(one))
        self._unknown_producers.difference_update(met)

    def _may_be_mirror(self, producer_id: int) -> bool:
        return producer_id in self.loop_ids or self.unbelieved.name(producer_id)

    def undoubted_part(self, records: memoryview) -> "Known":
        """Return the records before the first batch of a producer that may be a mirror."""
        return _before(
            records, lambda writer: writer not in self.loop_ids and self.unbelieved.name(writer)
        )

    def known_part(self, records: memoryview) -> memoryview:
        """Return the records before the first batch of an unknown producer."""
        known, unknown = before_unknown(records, self._natives, self.loop_ids)
        if unknown is not None:
            self._unknown_producers.add(unknown)
        return known

    def has_map_of(self, topic_partition: TopicPartition) -> bool:
        """Whether anything ever came into this partition from the target, as far as is known."""
        return topic_partition in self.arrived.maps

    def lacks_map_of(self, topic_partition: TopicPartition) -> bool:
        """Whether something may have come, and nobody who is believed says so."""
        return not self.has_map_of(topic_partition) and self.unbelieved.speak_of(topic_partition)

    def is_unknown(self, partition: MirroredPartition) -> bool:
        """Whether records of the source partition may have come from the target, and which not."""
        return self.lacks_map_of(partition.topic_partition)

    def map_of(self, topic_partition: TopicPartition, source_end: int) -> OffsetMap | None:
        """Return the map of what came into a partition whose log ends there, if it is sure."""
        self.arrived.advance({topic_partition: source_end})
        return self.arrived.bounded(topic_partition)

    def backward(self, partition: MirroredPartition | None) -> OffsetMap | None:
        """Return the map of the records that came back into a source partition, None if unknown."""
        if partition is None or not self.has_map_of(partition.topic_partition):
            return None
        if partition.source.end is None:
            return None
        return self.map_of(partition.topic_partition, partition.source.end)


def may_hold_own(reverse: ReverseFlow, partition: MirroredPartition) -> bool:
    """Whether the target's copy of a partition holds records of its own, or nobody can tell."""
    return reverse.backward(partition) is not None or reverse.is_unknown(partition)


class Known(NamedTuple):
    """The part of a chunk whose writers are all known, and the other producer behind it."""

    records: memoryview
    unknown: int | None


def before_unknown(records: memoryview, *sets: Container[int]) -> Known:
    """Return the records before the first batch of a producer that none of the sets has."""
    return _before(records, lambda writer: not any(writer in known for known in sets))


def _before(records: memoryview, is_met: Callable[[int], bool]) -> Known:
    """Return the records before the first batch of such a producer.

    Bytes that are no batch are left to the check behind this.
    """
    position = 0
    while len(records) - position >= HEADER_BYTES:
        fields = HEADER.unpack_from(records, position)
        writer = fields[WRITER]
        if fields[MAGIC_AT] == MAGIC and is_met(writer):
            return Known(records[:position], writer)
        try:
            size = batch_size(records, position)
        except CorruptBatch:
            break  # routing comes to it, and says so
        if size is None:
            break
        position += size
    return Known(records, None)
