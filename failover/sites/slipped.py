"""What got onto the old site after it was drained: records, and topics that were made there."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from uuid import UUID

import trio

from failover.journal.journal import PartitionEnds
from failover.sites.map_follower import MapFollower
from failover.sites.other_log import made_again
from failover.sites.parting import find_partings
from failover.sites.site import Site, SiteUnclear, brief
from runtime.configuration.config import FlowConfig
from wire.errors import ErrorCode, describe
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.net import Cluster, NetworkFault
from wire.net.topic_creation import BROKERS_DEFAULT, TopicRefused, create_topic, grow_topic
from wire.topic_partition import TopicPartition
from wire.values import frozen

TOPIC_RESOURCE: Final = 2
DYNAMIC_TOPIC_CONFIG: Final = 1
SILENT_AFTER_S: Final = 3.0
"""How long a source that was given up is asked what it holds."""


@frozen
class SlippedRange:
    """Records in [start, stop) of a log of the old site, which the new site does not have."""

    topic: str
    partition: int
    start: int
    stop: int

    def describe(self, site: str) -> str:
        """Return where they lie, in words."""
        return (
            f"{site} {self.topic}-{self.partition} ends at {self.stop}, and {self.start} was"
            " drained"
        )


@frozen
class Shrunk:
    """A log of the old site that ends at `end`, before what was drained of it."""

    topic: str
    partition: int
    drained: int
    end: int

    def describe(self, site: str) -> str:
        """Return what has become of it, in words."""
        return (
            f"{site} {self.topic}-{self.partition} ends at {self.end}, and {self.drained} was"
            f" drained: {site} has lost records since"
        )


async def find_made_again(
    source: Site, topic_ids: Mapping[str, UUID], found: Collection[TopicPartition]
) -> frozenset[str]:
    """Return the topics that have another id than was mirrored: all they hold came since.

    Raises NetworkFault.
    """
    seen = await source.topic_ids({topic for topic, _ in found})
    return frozenset(made_again(topic_ids, seen))


async def find_appended(
    source: Site,
    found: Collection[TopicPartition],
    drained: Mapping[TopicPartition, int],
    again: Collection[str] = (),
) -> tuple[list[SlippedRange], list[Shrunk]]:
    """Return what the source's logs hold behind the drain, and which end before it.

    Markers of transactions do not count. Of topics that were made `again` everything does. Raises
    NetworkFault.
    """
    appended: list[SlippedRange] = []
    shrunk: list[Shrunk] = []
    for (topic, index), end in sorted((await source.ends(found)).items()):
        partition = TopicPartition(topic, index)
        start = 0 if topic in again else drained.get(partition, 0)
        if end < start:
            shrunk.append(Shrunk(topic=topic, partition=index, drained=start, end=end))
        elif not await source.holds_markers_only(partition, start, end):
            appended.append(SlippedRange(topic=topic, partition=index, start=start, stop=end))
    return appended, shrunk


async def find_slipped(
    source: Site,
    topic_ids: Mapping[str, UUID],
    found: Collection[TopicPartition],
    drained: Mapping[TopicPartition, int],
) -> tuple[list[SlippedRange], list[Shrunk]]:
    """Return find_appended(), with what was made again since it was mirrored by these ids."""
    again = await find_made_again(source, topic_ids, found)
    return await find_appended(source, found, drained, again)


async def find_beyond_mirrored(
    source: Site, follower: MapFollower, sealed: Collection[PartitionEnds]
) -> list[SlippedRange] | str:
    """Return what a source that was given up has beyond the mirrored ends, or why it is silent.

    `follower` has been refreshed. Of a log that was cut and has grown again, or of a topic that was
    made again, it is what lies behind the last offset that is the target's as well.
    """
    mirrored = {TopicPartition(one.topic, one.partition): one.mirrored_source_end for one in sealed}
    with trio.move_on_after(SILENT_AFTER_S):
        try:
            ends = await source.known_ends(mirrored)
            partings = await find_partings(source, follower, ends)
        except NetworkFault as fault:
            return brief(fault)
        mirrored |= {partition: parting.source for partition, parting in partings.items()}
        return [
            SlippedRange(
                topic=partition.topic,
                partition=partition.partition,
                start=mirrored[partition],
                stop=end,
            )
            for partition, end in sorted(ends.items())
            if end > mirrored[partition]
        ]
    return f"no answer within {SILENT_AFTER_S:g} s"


async def make_missing(
    source: Site, target: Site, flow: FlowConfig, partitions: Collection[TopicPartition]
) -> list[str]:
    """Make on the target the topics and partitions that the source alone has; return their names.

    The mirror made all that was there when it stopped: these came later, and are empty, or what
    they hold is told by `SlippedRange`. Raises NetworkFault.
    """
    wanted: dict[str, int] = {}
    for topic, partition in partitions:
        wanted[topic] = max(wanted.get(topic, 0), partition + 1)
    view = await target.cluster.metadata(sorted(map(target.topic_here, wanted)), refresh=True)
    made: list[str] = []
    for topic, count in sorted(wanted.items()):
        there = target.topic_here(topic)
        known = view.topics.get(there)
        if known is None or known.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            await _create(source.cluster, target, flow, topic, count)
            made.append(topic)
        elif known.error_code == ErrorCode.NONE and len(known.partitions) < count:
            with _said_of(target, there):
                await grow_topic(target.cluster, there, count)
            made.append(topic)
    return made


async def _create(source: Cluster, target: Site, flow: FlowConfig, topic: str, count: int) -> None:
    configs = {
        name: value
        for name, value in (await _own_configs(source, topic)).items()
        if flow.settings.names.matches(name)
    }
    there = target.topic_here(topic)
    with _said_of(target, there):
        await create_topic(
            target.cluster,
            there,
            partition_count=count,
            replication_factor=flow.replication_factor or BROKERS_DEFAULT,
            configs=configs,
        )


async def _own_configs(cluster: Cluster, topic: str) -> dict[str, str]:
    """Return the settings that were set for the topic itself."""
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=None
    )
    [result] = (await cluster.request(DescribeConfigsRequest(resources=(resource,)))).results
    if result.error_code != ErrorCode.NONE:
        raise SiteUnclear(f"settings of {topic}: {describe(result.error_code)}")
    return {
        each.name: each.value
        for each in result.configs
        if each.config_source == DYNAMIC_TOPIC_CONFIG and each.value is not None
    }


@contextmanager
def _said_of(target: Site, topic: str) -> Iterator[None]:
    """Raise SiteUnclear where the target refuses to make a topic."""
    try:
        yield
    except TopicRefused as refused:
        reason = f"{target.name}: {topic} could not be made: {describe(refused.code)}"
        raise SiteUnclear(reason) from refused
