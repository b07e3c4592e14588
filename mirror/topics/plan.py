"""Decide what to change on the target for the topics that are mirrored. Pure."""

from collections.abc import Iterable, Mapping

from mirror.clusters.admin import CreateTopic, GrowTopic, SetConfigs, TopicAction
from runtime.configuration.flow_section import MIRROR_MAKERS_SETTINGS, SettingsSync
from wire.net.metadata import TopicView
from wire.values import frozen


@frozen
class ClusterTopic:
    """A topic as one cluster has it. ``configs`` are those set for the topic itself."""

    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]


def topic_shape(topic: TopicView, configs: Mapping[str, str] | None) -> ClusterTopic:
    """Return the shape of a topic in a cluster's view."""
    return ClusterTopic(
        partition_count=len(topic.partitions),
        replication_factor=max((len(p.replicas) for p in topic.partitions.values()), default=1),
        configs=configs or {},
    )


def plan_topics(
    sources: Mapping[str, ClusterTopic],
    targets: Mapping[str, ClusterTopic],
    *,
    replication_factor: int | None,
    live_brokers: int,
    settings: SettingsSync = MIRROR_MAKERS_SETTINGS,
) -> list[TopicAction]:
    """Return the actions on the target for these source topics, all of them to be mirrored.

    A replication factor that the target cannot give is lowered to its live brokers. A target with
    more partitions than the source is left alone.
    """
    actions: list[TopicAction] = []
    for topic, source in sorted(sources.items()):
        target = targets.get(topic)
        configs = {
            name: value for name, value in source.configs.items() if settings.names.matches(name)
        }
        if target is None:
            wanted = replication_factor or source.replication_factor
            actions.append(
                CreateTopic(
                    topic=topic,
                    partition_count=source.partition_count,
                    replication_factor=max(1, min(wanted, live_brokers)),
                    configs=configs,
                )
            )
            continue
        if target.partition_count < source.partition_count:
            actions.append(GrowTopic(topic=topic, partition_count=source.partition_count))
        changed = {
            name: value for name, value in configs.items() if target.configs.get(name) != value
        }
        if changed:
            actions.append(SetConfigs(topic=topic, configs=changed))
    return actions


def missing(known: Iterable[str], seen: Iterable[str]) -> list[str]:
    """Return the topics that were there and are not any more."""
    return sorted(set(known) - set(seen))
