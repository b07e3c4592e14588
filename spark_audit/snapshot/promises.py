"""Asks what the audit holds against the logs: groups' positions, the map, the mirror's promises."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from runtime.configuration.config import FlowConfig
from runtime.coordination.known_ends import KnownEnds
from runtime.coordination.long_nodes import read_document
from runtime.coordination.witness import WitnessGarbled, WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper
from spark_audit.snapshot.bounds import GroupPlace, Promise
from spark_audit.snapshot.seals import CannotTell
from wire.net import Cluster, NetworkFault
from wire.net.operations import fetch_offsets_of, list_groups
from wire.topic_partition import TopicPartition

WITHOUT_MEMBERS: Final = frozenset({"empty", "dead"})
"""A group in these states has none; who has some on the target goes its own way there."""
NO_PROMISES: Final[Mapping[TopicPartition, Promise]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlaces:
    """Groups' positions on both sides; `unaudited` says of which, or of all, nothing is known."""

    by_partition: Mapping[TopicPartition, tuple[GroupPlace, ...]] = field(default_factory=dict)
    unaudited: tuple[str, ...] = ()


async def group_places(source: Cluster, target: Cluster, flow: FlowConfig) -> GroupPlaces:
    """Return the positions of the flow's groups that rest on the target.

    The target's are asked for first: a position that moves on the source meanwhile lies further
    on, so a position on the target that was right is right beside it too.
    """
    try:
        listed = await list_groups(target)
        names = [
            name
            for name, group in sorted(listed.items())
            if flow.groups.matches(name) and group.group_state.casefold() in WITHOUT_MEMBERS
        ]
        on_target = await fetch_offsets_of(target, names)
        on_source = await fetch_offsets_of(source, names)
    except NetworkFault as fault:
        return GroupPlaces(unaudited=(f"positions of groups: {fault}",))
    places: defaultdict[TopicPartition, list[GroupPlace]] = defaultdict(list)
    unaudited: list[str] = []
    for name in names:
        copies, here = on_target[name], on_source[name]
        if isinstance(copies, NetworkFault) or isinstance(here, NetworkFault):
            why = copies if isinstance(copies, NetworkFault) else here
            unaudited.append(f"positions of group {name}: {why}")
            continue
        there = {
            TopicPartition(topic, partition.partition): one
            for partition, one in copies.items()
            if (topic := flow.names.on_source(partition.topic)) is not None
        }
        for partition in there.keys() & here.keys():
            place = GroupPlace(name, here[partition].offset, there[partition].offset)
            if min(place.source, place.target) >= 0:  # -1: some clients write it for no position
                places[partition].append(place)
    return GroupPlaces(
        by_partition={partition: tuple(sorted(some)) for partition, some in places.items()},
        unaudited=tuple(unaudited),
    )


async def promises(
    zookeeper: ZooKeeper, paths: WitnessPaths, flow: FlowConfig
) -> Mapping[TopicPartition, Promise]:
    """Return what the mirror says that it had brought, of partitions that it was level with.

    Raises CannotTell for a node that is garbled.
    """
    path = paths.known_ends(flow.source, flow.target)
    try:
        node = await read_document(
            zookeeper, path, paths.known_ends_parts(flow.source, flow.target)
        )
        known = None if node is None else KnownEnds.decode(node.data)
    except (WitnessGarbled, ValueError) as error:
        raise CannotTell(f"witness {path}: {error}") from error
    if known is None:
        return NO_PROMISES
    return {
        partition: Promise(source_end=one.end, at_ms=one.level_ms)
        for partition, one in known.ends.items()
        if one.level_ms is not None and one.level_ms >= one.heard_ms
    }
