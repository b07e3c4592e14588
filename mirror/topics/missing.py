"""Partitions that are not on the source any more: stopped once that has lasted for a while.

A topic was deleted, or made again with fewer partitions. A broker that has just started knows no
topics, and one that is behind may list fewer partitions than there are. A partition that is not on
the target either needs no decision: it is forgotten.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import UUID

from mirror.state.flow_partitions import FlowPartitions
from mirror.state.interruptions import Interruptions
from mirror.state.live_config import LiveConfig
from mirror.state.partition_state import STOPPED, PartitionState
from mirror.state.work_share import WorkShare
from mirror.topics.gone_topics import UNSEEN_MS
from offset_translation.topic_identity import is_recreated
from runtime.configuration.topic_names import TopicNames
from wire.errors import ErrorCode
from wire.net.metadata import ClusterView
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

GONE_AFTER_MS: Final = 5_000
FORGOTTEN_AFTER_MS: Final = 600_000
"""For so long the status still shows a topic that neither side has."""
NO_TOPIC: Final = "the topic is not on the source"
NO_PARTITION: Final = "the source topic has no such partition any more"
LACKED: Final = "the target had no such topic"
NO_RIGHT: Final = "source: no right to see the topic"


class MissingPartitions:
    """The partitions that are missing on the source, and since when; in memory of this run only."""

    def __init__(self, partitions: FlowPartitions, interruptions: Interruptions) -> None:
        self._partitions = partitions
        self._interruptions = interruptions
        self._since_ms: dict[TopicPartition, int] = {}

    def stop_missing(self, source: ClusterView, hidden: Collection[str], now_ms: int) -> None:
        """Stop partitions that are missing, and those of topics that we may not see, ``hidden``."""
        partitions = self._partitions.own
        for (topic, _), partition in partitions.items():
            if topic in hidden and partition.state not in STOPPED | {PartitionState.PAUSED}:
                self._interruptions.stop(partition, PartitionState.NOT_AUTHORISED, NO_RIGHT, now_ms)
        missing = missing_partitions(partitions, source, hidden)
        self._since_ms = {
            topic_partition: self._since_ms.get(topic_partition, now_ms)
            for topic_partition in missing
        }
        for topic_partition, since_ms in self._since_ms.items():
            partition = partitions[topic_partition]
            if now_ms - since_ms >= GONE_AFTER_MS and partition.state not in STOPPED:
                reason = NO_PARTITION if topic_partition[0] in source.topics else NO_TOPIC
                self._interruptions.stop(partition, PartitionState.SOURCE_GONE, reason, now_ms)


class LeftBehind:
    """Partitions that neither side has any more, so no worker either; in memory of this run."""

    def __init__(self, config: LiveConfig, share: WorkShare) -> None:
        self._config = config
        self._share = share
        self._since_ms: dict[str, int] = {}
        self._looked_ms = 0

    def forget_left_behind(
        self,
        source: ClusterView,
        hidden: Collection[str],
        target: ClusterView,
        ids: Mapping[str, UUID],
        now_ms: int,
    ) -> None:
        """Take them from the flow's partitions; whole topics once they were missing for a while."""
        share, config = self._share, self._config.current
        if now_ms - self._looked_ms > 2 * config.discovery_interval_ms + UNSEEN_MS:
            self._since_ms.clear()
        self._looked_ms = now_ms
        self._since_ms = {
            topic: self._since_ms.get(topic, now_ms)
            for topic in {topic for topic, _ in share.seen} - source.topics.keys() - set(hidden)
            if config.names.on_target(topic) not in target.topics
        }
        gone = {topic for topic, at in self._since_ms.items() if now_ms - at >= FORGOTTEN_AFTER_MS}
        if gone and share.leads:
            _LOG.info("%s: on neither side any more: %s", config.name, ", ".join(sorted(gone)))
        share.forget(left_behind(share.seen, source, target, config.names, ids))
        share.forget(
            topic_partition for topic_partition in share.seen if topic_partition[0] in gone
        )


def doubt_maps(
    partitions: FlowPartitions,
    interruptions: Interruptions,
    lacking: Collection[str],
    now_ms: int,
) -> None:
    """Doubt the maps of topics that the target lacks, until each partition is positioned anew.

    A group's position by the old map would lie in the new topic. Maps are doubted also where the
    broker that lacked the topic had only just started.
    """
    for partition in partitions.own.values():
        if partition.target_topic in lacking:
            partition.target.lack_topic()
            if partition.is_flowing or partition.state is PartitionState.POSITIONING:
                interruptions.interrupt(partition, LACKED, now_ms, at_once=True)


def missing_partitions(
    known: Iterable[TopicPartition], source: ClusterView, hidden: Collection[str]
) -> set[TopicPartition]:
    """Return the missing partitions; none of a topic with an error, as nobody knows."""
    return {
        TopicPartition(topic, index)
        for topic, index in known
        if topic not in hidden and _lacks(source, topic, index)
    }


def left_behind(
    known: Iterable[TopicPartition],
    source: ClusterView,
    target: ClusterView,
    names: TopicNames,
    ids: Mapping[str, UUID],
) -> set[TopicPartition]:
    """Return partitions that neither side's topic has, since it was made again with fewer.

    Partitions are left out while the target's topic is still the copy of the earlier one (``ids``),
    about which somebody has to decide.
    """
    return {
        TopicPartition(topic, index)
        for topic, index in known
        if topic in source.topics
        and _lacks(source, topic, index)
        and not is_recreated(ids.get(topic), source.topics[topic].topic_id)
        and (name := names.on_target(topic)) in target.topics
        and _lacks(target, name, index)
    }


def _lacks(source: ClusterView, topic: str, index: int) -> bool:
    view = source.topics.get(topic)
    return view is None or (view.error_code == ErrorCode.NONE and index not in view.partitions)
