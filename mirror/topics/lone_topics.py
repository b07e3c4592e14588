"""Lone topics and partitions, which the target alone has: made on the source by decision.

    source  orders-0  orders-1
    target  orders-0  orders-1  orders-2  lone-0      orders-2 and lone: made there by somebody

A flow mirrors what its source has, so it knows nothing of these. An order that names one of them
decides about it. The source then gets the topic or the partitions, empty, and what the target holds
is the target's own, as it may be in any other partition: a seal at offset 0 says so in the map,
before the source can take a first record. What the map knows was mirrored once and is gone from the
source: it is not made there again.
"""

import logging
from collections.abc import Collection
from typing import Final

from mirror.clusters.admin import CreateTopic, GrowTopic, apply, topic_configs
from mirror.clusters.links import Links
from mirror.map.map_log import MapLog
from mirror.state.live_config import LiveConfig
from mirror.state.orders import Restart, Scope
from mirror.state.orders_in_force import OrdersInForce
from mirror.state.reverse_flow import ReverseFlow
from mirror.topics.plan import plan_topics, topic_shape
from mirror.topics.sight import exists, is_hidden, with_hidden
from offset_translation.map_records import seal
from offset_translation.offset_map import OffsetMap
from runtime.configuration.config import FlowConfig
from wire.errors import ErrorCode
from wire.net.metadata import ClusterView, TopicView
from wire.net.topic_creation import TopicRefused
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

UNDECIDED: Final = "so nothing is decided about what the target has of it"


class LoneTopics:
    """Makes on the source what orders name and the target alone has."""

    def __init__(
        self,
        config: LiveConfig,
        orders: OrdersInForce,
        reverse: ReverseFlow,
        links: Links,
        map_log: MapLog,
    ) -> None:
        self._config = config
        self._reverse = reverse
        self._orders = orders
        self._links = links
        self._map_log = map_log

    async def settle(self, source: ClusterView, hidden: Collection[str]) -> Collection[Restart]:
        """Return the orders that `source` lacks nothing for; make what it lacks for the others.

        What was just made may not be seen by every broker, so its order waits for the next look. So
        does one about a topic that either site hides from us. Raises NetworkFault.
        """
        waiting = [one for one in self._orders.unknown if one.scope.topic not in hidden]
        if not waiting:
            return ()
        target = await self._links.target_admin.metadata(refresh=True)
        names = self._config.current.names
        on_target = {one: names.on_target(str(one.scope.topic)) for one in waiting}
        target = await with_hidden(self._links.target_admin, target, on_target.values())
        waiting = [one for one in waiting if not is_hidden(target, on_target[one])]
        return [restart for restart in waiting if not await self._has_made(restart, source, target)]

    async def _has_made(self, restart: Restart, source: ClusterView, target: ClusterView) -> bool:
        """Make what the source lacks for an order; return whether there was anything to make."""
        config, state = self._config.current, self._map_log.state
        # The source's names: those of the other direction's map were given here already.
        maps = [*state.maps.items(), *self._reverse.arrived.maps.items()]
        known = {*state.target_ids, *(where for where, one in maps if not is_sealed_only(one))}
        copy = alone_on_target(config, restart.scope, source, target, known=known)
        topic = str(restart.scope.topic)
        if copy is None or (topic not in source.topics and topic in state.topic_ids):
            return False
        configs = await topic_configs(self._links.target_admin, [copy.name])
        seen = source.topics.get(topic)
        first = 0 if seen is None else len(seen.partitions)
        await self._map_log.write_many(
            [
                seal(topic, index, source_end=0, target_end=0)
                for index in range(first, len(copy.partitions))
            ]
        )
        actions = plan_topics(
            {topic: topic_shape(copy, configs.get(copy.name))},
            {} if seen is None else {topic: topic_shape(seen, configs.get(copy.name))},
            replication_factor=None,
            live_brokers=len(source.brokers),
            settings=config.settings,
        )
        for action in actions:
            assert isinstance(action, CreateTopic | GrowTopic), "its own settings stay as they are"
            try:
                await apply(self._links.source_admin, action)
            except TopicRefused as refused:
                _LOG.error("%s: %s: %s, %s", config.name, config.source, refused, UNDECIDED)
                return False
            if isinstance(action, CreateTopic):
                _LOG.warning(
                    "%s: %s: made on %s, empty: %s orders what becomes of %s's",
                    config.name,
                    topic,
                    config.source,
                    restart.by,
                    config.target,
                )
            else:
                _LOG.warning(
                    "%s: %s: %d partitions on %s, as on %s: %s orders what becomes of those there",
                    config.name,
                    topic,
                    action.partition_count,
                    config.source,
                    config.target,
                    restart.by,
                )
        return True


def is_sealed_only(offset_map: OffsetMap) -> bool:
    """Whether nothing was mirrored: the map is empty, or has the seal of a lone topic."""
    return len(offset_map) == (1 if offset_map.source_end_at_seal(0) == 0 else 0)


def alone_on_target(
    flow: FlowConfig,
    scope: Scope,
    source: ClusterView,
    target: ClusterView,
    *,
    known: Collection[TopicPartition],
) -> TopicView | None:
    """Return the target's topic, where the source lacks it, or the partition that is named. Pure.

    Nothing of the part that the source lacks may be `known` to the map. A source that tells an
    error of the topic may have it.
    """
    if scope.topic is None or not flow.moves(scope.topic):
        return None
    name = flow.names.on_target(scope.topic)
    if not exists(target, name):
        return None
    seen, copy = source.topics.get(scope.topic), target.topics[name]
    if seen is not None and seen.error_code != ErrorCode.NONE:
        return None
    has = 0 if seen is None else len(seen.partitions)
    lacks = range(has, len(copy.partitions))
    is_meant = has == 0 if scope.partition is None else scope.partition in lacks
    if not is_meant or not lacks:
        return None
    return None if any(TopicPartition(scope.topic, one) in known for one in lacks) else copy
