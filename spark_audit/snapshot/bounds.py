"""The bounds of each partition on both sides that one audit of a flow compares. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from offset_translation import OffsetMap
from offset_translation.map_records import Begun
from spark_audit.snapshot.different_rights import DifferentRight
from spark_audit.snapshot.origins import Brought, Part
from spark_audit.snapshot.seals import Promotion, Seal
from spark_audit.snapshot.side import Side
from spark_audit.snapshot.topic_settings import DifferentSetting
from wire.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBounds:
    """Offsets [start, stop) of one partition's log; `stop` is the last stable offset."""

    start: int
    stop: int
    topic_id: UUID
    is_compacted: bool
    held_back: int = 0
    """So many offsets lie behind `stop`, as long as a transaction is open there."""


EMPTY_LOG = LogBounds(start=0, stop=0, topic_id=UUID(int=0), is_compacted=False)
"""Stands for a partition that a side does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEnd:
    """Where the mirrored part of a target's log ended when an audit looked, and when that was."""

    stop: int
    at_ms: int

    @property
    def words(self) -> str:
        """Return where the log ended, and when, as words for people."""
        at = datetime.fromtimestamp(self.at_ms / 1_000, UTC).isoformat(timespec="seconds")
        return f"the target's log ended at {self.stop} in the audit of {at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What the mirror wrote of a partition into the witness before the snapshot."""

    source_end: int
    """The source offset before which the mirror had brought everything."""
    at_ms: int

    @property
    def words(self) -> str:
        """Return the promise as words for people."""
        at = datetime.fromtimestamp(self.at_ms / 1_000, UTC).isoformat(timespec="seconds")
        return f"the mirror had brought all before offset {self.source_end} by {at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeStart:
    """Records of the source that a flow leaves there on purpose: those before its `start`."""

    log_start: int
    """Where the source's log begins; the bounds begin at `begin`, or behind it."""
    begin: int
    """The source offset at which the mirror began, as its map says."""
    start: str
    """The `start` by which it did."""

    @property
    def offsets(self) -> int:
        """Return of how many offsets the source may have records that are not carried."""
        return max(0, self.begin - self.log_start)


