"""All that a rehearsal has to leave alone, as values that can be held against each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import trio
from kazoo.client import KazooClient

from failover.sites.fence import Fence, read_fence
from runtime.configuration.config import Configuration, load
from runtime.configuration.topic_sets import REHEARSAL_GROUP, REHEARSAL_TOPIC
from runtime.coordination.witness import WitnessPaths
from runtime.pair.opening import open_clusters
from wire.net import Cluster
from wire.net.operations import (
    EARLIEST,
    LATEST,
    fetch_group_offsets,
    list_groups,
    list_offsets,
    read_partition,
)
from wire.net.rights import Right, RightsOff, all_rights
from wire.topic_partition import TopicPartition

Log: TypeAlias = tuple[str, TopicPartition]
"""A partition on a site."""
LOOK_S: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Untouched:
    """What is there but for the topic, the group and the set of rehearsals."""

    logs: Mapping[Log, bytes]
    """Every batch from the first to the last, as it lies there; of no topic of ours."""
    positions: Mapping[tuple[str, str], Mapping[TopicPartition, int]]
    """Of each group on each site."""
    rights: Mapping[str, frozenset[Right]]
    fences: Mapping[str, Fence]
    nodes: Mapping[str, tuple[bytes, int]]
    """Of the witness: what a node holds, and the number of the write that made it so."""


def look_at_all(file: Path, witness: KazooClient) -> Untouched:
    """Read all of it; nobody may promote meanwhile."""
    return trio.run(_look, load(file), witness)


async def _look(configuration: Configuration, witness: KazooClient) -> Untouched:
    logs: dict[Log, bytes] = {}
    positions: dict[tuple[str, str], Mapping[TopicPartition, int]] = {}
    rights: dict[str, frozenset[Right]] = {}
    fences: dict[str, Fence] = {}
    async with open_clusters(configuration) as clusters:
        for site, cluster in clusters.items():
            for partition in await _partitions(cluster):
                logs[site, partition] = await _log(cluster, partition)
            for group in await list_groups(cluster):
                if group != REHEARSAL_GROUP:
                    found = await fetch_group_offsets(cluster, group)
                    positions[site, group] = {
                        place: int(one.offset) for place, one in sorted(found.items())
                    }
            rights[site] = await _rights(cluster)
            fences[site] = await read_fence(cluster)
    return Untouched(
        logs=logs,
        positions=positions,
        rights=rights,
        fences=fences,
        nodes=_nodes(configuration, witness),
    )


async def _partitions(cluster: Cluster) -> list[TopicPartition]:
    view = await cluster.metadata(refresh=True)
    return [
        TopicPartition(topic.name, number)
        for topic in view.topics.values()
        if not topic.name.startswith(("_", REHEARSAL_TOPIC))
        and not topic.name.endswith(".internal")
        for number in sorted(topic.partitions)
    ]


async def _log(cluster: Cluster, partition: TopicPartition) -> bytes:
    bounds: list[Any] = [
        (await list_offsets(cluster, [partition], when))[partition] for when in (EARLIEST, LATEST)
    ]
    found = [bytes(batch) async for _, batch in read_partition(cluster, *partition, *bounds)]
    return b"".join(found)


async def _rights(cluster: Cluster) -> frozenset[Right]:
    try:
        return frozenset(await all_rights(cluster))
    except RightsOff:
        return frozenset()


def _nodes(configuration: Configuration, witness: KazooClient) -> Mapping[str, tuple[bytes, int]]:
    found: dict[str, tuple[bytes, int]] = {}
    for name in configuration.sets.of_applications:
        paths: WitnessPaths = configuration.of_set(name).coordination.paths
        ends = [(one.source, one.target) for one in configuration.flows]
        kept = [paths.active, paths.pair]
        kept += [where(*one) for one in ends for where in (paths.command, paths.acknowledged)]
        journals = witness.get_children(paths.journals) if witness.exists(paths.journals) else ()
        for path in (*kept, *(f"{paths.journals}/{epoch}" for epoch in journals)):
            if witness.exists(path):
                data, stat = witness.get(path)
                found[path] = data, stat.mzxid
    return found


class FenceWatch:
    """Looks again and again at what the fences close, but for the topic of rehearsals."""

    def __init__(self, file: Path) -> None:
        self._configuration = load(file)
        self.looks = 0
        self.closed: dict[str, set[frozenset[str]]] = {}
        """What was closed on each site at some time."""

    def run(self, until: Any) -> None:
        """Look until this event of threads is set."""
        trio.run(self._run, until)

    async def _run(self, until: Any) -> None:
        async with open_clusters(self._configuration) as clusters:
            while not until.is_set():
                for site, cluster in clusters.items():
                    topics = frozenset((await read_fence(cluster)).topics) - {REHEARSAL_TOPIC}
                    self.closed.setdefault(site, set()).add(topics)
                self.looks += 1
                await trio.sleep(LOOK_S)
