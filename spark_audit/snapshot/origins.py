"""The origin of a log's records: brought by a mirror, or written by its own applications. Pure.

Where both directions of a file have run, each site's log holds the other one's records among its
own. The map of what came from there, on the same cluster, tells them apart: it keeps every producer
id that a mirror has used, each written before its first batch.

    dc1  |--a--b--c--|~~x~~y~~|--d--|       --- written there     ~~~ brought from the other site
    dc2  |~~a~~b~~c~~|--x--y--|~~d~~|

The direction from dc1 compares a, b, c, d; the one from dc2 compares x, y.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from offset_translation.binary import MalformedRecord
from offset_translation.map_records import (
    MirrorProducerKey,
    PieceStartKey,
    ReachedKey,
    RunStartKey,
    SealKey,
    SetAsideKey,
    TrimmedKey,
    decode_key,
    decode_value,
)
from wire.record_batch import BatchHeader
from wire.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """The marks of records that came from the other site, in one partition's log."""

    producer_ids: frozenset[int] = frozenset()
    start: int = 0
    stop: int = 0
    """All between these offsets came from there too, whoever wrote it: a MirrorMaker that was taken
    over has left no producer id, and what strangers wrote to a site at rest is to be found."""

    def has(self, header: BatchHeader) -> bool:
        """Return whether this batch came from the other site.

        A batch whose producer id no map names counts as its site's own, and so as lost on the
        other: such a mistake is loud, never silent.
        """
        is_between = self.start <= header.base_offset < self.stop
        return is_between or header.producer_id in self.producer_ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The part of a log that is read: what was brought there, or all else."""

    brought: Brought
    is_brought: bool

    def takes(self, header: BatchHeader) -> bool:
        """Return whether a batch belongs to it."""
        return self.brought.has(header) == self.is_brought


@dataclass(slots=True)
class Arrivals:
    """The origins that a cluster's map of arrivals from the other site tells.

    `MapState` is not used for it: its maps are not needed here, and it forgets the first seal.
    """

    producer_ids: set[int] = field(default_factory=set)
    set_aside: defaultdict[TopicPartition, dict[int, int]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """Offsets [start, stop) of the other site, by start, whose records did not come on purpose."""
    _starts: dict[TopicPartition, int] = field(default_factory=dict)
    """Where the first piece of each partition begins."""
    _seals: defaultdict[TopicPartition, set[int]] = field(
        default_factory=lambda: defaultdict(set[int])
    )
    _shared: set[TopicPartition] = field(default_factory=set)
    """Partitions that both sites have written to at once, or of whose beginning nothing is known.
    """

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Take the next record of the map topic; a record of another kind says nothing."""
        try:
            decoded = decode_key(key or b"")
        except MalformedRecord:
            return
        match decoded:
            case MirrorProducerKey(producer_id=producer_id):
                _keep(self.producer_ids, producer_id, is_said=value is not None)
            case SealKey(topic=topic, partition=partition, target_end=end):
                _keep(self._seals[TopicPartition(topic, partition)], end, is_said=value is not None)
            case PieceStartKey(topic=topic, partition=partition, place=start):
                self._begin(TopicPartition(topic, partition), start, is_said=value is not None)
            case (
                RunStartKey(topic=topic, partition=partition)
                | ReachedKey(topic=topic, partition=partition)
                | TrimmedKey(topic=topic, partition=partition)
            ):
                self._shared.add(TopicPartition(topic, partition))
            case SetAsideKey(topic=topic, partition=partition, source_start=start):
                self._set_aside(TopicPartition(topic, partition), start, decoded, value)
            case _:
                pass

    def _set_aside(
        self, partition: TopicPartition, start: int, key: SetAsideKey, value: bytes | None
    ) -> None:
        if value is None:
            self.set_aside[partition].pop(start, None)
            return
        try:
            stop = decode_value(key, value)
        except MalformedRecord:
            return
        assert isinstance(stop, int), "the value is an offset"
        self.set_aside[partition][start] = stop

    def _begin(self, partition: TopicPartition, start: int, *, is_said: bool) -> None:
        first = self._starts.get(partition)
        if is_said:
            self._starts[partition] = start if first is None else min(first, start)
        elif start == first:
            self._shared.add(partition)

    def brought(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Brought]:
        """Return how arrivals are known in each of these partitions.

        Between the first piece and the first seal all records count as brought.
        """
        producer_ids = frozenset(self.producer_ids)
        return {
            partition: Brought(producer_ids=producer_ids, start=start, stop=stop)
            for partition in partitions
            for start, stop in [self._undivided(partition)]
        }

    def _undivided(self, partition: TopicPartition) -> tuple[int, int]:
        ends = self._seals.get(partition)
        if not ends or partition not in self._starts or partition in self._shared:
            return 0, 0
        return self._starts[partition], min(ends)


def _keep(kept: set[int], value: int, *, is_said: bool) -> None:
    if is_said:
        kept.add(value)
    else:
        kept.discard(value)