class GroupPlace(NamedTuple):
    """One group's positions in one partition, on both sides."""

    group: str
    source: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBounds:
    """One partition of a topic on both sides."""

    topic: str
    partition: int
    source: LogBounds
    target: LogBounds
    seal: Seal | None
    seen: SeenEnd | None = None
    """Where an earlier audit saw the target's log end, if that is beyond its end now."""
    source_seen: SeenEnd | None = None
    """Where the source's log ended when an audit first saw what waits now."""
    promise: Promise | None = None
    to_source: Brought | None = None
    to_target: Brought | None = None
    """What was brought to each side. None: nothing to the source, and to the target all that lies
    before its seal."""
    set_aside: tuple[tuple[int, int], ...] = ()
    """Source offsets [start, stop), in order, of records that the flow leaves out, and that lie in
    the `.diverged` topic on the target."""
    target_topic: str | None = None
    """The topic's name on the target, where that is another one than on the source."""
    before_start: BeforeStart | None = None
    """What the flow leaves on the source on purpose; `source` begins behind it."""

    @property
    def is_both_ways(self) -> bool:
        """Return whether both logs may hold what either site wrote."""
        return self.to_target is not None

    def is_set_aside(self, source_offset: int) -> bool:
        """Return whether the record at a source offset was set aside, and is there."""
        index = bisect_right(self.set_aside, source_offset, key=lambda part: part[0]) - 1
        return index >= 0 and source_offset < self.set_aside[index][1]

    @property
    def source_begin(self) -> int:
        """Return the source offset at which the mirror began."""
        return 0 if self.before_start is None else self.before_start.begin

    @property
    def source_gone(self) -> int:
        """Return how many offsets at the source's beginning are gone and may have been mirrored."""
        return self.source.start - min(self.source_begin, self.source.start)

    @property
    def whole_source_start(self) -> int:
        """Return where the source's log begins, with what the flow leaves there on purpose."""
        return self.source.start if self.before_start is None else self.before_start.log_start

    @property
    def mirrored_stop(self) -> int:
        """Return where the mirrored part of the target's log ends."""
        return (
            self.target.stop if self.seal is None else min(self.seal.target_end, self.target.stop)
        )

    def side(self, side: Side) -> tuple[LogBounds, int, int]:
        """Return the log a side is read from, and the offsets [start, stop) that belong to it."""
        match side:
            case Side.SOURCE:
                return self.source, self.source.start, self.source.stop
            case Side.TARGET:
                start = min(self.target.start, self.mirrored_stop)
                return self.target, start, self.mirrored_stop
            case Side.NATIVE if self.is_both_ways:
                return self.target, self.target.start, self.target.stop
            case Side.NATIVE:
                return self.target, max(self.target.start, self.mirrored_stop), self.target.stop
            case Side.RETURNED:
                start = self.whole_source_start if self.is_both_ways else self.source.stop
                return self.source, start, self.source.stop

    def place(self, side: Side) -> TopicPartition:
        """Return the partition as the cluster that has a side's log calls it."""
        is_source = side in {Side.SOURCE, Side.RETURNED}
        topic = self.topic if is_source else self.target_topic or self.topic
        return TopicPartition(topic, self.partition)

    def part(self, side: Side) -> Part | None:
        """Return which batches between a side's offsets belong to it; None for all."""
        of_source = side in {Side.SOURCE, Side.RETURNED}
        brought = self.to_source if of_source else self.to_target
        if brought is None:
            return None
        return Part(brought=brought, is_brought=side in {Side.TARGET, Side.RETURNED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The bounds of all partitions of one flow at one time."""

    flow: str
    source: str
    target: str
    taken_ms: int
    """Wall clock, before the first offset was asked for."""
    promotion: int | None
    """The epoch of the promotion that ended the flow."""
    partitions: tuple[PartitionBounds, ...]
    only_on_target: tuple[str, ...]
    """Topics that the flow's patterns name and only the target has: not audited."""
    told_set: str | None = None
    """The set of topics that messages name in commands; None where the file has none."""
    prefix: str = ""
    """What stands before the name of each topic on the target, but for those `renamed`."""
    renamed: tuple[tuple[str, str], ...] = ()
    """The topics with given names on the target, each with its name there."""
    untold: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Why the bounds of other partitions are not known."""
    places: Mapping[TopicPartition, tuple[GroupPlace, ...]] = field(default_factory=dict)
    """Positions of groups, which were asked for before the logs' ends, the target's first."""
    maps: Mapping[TopicPartition, OffsetMap] = field(default_factory=dict)
    """The offset map, advanced to the target's ends."""
    unaudited: tuple[str, ...] = ()
    """Why positions or the map could not be asked for."""
    settings: tuple[DifferentSetting, ...] = ()
    """Settings of the flow's topics that differ between the sites."""
    rights: tuple[DifferentRight, ...] = ()
    """Rights to the flow's topics, and to the clusters, that one site alone has."""
    rights_not_compared: str | None = None
    """Why the rights were not compared: a cluster without an authorizer, or one that denies it."""
    cluster_ids: Mapping[str, str | None] = field(default_factory=dict)
    """The id of each site's cluster, as far as it has one."""

    def without_vanished(self, places: Iterable[TopicPartition]) -> "Snapshot":
        """Return the snapshot with those of these partitions untold of which the target alone has
        the topic: they are known to be copies. Behind a promotion the old site may lack them.
        """
        if self.promotion is not None:
            return self
        given = dict(self.renamed)
        return self.without(
            {
                place: f"{place}: {self.source} has no such topic any more, and {self.target} has "
                "the copy: make it again from the copy, or delete the copy"
                for place in places
                if given.get(place.topic, self.prefix + place.topic) in self.only_on_target
            }
        )

    def without(self, untold: Mapping[TopicPartition, str]) -> "Snapshot":
        """Return the snapshot without partitions that turned out to be untold.

        Behind a promotion their whole topic is left out: applications may have written records
        there again that are missing elsewhere.
        """
        topics = {topic: why for (topic, _), why in untold.items() if self.promotion is not None}
        known: list[PartitionBounds] = []
        left_out = {**self.untold, **untold}
        for bounds in self.partitions:
            if (bounds.topic, bounds.partition) in untold:
                continue
            if bounds.topic in topics:
                left_out[TopicPartition(bounds.topic, bounds.partition)] = topics[bounds.topic]
            else:
                known.append(bounds)
        return replace(self, partitions=tuple(known), untold=left_out)


NOTHING: Final[Mapping[TopicPartition, Brought]] = MappingProxyType({})


def begun_behind(bounds: PartitionBounds, begun: Begun | None) -> PartitionBounds:
    """Return the bounds from the begin on of a partition of which the source keeps what is before.

    What is before it is neither lost nor compared: it is explained, and counted.
    """
    if begun is None:
        return bounds
    log = bounds.source
    left = BeforeStart(
        log_start=log.start, begin=min(begun.source_start, log.stop), start=begun.start
    )
    return replace(bounds, source=replace(log, start=max(log.start, left.begin)), before_start=left)


def join_bounds(
    source: Mapping[TopicPartition, LogBounds],
    target: Mapping[TopicPartition, LogBounds],
    promotion: Promotion | None,
    to_source: Mapping[TopicPartition, Brought] = NOTHING,
    to_target: Mapping[TopicPartition, Brought] = NOTHING,
    set_aside: Mapping[TopicPartition, tuple[tuple[int, int], ...]] = MappingProxyType({}),
) -> tuple[PartitionBounds, ...]:
    """Return every partition that either side has of the source's topics, in order."""
    topics = {topic for topic, _ in source}
    return tuple(
        PartitionBounds(
            topic=topic,
            partition=partition,
            source=source.get(TopicPartition(topic, partition), EMPTY_LOG),
            target=target.get(TopicPartition(topic, partition), EMPTY_LOG),
            seal=None if promotion is None else promotion.seal(topic, partition),
            to_source=to_source.get(TopicPartition(topic, partition)),
            to_target=to_target.get(TopicPartition(topic, partition)),
            set_aside=set_aside.get(TopicPartition(topic, partition), ()),
        )
        for topic, partition in sorted({*source, *target})
        if topic in topics
    )
