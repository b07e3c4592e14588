"""Topics that are gone from the source: deleted on the target too, where the flow says so.

A topic that was deleted by mistake, or with the whole source, must not take its last copy along. So
a topic goes only after a grace time of looking, if only this flow has written to it, and if most of
the mirrored topics are still on the source. Where several workers have its partitions, each tells
the leading worker where its last record lies (mirror.workers.handover.Member).
"""

import logging
from collections.abc import Collection, Container, Mapping
from typing import Final

from mirror.clusters.admin import delete_topic
from mirror.clusters.links import Links
from mirror.clusters.log_ends import LogEnds, read_target_ends
from mirror.map.map_log import MapLog
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.live_config import LiveConfig
from mirror.state.orders_in_force import OrdersInForce
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.work_share import WorkShare
from mirror.topics.sight import exists, lacks
from runtime.configuration.config import FlowConfig
from wire.net.metadata import ClusterView
from wire.net.topic_creation import TopicRefused
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

DELETED: Final = "the topic was deleted on both sides"
LEAST_GRACE_MS: Final = 6_000
"""Before, the partitions are not even called gone (mirror.topics.missing)."""
UNSEEN_MS: Final = 10_000
"""After a longer gap than this, intervals apart, the wait begins anew: the source was away."""
AGAIN_MS: Final = 5_000
"""A topic that was not to be deleted is looked at again at this interval."""


class GoneTopics:
    """The topics that are missing on the source, and since when; in memory of this run only."""

    def __init__(
        self,
        config: LiveConfig,
        *,
        partitions: FlowPartitions,
        share: WorkShare,
        orders: OrdersInForce,
        links: Links,
        map_log: MapLog,
    ) -> None:
        self._config = config
        self._partitions = partitions
        self._share = share
        self._orders = orders
        self._links = links
        self._map_log = map_log
        self._since_ms: dict[str, int] = {}
        self._not_before_ms: dict[str, int] = {}
        self._kept: dict[str, str] = {}
        self._looked_ms = 0

    async def delete_due(
        self, source: Collection[str], target: ClusterView, now: int, kept: Container[str] = ()
    ) -> None:
        """Delete what is due; raises NetworkFault.

        `source` names the topics that are there, and `kept` those whose copies stay in any case.
        """
        config = self._config.current
        grace_ms = config.delete_gone_after_ms
        passed_ms, self._looked_ms = now - self._looked_ms, now
        if grace_ms is None or passed_ms > 2 * config.discovery_interval_ms + UNSEEN_MS:
            self._since_ms.clear()
        if grace_ms is None:
            return
        known = {
            topic
            for topic in self._map_log.state.topic_ids
            if topic not in kept
            and self._config.current.mirrors(topic)
            and exists(target, self._config.current.names.on_target(topic))
        }
        gone = known - set(source)
        self._since_ms = {topic: self._since_ms.get(topic, now) for topic in gone}
        grace_ms = max(grace_ms, LEAST_GRACE_MS)
        for topic in due(self._since_ms, known, now_ms=now, grace_ms=grace_ms):
            if now >= self._not_before_ms.get(topic, 0):
                await self._delete(topic, target, now)

    async def _delete(self, topic: str, target: ClusterView, now: int) -> None:
        name = self._config.current.name
        self._not_before_ms[topic] = now + AGAIN_MS
        why_not = await self._why_not(topic, target)
        if why_not is not None:
            if self._kept.get(topic) != why_not:
                _LOG.warning("%s: %s is gone from the source, but kept: %s", name, topic, why_not)
            self._kept[topic] = why_not
            return
        try:
            names = self._config.current.names
            await delete_topic(self._links.target_admin, names.on_target(topic))
        except TopicRefused as refused:
            _LOG.warning("%s: %s", name, refused)
            return
        _LOG.warning("%s: %s was deleted on the source, and now on the target", name, topic)
        self._note_deleted({topic}, now)

    def hear_of_deleted(self, source: Collection[str], target: ClusterView, now: int) -> None:
        """Note the topics that the leading worker has deleted; none that is there still."""
        if self._config.current.delete_gone_after_ms is None:
            return
        names = self._config.current.names
        self._note_deleted(
            {
                partition.topic
                for partition in self._partitions.own.values()
                if partition.state is PartitionState.SOURCE_GONE
                and partition.status.reason != DELETED
                and partition.topic not in source
                and lacks(target, names.on_target(partition.topic))
            },
            now,
        )

    def _note_deleted(self, topics: Collection[str], now: int) -> None:
        for partition in self._partitions.own.values():
            if partition.topic in topics:
                partition.offset_map.advance(0)
                partition.stop(PartitionState.SOURCE_GONE, DELETED, now)

    async def _why_not(self, topic: str, target: ClusterView) -> str | None:
        """Return what speaks against it; None if nothing does.

        Where the mirror's last record lies is known of partitions that this run has placed.
        """
        pause = self._orders.current.keeper_of(topic)
        if pause is not None:
            return f"{pause.scope} is paused by {pause.by}"
        names = self._config.current.names
        topic_partitions = {
            TopicPartition(topic, index)
            for index in target.topics[names.on_target(topic)].partitions
        }
        target_ends = await read_target_ends(self._links.target_admin, names, topic_partitions)
        for topic_partition, ends in target_ends.items():
            if not isinstance(ends, LogEnds):
                return f"partition {topic_partition[1]}: {ends.name}"
            partition = self._partitions.own.get(topic_partition)
            end = self._share.peers_gone.get(topic_partition)
            if partition is not None:
                if partition.state is not PartitionState.SOURCE_GONE:
                    return f"partition {topic_partition[1]}: {partition.state.value}"
                end = written_end(partition)
            if end is None:
                return f"no daemon that runs has mirrored partition {topic_partition[1]}"
            if end != ends.end:
                return (
                    f"partition {topic_partition[1]} holds records that this flow has not written"
                )
        return None


def written_end(partition: MirroredPartition) -> int | None:
    """Return the target offset behind the last record of a partition that is gone.

    The answer is None where this run cannot tell, or is not done; a sealed map says nothing of
    later records.
    """
    is_known = partition.target.is_positioned and partition.in_flight.is_settled
    if partition.state is not PartitionState.SOURCE_GONE or not is_known:
        return None
    return None if partition.offset_map.is_sealed else partition.offset_map.target_end


def gone_ends(config: FlowConfig, partitions: FlowPartitions) -> dict[TopicPartition, int]:
    """Return the written ends of this worker's partitions that are gone, if topics are deleted."""
    if config.delete_gone_after_ms is None:
        return {}
    ends = (
        (topic_partition, written_end(partition))
        for topic_partition, partition in partitions.own.items()
    )
    return {topic_partition: end for topic_partition, end in ends if end is not None}


def due(
    since_ms: Mapping[str, int], known: Collection[str], *, now_ms: int, grace_ms: int
) -> list[str]:
    """Return the topics to delete: missing for long enough, and not half of all or more.

    One topic may be all there is, so a single one is always believed to be gone.
    """
    if len(since_ms) > 1 and 2 * len(since_ms) >= len(known):
        return []
    return sorted(topic for topic, since in since_ms.items() if now_ms - since >= grace_ms)
