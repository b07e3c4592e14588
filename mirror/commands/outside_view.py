"""OutsideView at both clusters from outside the daemon: log ends, the map, groups, checkpoints."""

from collections.abc import Mapping

from mirror.clusters.links import Links
from mirror.clusters.log_ends import Ends, LogEnds, read_target_ends
from mirror.clusters.tail_reader import TailReader, topic_exists
from mirror.clusters.target_side import target_positions
from mirror.commands.flow_without_daemon import (
    complain_of_way_back,
    read_map,
    read_map_back,
    source_ends,
)
from mirror.commands.group_rows import GroupRow, GroupsSeen, KnownCheckpoint, group_rows
from mirror.map.believed import believed
from mirror.map.known_writers import WritersOf
from mirror.map.unbelieved_watch import told_unbelieved
from offset_translation import checkpoint
from offset_translation.binary import MalformedRecord
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from runtime.configuration.config import FlowConfig
from runtime.coordination.map_writers import UnbelievedRecords, Writers
from runtime.process.output import complain
from wire.net import NetworkFault
from wire.net.operations import GroupOffset, fetch_group_offsets, list_groups
from wire.topic_partition import TopicPartition
from wire.values import frozen


@frozen
class OutsideView:
    """What both clusters answered; a source that does not, and may be gone, is no fault."""

    sight: GroupsSeen
    source_fault: str | None
    """Why the source did not answer, None if it did."""
    checkpoints: Mapping[str, Mapping[TopicPartition, KnownCheckpoint]]
    """By group."""
    on_target: Mapping[str, Mapping[TopicPartition, GroupOffset]]
    """By group, of the one that was named; of others they are asked for when they are needed."""


async def observe(
    flow: FlowConfig, links: Links, writers_of: WritersOf, group: str | None = None
) -> OutsideView:
    """Read all that does not belong to a single group. Raises NetworkFault for the target.

    The target's ends are read before the map, so that no piece is missing for them. A group's
    positions there are read before the ends: the mirror applies none beyond what is mirrored.
    """
    on_target: dict[str, Mapping[TopicPartition, GroupOffset]] = {}
    if group is not None:
        on_target[group] = await target_positions(links.target_admin, flow.names, group)
    source: Ends = {}
    arrived = MapState()
    source_fault = None
    try:
        source = await source_ends(flow, links)
        if flow.has_way_back:
            backward = writers_of(flow.target, flow.source)
            unbelieved = UnbelievedRecords(flow.brings)
            arrived = await read_map_back(flow, links, backward, unbelieved)
            complain_of_way_back(unbelieved, flow)
    except NetworkFault as fault:
        source_fault = f"{flow.source}: {fault}"
    writers = writers_of(flow.source, flow.target)
    # What is not believed is named once, at the second reading.
    topic_partitions = set((await read_map(flow, links, writers, UnbelievedRecords())).maps)
    target = await read_target_ends(links.target_admin, flow.names, topic_partitions)
    state = await read_map(flow, links, writers)
    there = _answered(target)
    state.advance({topic_partition: ends.end for topic_partition, ends in there.items()})
    here = {topic_partition: ends.end for topic_partition, ends in _answered(source).items()}
    arrived.advance(here)
    maps = {
        topic_partition: state.maps[topic_partition]
        for topic_partition in there
        if topic_partition in state.maps
    }
    return OutsideView(
        sight=GroupsSeen(
            maps=maps,
            source_ends=here,
            target_starts={topic_partition: ends.start for topic_partition, ends in there.items()},
            backward={
                topic_partition: found
                for topic_partition in maps.keys() & here.keys()
                if (found := known_to_its_end(arrived, topic_partition, maps[topic_partition]))
                is not None
            },
        ),
        source_fault=source_fault,
        checkpoints=await _checkpoints(
            flow, links, writers_of(flow.source, flow.target, of_checkpoints=True)
        ),
        on_target=on_target,
    )


def _answered(asked: Ends) -> dict[TopicPartition, LogEnds]:
    """Return the ends of the logs that were told."""
    return {key: ends for key, ends in asked.items() if isinstance(ends, LogEnds)}


def known_to_its_end(
    arrived: MapState, topic_partition: TopicPartition, forward: OffsetMap
) -> OffsetMap | None:
    """Return the map of what came back into the source, if its mirrored end is known.

    Behind a seal of ``forward`` applications write to the target, so only the mirror writes to the
    source.
    """
    found = arrived.maps.get(topic_partition)
    if found is None or not (forward.is_sealed or arrived.bounded(topic_partition)):
        return None
    return found if found.mirrored_source_end is not None else None


async def observe_group(
    flow: FlowConfig, links: Links, found: OutsideView, group: str
) -> list[GroupRow]:
    """Return a group's rows; without the source, by what was mirrored last. Raises NetworkFault."""
    source = None
    if found.source_fault is None:
        source = {
            topic_partition: one.offset
            for topic_partition, one in (
                await fetch_group_offsets(links.source_admin, group)
            ).items()
            if flow.mirrors(topic_partition[0])
        }
    target = found.on_target.get(group)
    if target is None:
        target = await target_positions(links.target_admin, flow.names, group)
    return group_rows(
        group,
        source=source,
        target={topic_partition: one.offset for topic_partition, one in target.items()},
        checkpoints=found.checkpoints.get(group, {}),
        sight=found.sight,
    )


async def known_groups(flow: FlowConfig, links: Links, found: OutsideView) -> list[str]:
    """Return the groups that the flow mirrors, of which anything is known. Raises NetworkFault."""
    groups = set(found.checkpoints)
    if found.source_fault is None:
        groups |= set(await list_groups(links.source_admin))
    return sorted(group for group in groups if flow.groups.matches(group))


async def _checkpoints(
    flow: FlowConfig, links: Links, writers: Writers
) -> dict[str, dict[TopicPartition, KnownCheckpoint]]:
    found: dict[str, dict[TopicPartition, KnownCheckpoint]] = {}
    names = flow.names
    topic = names.checkpoints_topic
    if not await topic_exists(links.target_admin, topic):
        return found
    # The daemon counts what makes no sense; here it only has nothing to say.
    reader, unbelieved = (
        TailReader(links.target_admin, topic, damaged=lambda _: None),
        UnbelievedRecords(),
    )
    async for record in believed(reader, writers, unbelieved):
        if record.key is None or record.value is None:
            continue
        try:
            one = checkpoint.decode(record.key, record.value)
        except MalformedRecord:
            continue
        source = names.on_source(one.topic)
        if source is None:
            continue  # of a time when the flow had other names
        found.setdefault(one.group, {})[TopicPartition(source, one.partition)] = KnownCheckpoint(
            checkpoint=one, written_ms=record.timestamp_ms
        )
    for line in told_unbelieved({topic: unbelieved}, flow.told_set):
        complain("mirror", line)
    return found
