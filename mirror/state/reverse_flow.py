"""The flow in the other direction, which writes into our source, as far as is known. No I/O."""

from collections.abc import Collection
from typing import Final

from mirror.state.unknown_producers import before_unknown
from offset_translation.map_records import MapState
from offset_translation.offset_map import OffsetMap
from wire.topic_partition import TopicPartition

NO_PRODUCER_ID: Final = -1
KNOWN_IDS: Final = 100_000
"""So many producer ids are remembered; then all are asked for again."""


class ReverseFlow:
    """The other direction's map, and which producers of our source are mirrors."""

    __slots__ = ("arrivals", "arrived", "loop_ids", "natives", "unknown_producers")

    def __init__(self) -> None:
        self.arrived = MapState()
        """The map of the other direction: what came into the source from the target."""
        self.arrivals = 0
        """Grows with what is learned of it."""
        self.loop_ids: frozenset[int] = frozenset()
        """Producer ids of mirrors that write into the source."""
        self.natives = {NO_PRODUCER_ID}
        """Producer ids on the source that are no mirror's; learned where both directions run."""
        self.unknown_producers: set[int] = set()
        """Producer ids of which that is not known yet: nothing behind their batches is routed."""

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
        if len(self.natives) > KNOWN_IDS:
            self.natives = {NO_PRODUCER_ID}
        self.natives.update(set(met) - self.loop_ids)
        self.unknown_producers.difference_update(met)

    def known_part(self, records: memoryview) -> memoryview:
        """Return the records before the first batch of an unknown producer."""
        known, unknown = before_unknown(records, self.natives, self.loop_ids)
        if unknown is not None:
            self.unknown_producers.add(unknown)
        return known

    def has_map_of(self, topic_partition: TopicPartition) -> bool:
        """Whether anything ever came into this partition from the target, as far as is known."""
        return topic_partition in self.arrived.maps

    def map_of(self, topic_partition: TopicPartition, source_end: int) -> OffsetMap | None:
        """Return the map of what came into a partition whose log ends there, if it is sure."""
        self.arrived.advance({topic_partition: source_end})
        return self.arrived.bounded(topic_partition)
