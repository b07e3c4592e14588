"""Asks both clusters and the witness for the bounds of what one audit compares.

The order makes the answer safe without stopping anything:

    1. the target's offsets   what is there now was on the source before, so
    2. the source's offsets   take in all of it, and what they have more is in flight, not lost
    3. the journals           a promotion before 1. is found, and its seal, not the log's end,
                              bounds the mirrored part, whatever applications wrote since

A promotion that sealed the flow in between begins the snapshot anew: by its seal, records that were
drained after 1. would count as lost. So the journals are read before 1., too.
"""

import re
from collections.abc import AsyncIterator, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from offset_translation import MapState, OffsetMap
from offset_translation.renamed_keys import Renaming
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.running_flow import explain, find_differences
from runtime.configuration.witness_session import open_witness
from runtime.coordination.long_nodes import read_document
from runtime.coordination.map_registry import WitnessWriters
from runtime.coordination.witness import ActiveSite, WitnessGarbled, WitnessPaths
from runtime.coordination.zookeeper import ZNode, ZooKeeper, ZooKeeperFault
from spark_audit.snapshot.arrival_map import MapOf, ReadMap, read_map
from spark_audit.snapshot.bounds import (
    PartitionBounds,
    Promise,
    Snapshot,
    begun_behind,
    join_bounds,
)
from spark_audit.snapshot.cluster_bounds import (
    AuditedCluster,
    ClusterBounds,
    Logs,
    ask_bounds,
    open_site,
    patiently,
)
from spark_audit.snapshot.origins import Brought
from spark_audit.snapshot.promises import GroupPlaces, group_places, promises
from spark_audit.snapshot.rights import ask_rights
from spark_audit.snapshot.seals import CannotTell, Promotion, promotion_of
from spark_audit.snapshot.set_aside import read_set_aside
from spark_audit.snapshot.side import Side
from spark_audit.snapshot.topic_settings import (
    DifferentSetting,
    different_settings,
)
from wire.errors import ErrorCode, describe
from wire.topic_partition import TopicPartition

_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
"""What a topic may be called, and a pattern with nothing but that: a dot stands for itself, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFilter:
    """The topics of a flow; `only`, if not empty, narrows them to these names."""

    flow: FlowConfig
    only: frozenset[str] = frozenset()
    is_both_ways: bool = False
    """The other direction may have run too."""

    def matches(self, topic: str) -> bool:
        """Return whether the topic is audited."""
        return self.flow.moves(topic) and (not self.only or topic in self.only)

    @property
    def named(self) -> frozenset[str]:
        """Return the topics that patterns name as they are: both sites may hide them from us."""
        patterns = (one.pattern for one in self.flow.topics.include)
        return frozenset(one for one in patterns if _NAME.fullmatch(one) and self.matches(one))

    @property
    def on_target(self) -> "CopiesOf":
        """Return the same topics by the names that they have on the target."""
        return CopiesOf(self)


@dataclass(frozen=True, slots=True)
class CopiesOf:
    """The copies on a flow's target of some of its topics."""

    topics: TopicFilter

    def matches(self, topic: str) -> bool:
        """Return whether the topic, by the target's name, is the copy of one that is audited."""
        source_topic = self.topics.flow.names.on_source(topic)
        return source_topic is not None and self.topics.matches(source_topic)


async def take_snapshot(
    configuration: Configuration, wants: TopicFilter, *, now_ms: int
) -> Snapshot:
    """Return the bounds of the flow's topics; CannotTell if a cluster or the witness is down."""
    flow, clusters = wants.flow, configuration.clusters
    async with (
        open_site(clusters[flow.source], wants) as source,
        open_site(clusters[flow.target], wants.on_target) as target,
    ):
        await _require_same_settings(configuration, flow)
        promotion = await _promotion(configuration, wants)
        promised = await _promises(configuration, flow)
        places = GroupPlaces()
        if promotion is None and not wants.is_both_ways:
            places = await group_places(source.cluster, target.cluster, flow)
        on_source, on_target, promotion = await _bounds_in_order(
            configuration, source, target, wants, promotion
        )
        partitions = {*on_source.logs, *on_target.logs}
        brought = await _brought(configuration, source, target, wants, partitions)
        names = {topic: flow.names.on_target(topic) for topic in on_source.topics}
        rights, not_compared = await ask_rights(source, target, flow, names)
        absent = (on_source.topics | wants.named) - on_target.topics
        await _require_absent(target, {flow.names.on_target(topic) for topic in absent})
        await _require_absent(source, (on_target.topics | wants.named) - on_source.topics)
    _require_all_found(wants, on_source.topics)
    joined = _joined(on_source, on_target, promotion, brought)
    snapshot = Snapshot(
        flow=flow.name,
        source=flow.source,
        target=flow.target,
        taken_ms=now_ms,
        promotion=None if promotion is None else promotion.epoch,
        told_set=flow.told_set,
        partitions=tuple(_complete(bounds, names, promised) for bounds in joined),
        only_on_target=tuple(
            sorted(map(flow.names.on_target, on_target.topics - on_source.topics))
        ),
        prefix=flow.names.prefix,
        renamed=tuple(sorted(flow.renames.to_target.items())),
        places=places.by_partition,
        maps={} if wants.is_both_ways else _advanced(brought.state, on_target.logs),
        unaudited=(*places.unaudited, *brought.unaudited),
        settings=_different_settings(flow, on_source, on_target),
        rights=rights,
        rights_not_compared=not_compared,
        cluster_ids={flow.source: on_source.cluster_id, flow.target: on_target.cluster_id},
    ).without(
        {
            partition: why
            for partition, why in sorted({**on_target.untold, **on_source.untold}.items())
            if partition[0] in on_source.topics
        }
    )
    snapshot = snapshot.without_vanished(promised)
    if not snapshot.partitions and snapshot.untold:
        raise CannotTell(min(snapshot.untold.values()))
    return snapshot


