"""Look at both clusters from outside the daemon: log ends, the map, groups, checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass

from mirror.group_rows import GroupRow, KnownCheckpoint, Sight, group_rows
from mirror.links import Links
from mirror.observe import read_map, source_ends
from mirror.positioning import Ends, read_target_ends
from mirror.start_position import LogEnds
from mirror.tail_reader import TailReader, topic_exists
from mirror.target_side import target_positions
from offset_translation import checkpoint
from offset_translation.binary import MalformedRecord
from offset_translation.map_records import TopicPartition
from runtime.config import FlowConfig
from wire.net import NetworkFault
from wire.net.operations import fetch_group_offsets, list_groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look has found; raises nothing for the source, which may be gone."""

    sight: Sight
    source_fault: str | None
    """Why the source did not answer, None if it did."""
    checkpoints: Mapping[str, Mapping[TopicPartition, KnownCheckpoint]]
    """By group."""


async def look(flow: FlowConfig, links: Links) -> Look:
    """Read all that does not belong to a single group. Raises NetworkFault for the target.

    The target's ends are read before the map, so that no piece is missing for what they tell.
    """
    source: Ends = {}
    source_fault = None
    try:
        source = await source_ends(flow, links)
    except NetworkFault as fault:
        source_fault = f"{flow.source}: {fault}"
    places = set((await read_map(flow, links)).maps)
    target = await read_target_ends(links.target_admin, flow.names, places)
    state = await read_map(flow, links)
    there = {place: ends for place, ends in target.items() if isinstance(ends, LogEnds)}
    state.advance({place: ends.end for place, ends in there.items()})
    return Look(
        sight=Sight(
            maps={place: state.maps[place] for place in there if place in state.maps},
            source_ends={
                place: ends.end for place, ends in source.items() if isinstance(ends, LogEnds)
            },
            target_starts={place: ends.start for place, ends in there.items()},
        ),
        source_fault=source_fault,
        checkpoints=await _checkpoints(flow, links),
    )


async def look_at_group(flow: FlowConfig, links: Links, found: Look, group: str) -> list[GroupRow]:
    """Return a group's rows; without the source, by what was mirrored last. Raises NetworkFault."""
    source = None
    if found.source_fault is None:
        source = {
            place: one.offset
            for place, one in (await fetch_group_offsets(links.source_admin, group)).items()
            if flow.mirrors(place[0])
        }
    target = await target_positions(links.target_admin, flow.names, group)
    return group_rows(
        group,
        source=source,
        target={place: one.offset for place, one in target.items()},
        checkpoints=found.checkpoints.get(group, {}),
        sight=found.sight,
    )


async def known_groups(flow: FlowConfig, links: Links, found: Look) -> list[str]:
    """Return the groups that the flow mirrors, of which anything is known. Raises NetworkFault."""
    groups = set(found.checkpoints)
    if found.source_fault is None:
        groups |= set(await list_groups(links.source_admin))
    return sorted(group for group in groups if flow.groups.matches(group))


async def _checkpoints(
    flow: FlowConfig, links: Links
) -> dict[str, dict[TopicPartition, KnownCheckpoint]]:
    found: dict[str, dict[TopicPartition, KnownCheckpoint]] = {}
    names = flow.names
    topic = names.checkpoints_topic
    if not await topic_exists(links.target_admin, topic):
        return found
    async for _, record in TailReader(links.target_admin, topic).read_new():
        if record.key is None or record.value is None:
            continue
        try:
            one = checkpoint.decode(record.key, record.value)
        except MalformedRecord:
            continue  # the daemon counts these; here they only have nothing to say
        source = names.on_source(one.topic)
        if source is None:
            continue  # of a time when the flow had other names
        found.setdefault(one.group, {})[source, one.partition] = KnownCheckpoint(
            checkpoint=one, written_ms=record.timestamp_ms
        )
    return found
