"""Group positions on the target, by the names that topics have on the source."""

from collections.abc import Iterable, Mapping

from runtime.configuration.topic_names import TopicNames
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault
from wire.net.operations import (
    GroupOffset,
    commit_offsets_of,
    fetch_group_offsets,
    fetch_offsets_of,
)
from wire.topic_partition import TopicPartition


async def target_positions(
    cluster: Cluster, names: TopicNames, group: str
) -> dict[TopicPartition, GroupOffset]:
    """Return a group's positions in topics that the flow mirrors; raises NetworkFault."""
    return _by_source(names, await fetch_group_offsets(cluster, group))


async def positions_on_target(
    cluster: Cluster, names: TopicNames, groups: Iterable[str]
) -> dict[str, dict[TopicPartition, GroupOffset] | NetworkFault]:
    """Return each group's positions in mirrored topics, or the reason why they are not told."""
    return {
        group: found if isinstance(found, NetworkFault) else _by_source(names, found)
        for group, found in (await fetch_offsets_of(cluster, groups)).items()
    }


async def commit_on_target(
    cluster: Cluster,
    names: TopicNames,
    commits: Mapping[str, Mapping[TopicPartition, tuple[int, str]]],
) -> dict[str, dict[TopicPartition, ErrorCode] | NetworkFault]:
    """Commit (offset, metadata) for groups; return the outcome of each."""
    topics = {topic for positions in commits.values() for topic, _ in positions}
    there = {topic: names.on_target(topic) for topic in topics}
    if all(topic == name for topic, name in there.items()):
        return await commit_offsets_of(cluster, commits)
    back = {name: topic for topic, name in there.items()}
    answers = await commit_offsets_of(
        cluster,
        {
            group: {
                TopicPartition(there[topic], index): one
                for (topic, index), one in positions.items()
            }
            for group, positions in commits.items()
        },
    )
    return {
        group: codes
        if isinstance(codes, NetworkFault)
        else {
            TopicPartition(back[name], index): code
            for (name, index), code in codes.items()
            if name in back
        }
        for group, codes in answers.items()
    }


def _by_source(
    names: TopicNames, found: dict[TopicPartition, GroupOffset]
) -> dict[TopicPartition, GroupOffset]:
    here = {topic: names.on_source(topic) for topic in {topic for topic, _ in found}}
    if all(topic == source for topic, source in here.items()):
        return found
    return {
        TopicPartition(source, index): one
        for (topic, index), one in found.items()
        if (source := here[topic]) is not None
    }