async def _bounds_in_order(
    configuration: Configuration,
    source: AuditedCluster,
    target: AuditedCluster,
    wants: TopicFilter,
    promotion: Promotion | None,
) -> tuple[ClusterBounds, ClusterBounds, Promotion | None]:
    """Return the source's bounds and the target's, which are older, and the promotion before both.

    What was asked for around a promotion is asked for again.
    """
    while True:
        on_target = (await ask_bounds(target)).renamed(wants.flow.names.on_source)
        on_source = await ask_bounds(source)
        before, promotion = promotion, await _promotion(configuration, wants)
        if promotion == before:
            return on_source, on_target, promotion


def _joined(
    on_source: ClusterBounds,
    on_target: ClusterBounds,
    promotion: Promotion | None,
    brought: "_Brought",
) -> tuple[PartitionBounds, ...]:
    joined = join_bounds(
        on_source.logs,
        on_target.logs,
        promotion,
        brought.to_source,
        brought.to_target,
        brought.set_aside,
    )
    begins = brought.state.begins
    return tuple(
        begun_behind(one, begins.of(one.place(Side.SOURCE), one.source.topic_id)) for one in joined
    )


def _different_settings(
    flow: FlowConfig, source: ClusterBounds, target: ClusterBounds
) -> tuple[DifferentSetting, ...]:
    return tuple(
        one
        for topic in sorted(source.settings.keys() & target.settings.keys())
        for one in different_settings(
            topic, source.settings[topic], target.settings[topic], flow.settings.names.matches
        )
    )


def _complete(
    bounds: PartitionBounds,
    names: Mapping[str, str],
    promised: Mapping[TopicPartition, Promise],
) -> PartitionBounds:
    """Return the bounds with the topic's name on the target, and what the mirror promised."""
    name = names[bounds.topic]
    bounds = replace(bounds, target_topic=None if name == bounds.topic else name)
    if bounds.is_both_ways:
        return bounds
    return replace(
        bounds,
        promise=promised.get(TopicPartition(bounds.topic, bounds.partition)),
    )


def _advanced(state: MapState, logs: Logs) -> Mapping[TopicPartition, OffsetMap]:
    state.advance({partition: log.stop for partition, log in logs.items()})
    return {partition: found for partition, found in state.maps.items() if partition in logs}


async def _promises(
    configuration: Configuration, flow: FlowConfig
) -> Mapping[TopicPartition, Promise]:
    async with _open_witness(configuration) as (zookeeper, paths):
        return await promises(zookeeper, paths, flow)


async def _require_same_settings(configuration: Configuration, flow: FlowConfig) -> None:
    """Raise CannotTell if the mirror runs this flow by other settings than the file has."""
    async with _open_witness(configuration) as (zookeeper, paths):
        try:
            found = await find_differences(zookeeper, paths, flow)
        except WitnessGarbled as garbled:
            raise CannotTell(str(garbled)) from garbled
    if found:
        raise CannotTell(explain(flow, found))


