"""What a cluster shows of topics, and what it hides: a topic that is not shown may be there.

Asked for all topics, a broker leaves out those that one may not describe (KafkaApis,
handleTopicMetadataRequest), so that a right that was taken away looks like a deletion. Asked by
name it says so.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from mirror.clusters.admin import hidden_topics
from mirror.clusters.links import Links
from mirror.map.map_log import MapLog
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.live_config import LiveConfig
from mirror.state.orders_in_force import OrdersInForce
from offset_translation.topic_identity import NO_ID
from wire.errors import ErrorCode
from wire.net import Cluster
from wire.net.metadata import ClusterView, TopicView
from wire.topic_partition import TopicPartition


async def with_hidden(
    cluster: Cluster, view: ClusterView, expected: Collection[str]
) -> ClusterView:
    """Return a view with those of the expected topics that it leaves out as we may not see them.

    They have their error and no partitions. Raises NetworkFault.
    """
    hidden = await hidden_topics(cluster, set(expected) - view.topics.keys())
    if not hidden:
        return view
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topics = {
        name: TopicView(name=name, topic_id=NO_ID, partitions={}, error_code=refused)
        for name in hidden
    }
    return replace(view, topics={**view.topics, **topics})


def exists(view: ClusterView, name: str) -> bool:
    """Whether a topic is there, and not only an error about it."""
    topic = view.topics.get(name)
    return topic is not None and topic.error_code == ErrorCode.NONE


def is_hidden(view: ClusterView, name: str) -> bool:
    """Whether a topic is not shown because we may not see it: it may be there or not."""
    topic = view.topics.get(name)
    return topic is not None and topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def lacks(view: ClusterView, name: str) -> bool:
    """Whether a topic is not there, by a cluster that hides nothing of it."""
    return not exists(view, name) and not is_hidden(view, name)


class TopicSight:
    """Looks for the topics that a flow knows of and that a cluster leaves out."""

    def __init__(
        self,
        config: LiveConfig,
        partitions: FlowPartitions,
        *,
        orders: OrdersInForce,
        links: Links,
        map_log: MapLog,
    ) -> None:
        self._config = config
        self._partitions = partitions
        self._orders = orders
        self._links = links
        self._map_log = map_log

    async def hidden_on_source(self, source: ClusterView) -> frozenset[str]:
        """Return the topics that the source hides, of all that the flow knows of.

        Raises NetworkFault.
        """
        config = self._config.current
        known = {topic for topic, _ in self._partitions.own}
        known |= {topic for topic in self._map_log.state.topic_ids if config.mirrors(topic)}
        known |= {str(restart.scope.topic) for restart in self._orders.unknown}
        return await hidden_topics(self._links.source_admin, known - source.topics.keys())

    async def target(self, wanted: Iterable[str]) -> ClusterView:
        """Return the target, with an error for each copy that it hides; raises NetworkFault.

        ``wanted`` are topics by the source's names.
        """
        view = await self._links.target_admin.metadata(refresh=True)
        copies = set(map(self._config.current.names.on_target, wanted))
        copies |= {partition.target_topic for partition in self._partitions.own.values()}
        return await with_hidden(self._links.target_admin, view, copies)

    def mirrored_once(self, topics: Collection[str]) -> set[TopicPartition]:
        """Return the partitions of these topics that the map knows."""
        state = self._map_log.state
        return {one for one in (*state.maps, *state.target_ids) if one.topic in topics}
