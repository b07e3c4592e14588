"""Group positions on the target, by the names that topics have on the source."""

from collections.abc import Mapping

from offset_translation.map_records import TopicPartition
from runtime.topic_names import TopicNames
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.operations import GroupOffset, commit_group_offsets, fetch_group_offsets


async def target_positions(
    cluster: Cluster, names: TopicNames, group: str
) -> dict[TopicPartition, GroupOffset]:
    """Return a group's positions in topics that the flow mirrors; raises NetworkFault."""
    found = await fetch_group_offsets(cluster, group)
    return {
        (source, index): one
        for (topic, index), one in found.items()
        if (source := names.on_source(topic)) is not None
    }


async def commit_on_target(
    cluster: Cluster,
    names: TopicNames,
    group: str,
    positions: Mapping[TopicPartition, tuple[int, str]],
) -> dict[TopicPartition, ErrorCode]:
    """Commit (offset, metadata) for a group; return what became of each. Raises NetworkFault."""
    there = {(names.on_target(topic), index): (topic, index) for topic, index in positions}
    codes = await commit_group_offsets(
        cluster, group, {place: positions[here] for place, here in there.items()}
    )
    return {there[place]: code for place, code in codes.items() if place in there}