async def _promotion(configuration: Configuration, wants: TopicFilter) -> Promotion | None:
    """Return the promotion that ended the flow, if one has, and none has started it again."""
    flow = wants.flow
    if not flow.heeds_promotions:
        return None
    return promotion_of(
        await _journals(configuration),
        source=flow.source,
        target=flow.target,
        is_both_ways=wants.is_both_ways,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brought:
    """What the maps on both sides say of these partitions."""

    state: MapState
    """The map of what the flow brought."""
    to_source: Mapping[TopicPartition, Brought] = field(default_factory=dict)
    to_target: Mapping[TopicPartition, Brought] = field(default_factory=dict)
    set_aside: Mapping[TopicPartition, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    unaudited: tuple[str, ...] = ()


async def _brought(
    configuration: Configuration,
    source: AuditedCluster,
    target: AuditedCluster,
    wants: TopicFilter,
    partitions: set[TopicPartition],
) -> _Brought:
    """Return what mirrors brought to these partitions.

    Asked behind the logs' ends: a mirror names itself before its first batch, and a piece of the
    map is there before its first record. Where only one direction has run, a map that cannot be
    read keeps no log from being compared.
    """
    flow = wants.flow
    if wants.is_both_ways:
        home = flow.names.way_home
        arrived = await _map(configuration, source, flow.target, partitions, home)
        brought = await _map(configuration, target, flow.source, partitions)
        return _Brought(
            state=brought.state,
            to_source=arrived.arrivals.brought(partitions),
            to_target=brought.arrivals.brought(partitions),
            set_aside=await read_set_aside(
                target.cluster,
                flow.source,
                brought.arrivals.set_aside,
                name=target.name,
                copies=flow.names.on_target,
            ),
            unaudited=(*_unbelieved(arrived), *_unbelieved(brought)),
        )
    try:
        brought = await _map(configuration, target, flow.source, partitions)
    except CannotTell as reason:
        return _Brought(state=MapState(), unaudited=(f"the offset map: {reason}",))
    contradictions = brought.state.contradictions[:1]
    wrong = tuple(f"the offset map contradicts itself: {one}" for one in contradictions)
    return _Brought(state=brought.state, unaudited=(*wrong, *_unbelieved(brought)))


def _unbelieved(read: ReadMap) -> tuple[str, ...]:
    return () if read.unbelieved is None else (f"the offset map: {read.unbelieved}",)


async def _map(
    configuration: Configuration,
    site: AuditedCluster,
    other: str,
    partitions: set[TopicPartition],
    names: Renaming | None = None,
) -> ReadMap:
    """Return what a site's map of the other one says of these partitions, by other names if any."""
    async with _open_witness(configuration) as (zookeeper, paths):
        writers = WitnessWriters(zookeeper, paths, other, site.name)
        return await read_map(
            site.cluster,
            MapOf(other, names),
            writers,
            name=site.name,
            partitions=partitions,
            told_set=configuration.topic_set,
        )


async def _require_absent(site: AuditedCluster, topics: Set[str]) -> None:
    """Raise CannotTell if topics that a site did not list are hidden from us.

    Asked for all topics, brokers leave out those that one may not see; asked by name, they say so.
    """
    if not topics:
        return
    names = sorted(topics)
    view = await patiently(site, lambda: site.cluster.metadata(names, refresh=True))
    for name in names:
        code = view.topics[name].error_code
        if code not in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
            raise site.complaint(f"{name}: {describe(code)}")


def _require_all_found(wants: TopicFilter, on_source: Set[str]) -> None:
    missing = wants.only - on_source
    if missing:
        raise CannotTell(
            f"flow {wants.flow.name}: no topic {', '.join(sorted(missing))} that is on "
            f"{wants.flow.source} and matches the flow's patterns"
        )
    if not on_source:
        # A site that came back empty, or a pattern misspelt: nothing compared is not equal.
        raise CannotTell(
            f"flow {wants.flow.name}: no topic that is on {wants.flow.source} matches the flow's "
            f"patterns"
        )


async def _journals(configuration: Configuration) -> list[bytes]:
    """Return all promotions' journals; CannotTell if the witness is down.

    Without it nobody knows where a mirrored part ends and what applications wrote begins.
    """
    async with _open_witness(configuration) as (zookeeper, paths):
        names = await zookeeper.children(paths.journals) or []
        nodes = [await _journal(zookeeper, paths, name) for name in names]
    return [node.data for node in nodes if node is not None]


async def _journal(zookeeper: ZooKeeper, paths: WitnessPaths, name: str) -> ZNode | None:
    path = f"{paths.journals}/{name}"
    try:
        return await read_document(zookeeper, path, f"{paths.all_journal_parts}/{name}")
    except ValueError as error:
        raise CannotTell(f"witness {path}: {error}") from error


async def active_site(configuration: Configuration) -> ActiveSite | None:
    """Return the active site, None before there was one; CannotTell if the witness is down."""
    async with _open_witness(configuration) as (zookeeper, paths):
        node = await zookeeper.get(paths.active)
    try:
        return None if node is None else paths.read_active(node.data)
    except WitnessGarbled as garbled:
        raise CannotTell(str(garbled)) from garbled


@asynccontextmanager
async def _open_witness(
    configuration: Configuration,
) -> AsyncIterator[tuple[ZooKeeper, WitnessPaths]]:
    coordination = configuration.coordination
    try:
        async with open_witness(coordination) as zookeeper:
            yield zookeeper, coordination.paths
    except ZooKeeperFault as fault:
        raise CannotTell(f"witness ZooKeeper ({coordination.zookeeper}): {fault}") from fault
