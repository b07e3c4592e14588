"""What got onto the old site after it was drained: records, and topics that were made there."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import trio

from failover.journal.journal import PartitionEnds
from failover.sites.site import Site, SiteUnclear, brief
from runtime.configuration.config import FlowConfig
from wire.errors import ErrorCode, describe
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.net import Cluster, NetworkFault
from wire.net.topic_creation import BROKERS_DEFAULT, TopicRefused, create_topic, grow_topic
from wire.topic_partition import TopicPartition

TOPIC_RESOURCE: Final = 2
DYNAMIC_TOPIC_CONFIG: Final = 1
SILENT_AFTER_S: Final = 3.0
"""How long a source that was given up is asked what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
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


async def find_appended(
    source: Site, found: Collection[TopicPartition], drained: Mapping[TopicPartition, int]
) -> list[Appended]:
    """Return what the source's logs hold behind the drain beside markers of transactions.

    Raises NetworkFault.
    """
    ends = await source.ends(found)
    return [
        Appended(
            topic=partition.topic,
            partition=partition.partition,
            start=drained.get(partition, 0),
            stop=end,
        )
        for partition, end in sorted(ends.items())
        if not await source.holds_markers_only(partition, drained.get(partition, 0), end)
    ]


async def find_beyond_mirrored(
    source: Site, sealed: Collection[PartitionEnds]
) -> list[Appended] | str:
    """Return what a source that was given up has beyond the mirrored ends, or why it is silent."""
    mirrored = {TopicPartition(one.topic, one.partition): one.mirrored_source_end for one in sealed}
    with trio.move_on_after(SILENT_AFTER_S):
        try:
            ends = await source.known_ends(mirrored)
        except NetworkFault as fault:
            return brief(fault)
        return [
            Appended(
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
    they hold is told by `Appended`. Raises NetworkFault.
    """
    wanted: dict[str, int] = {}
    for topic, partition in partitions:
        wanted[topic] = max(wanted.get(topic, 0), partition + 1)
    view = await target.cluster.metadata(sorted(wanted), refresh=True)
    made: list[str] = []
    for topic, count in sorted(wanted.items()):
        known = view.topics.get(topic)
        if known is None or known.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            await _create(source.cluster, target, flow, topic, count)
            made.append(topic)
        elif known.error_code == ErrorCode.NONE and len(known.partitions) < count:
            with _said_of(target, topic):
                await grow_topic(target.cluster, topic, count)
            made.append(topic)
    return made


async def _create(source: Cluster, target: Site, flow: FlowConfig, topic: str, count: int) -> None:
    configs = {
        name: value
        for name, value in (await _own_configs(source, topic)).items()
        if flow.settings.names.matches(name)
    }
    with _said_of(target, topic):
        await create_topic(
            target.cluster,
            topic,
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
