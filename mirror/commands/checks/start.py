"""What `mirror check` says of a flow's `start`: where it would begin, or has begun."""

from typing import Final

from mirror.clusters.links import Links
from mirror.clusters.log_ends import LogEnds
from mirror.commands.flow_without_daemon import read_map_back, read_map_of, source_ends
from mirror.map.known_writers import WritersOf
from mirror.start.begins import Begins, has_begun, read_begins
from mirror.topics.first_look import FOLLOWS, follows
from offset_translation.map_state import MapState
from runtime.configuration.config import FlowConfig
from runtime.coordination.map_writers import UnbelievedRecords
from wire.net import NetworkFault
from wire.topic_partition import TopicPartition

BEGUN: Final = "has begun before: `start` decides nothing any more"


async def told_start(flow: FlowConfig, links: Links, writers_of: WritersOf) -> list[str]:
    """Return lines about where the flow begins; a cluster that does not answer is a line, too."""
    try:
        return await _told(flow, links, writers_of)
    except NetworkFault as fault:
        return [f"warning: where it starts is not known: {fault}"]


async def _told(flow: FlowConfig, links: Links, writers_of: WritersOf) -> list[str]:
    writers = writers_of(flow.source, flow.target)
    state = await read_map_of(flow.source, links.target_admin, writers, UnbelievedRecords())
    begun = {one: at for one, at in state.begins.begun.items() if flow.mirrors(one.topic)}
    if not begun and not flow.start.leaves_records:
        return []
    ends = {
        partition: found
        for partition, found in (await source_ends(flow, links)).items()
        if isinstance(found, LogEnds)
    }
    if begun:
        begins = {one: at.source_start for one, at in begun.items()}
        starts = ", ".join(sorted({f"`start: {at.start}`" for at in begun.values()}))
        return [f"began {len(begun)} partitions by {starts}: {_left(begins, ends)}"]
    if has_begun(state, flow):
        return [BEGUN]
    arrived, others = MapState(), UnbelievedRecords()
    if flow.has_way_back:
        back = writers_of(flow.target, flow.source)
        arrived = await read_map_back(flow, links, back, others)
    if follows(flow, arrived, is_all=not others.count):
        return [FOLLOWS]
    found = await read_begins(links.source_admin, flow, ends.keys(), {**ends})
    return [
        f"would begin {len(found)} partitions by `start: {flow.start.text}`: {_left(found, ends)}"
    ]


def _left(begins: Begins, ends: dict[TopicPartition, LogEnds]) -> str:
    """Return how many records stay on the source, at most."""
    records = sum(
        max(0, at - ends[partition].start) for partition, at in begins.items() if partition in ends
    )
    return f"up to {records} records before it are not carried"
