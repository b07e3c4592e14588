"""The flow in the other direction, which writes into our source, as far as is known. No I/O.

While both directions run, the other mirror may begin to write into our source at any moment. Its id
is in its map before its first batch is in a log, but we have read that map some time before. So a
chunk is cut before the first batch of an unknown producer, which may be a mirror.
"""

from collections.abc import Collection, Container
from typing import Final, NamedTuple

from mirror.state.partition import MirroredPartition
from offset_translation.map_records import MapState
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


class ReverseFlow:
    """The other direction's map, and which producers of our source are mirrors."""

    __slots__ = ("_natives", "_unknown_producers", "arrivals", "arrived", "loop_ids")

    def __init__(self) -> None:
        self.arrived = MapState()
        """The map of the other direction: what came into the source from the target."""
        self.arrivals = 0
        """Grows with what is learned of it."""
        self.loop_ids: frozenset[int] = frozenset()
        """Producer ids of mirrors that write into the source."""
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

    def take_anew(self, arrived: MapState) -> None:
        """Take over a map that was begun anew; producers known as mirrors stay mirrors."""
        arrived.producer_ids |= self.loop_ids
        self.arrived = arrived
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
        self._natives.update(set(met) - self.loop_ids)
        self._unknown_producers.difference_update(met)

    def known_part(self, records: memoryview) -> memoryview:
        """Return the records before the first batch of an unknown producer."""
        known, unknown = before_unknown(records, self._natives, self.loop_ids)
        if unknown is not None:
            self._unknown_producers.add(unknown)
        return known

    def has_map_of(self, topic_partition: TopicPartition) -> bool:
        """Whether anything ever came into this partition from the target, as far as is known."""
        return topic_partition in self.arrived.maps

    def map_of(self, topic_partition: TopicPartition, source_end: int) -> OffsetMap | None:
        """Return the map of what came into a partition whose log ends there, if it is sure."""
        self.arrived.advance({topic_partition: source_end})
        return self.arrived.bounded(topic_partition)

    def backward(self, partition: MirroredPartition | None) -> OffsetMap | None:
        """Return the map of the records that came back into a source partition, None if unknown."""
        if partition is None or not self.has_map_of(partition.topic_partition):
            return None
        if partition.source.end is None or partition.target_topic != partition.topic:
            return None  # by another name, what came from there has another topic to itself
        return self.map_of(partition.topic_partition, partition.source.end)


class Known(NamedTuple):
    """The part of a chunk whose writers are all known, and the unknown producer behind it."""

    records: memoryview
    unknown: int | None


def before_unknown(records: memoryview, *sets: Container[int]) -> Known:
    """Return the records before the first batch of a producer that none of the sets has.

    Bytes that are no batch are left to the check behind this.
    """
    position = 0
    while len(records) - position >= HEADER_BYTES:
        fields = HEADER.unpack_from(records, position)
        writer = fields[WRITER]
        if fields[MAGIC_AT] == MAGIC and not any(writer in known for known in sets):
            return Known(records[:position], writer)
        try:
            size = batch_size(records, position)
        except CorruptBatch:
            break  # routing comes to it, and says so
        if size is None:
            break
        position += size
    return Known(records, None)
