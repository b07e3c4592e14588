"""Asks one cluster for the bounds of its logs, patiently: topics, ends, starts, settings."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar

import trio

from runtime.configuration.config import ClusterConfig
from spark_audit.snapshot.bounds import LogBounds
from spark_audit.snapshot.seals import CannotTell
from spark_audit.snapshot.topic_settings import Setting, is_compacted
from wire.errors import ErrorCode, describe
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.net import Cluster, NetworkFault, TopicView, open_cluster
from wire.net.operations import list_offsets
from wire.topic_partition import TopicPartition

CLIENT_ID: Final = "spark-audit"
PATIENCE_S: Final = 10.0
"""So long a cluster may fail to answer one question before it counts as down."""
_RETRY_S: Final = 0.5
_EARLIEST: Final = -2
_LATEST: Final = -1
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1
_TOPIC_RESOURCE: Final = 2
_TOPIC_CONFIG: Final = 1
"""A setting of the topic's own: ConfigSource.TOPIC_CONFIG of Kafka's DescribeConfigsResponse."""

_T = TypeVar("_T")
Logs: TypeAlias = Mapping[TopicPartition, LogBounds]


class AskedTopics(Protocol):
    """Says which topics are asked about."""

    def matches(self, topic: str) -> bool:
        """Return whether the topic is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedCluster:
    """One cluster to ask; `name` and `servers` are for complaints."""

    cluster: Cluster
    name: str
    servers: str
    wants: AskedTopics

    def complaint(self, what: object) -> CannotTell:
        return CannotTell(f"cluster {self.name} ({self.servers}): {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBounds:
    """The answers of one cluster about the wanted topics."""

    cluster_id: str | None
    topics: frozenset[str]
    logs: Logs
    untold: Mapping[TopicPartition, str]
    """Why the bounds of these are not known."""
    settings: Mapping[str, Mapping[str, Setting]]
    """What holds on each topic."""

    def renamed(self, rename: Callable[[str], str | None]) -> "ClusterBounds":
        """Return the same, with topics by other names."""
        names = {topic: name for topic in self.topics if (name := rename(topic)) is not None}
        return replace(
            self,
            topics=frozenset(names.values()),
            logs={_in(names, place): log for place, log in self.logs.items()},
            untold={_in(names, place): why for place, why in self.untold.items()},
            settings={names[topic]: found for topic, found in self.settings.items()},
        )


def _in(names: Mapping[str, str], place: TopicPartition) -> TopicPartition:
    return TopicPartition(names[place.topic], place.partition)


@asynccontextmanager
async def open_site(config: ClusterConfig, wants: AskedTopics) -> AsyncIterator[AuditedCluster]:
    """Open a cluster to be asked until the block ends. Raises NetworkFault."""
    reach = open_cluster(config.bootstrap, client_id=CLIENT_ID, security=config.security)
    async with reach as cluster:
        yield AuditedCluster(
            cluster=cluster, name=config.name, servers=config.bootstrap_servers, wants=wants
        )


async def patiently(site: AuditedCluster, ask: Callable[[], Awaitable[_T]]) -> _T:
    """Return the answer to one question, asked again after faults until PATIENCE_S are over."""
    problem = f"no answer within {PATIENCE_S:.0f} s"
    with trio.move_on_after(PATIENCE_S):
        while True:
            try:
                return await ask()
            except NetworkFault as fault:
                problem = str(fault)
            await trio.sleep(_RETRY_S)
    raise site.complaint(problem)


async def ask_bounds(site: AuditedCluster) -> ClusterBounds:
    """Return the bounds of each partition of the wanted topics, up to the last stable offset."""
    cluster_id, topics = await patiently(site, lambda: _topics(site))
    partitions = {
        TopicPartition(name, number): view
        for name in topics
        for number, view in topics[name].partitions.items()
    }
    untold = {
        partition: _no_leader(site, partition)
        for partition, view in partitions.items()
        if view.leader < 0
    }
    untold |= {
        TopicPartition(name, number): str(site.complaint(f"{name}-{number} is not shown"))
        for name in topics
        for number in range(max(topics[name].partitions))
        if number not in topics[name].partitions
    }
    if not partitions:
        return ClusterBounds(
            cluster_id=cluster_id, topics=frozenset(topics), logs={}, untold={}, settings={}
        )
    settings = await patiently(site, lambda: _settings(site, sorted(topics)))
    bounds: list[Mapping[TopicPartition, int]] = []
    for timestamp, isolation in (
        (_LATEST, _READ_COMMITTED),
        (_LATEST, _READ_UNCOMMITTED),
        (_EARLIEST, _READ_COMMITTED),
    ):
        keys = partitions.keys() - untold.keys()
        ask = partial(_offsets, site, keys, timestamp, isolation)
        offsets, refused = await patiently(site, ask)
        bounds.append(offsets)
        untold |= refused
    stops, ends, starts = bounds
    logs = {
        partition: LogBounds(
            start=min(start, stops[partition]),
            stop=stops[partition],
            topic_id=topics[partition.topic].topic_id,
            is_compacted=is_compacted(settings[partition.topic]),
            held_back=ends[partition] - stops[partition],
        )
        for partition, start in starts.items()
    }
    return ClusterBounds(
        cluster_id=cluster_id,
        topics=frozenset(topics),
        logs=logs,
        untold=untold,
        settings=settings,
    )


def _no_leader(site: AuditedCluster, partition: TopicPartition) -> str:
    return str(site.complaint(f"{partition} has no leader"))


async def _topics(site: AuditedCluster) -> tuple[str | None, Mapping[str, TopicView]]:
    """Return the cluster's id, and the wanted topics."""
    view = await site.cluster.metadata(refresh=True)
    topics = {name: topic for name, topic in view.topics.items() if site.wants.matches(name)}
    for name, topic in topics.items():
        if topic.error_code != ErrorCode.NONE:
            raise site.complaint(f"{name}: {describe(topic.error_code)}")
        if not topic.partitions:
            raise site.complaint(f"{name} is shown without a partition")
    return view.cluster_id, topics


async def _offsets(
    site: AuditedCluster, keys: Set[TopicPartition], timestamp: int, isolation: int
) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, str]]:
    """Return the offsets, and why some are not known."""
    if not keys:
        return {}, {}
    answers = await list_offsets(site.cluster, keys, timestamp, isolation_level=isolation)
    offsets: dict[TopicPartition, int] = {}
    refused: dict[TopicPartition, str] = {}
    for (topic, partition), answer in answers.items():
        if isinstance(answer, ErrorCode):
            refused[TopicPartition(topic, partition)] = str(
                site.complaint(f"{topic}-{partition}: {answer.name}")
            )
        else:
            offsets[TopicPartition(topic, partition)] = answer
    return offsets, refused


async def _settings(site: AuditedCluster, topics: list[str]) -> Mapping[str, Mapping[str, Setting]]:
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=_TOPIC_RESOURCE,
                resource_name=topic,
                configuration_keys=None,
            )
            for topic in topics
        )
    )
    answer = await site.cluster.request(request)
    for result in answer.results:
        if result.error_code != ErrorCode.NONE:
            raise site.complaint(
                f"configuration of {result.resource_name}: {describe(result.error_code)}"
            )
    return {
        result.resource_name: {
            setting.name: Setting(setting.value, setting.config_source == _TOPIC_CONFIG)
            for setting in result.configs
            if setting.value is not None
        }
        for result in answer.results
    }
