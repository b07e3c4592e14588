"""UpdateMetadata: the controller tells this broker what the cluster looks like."""

import logging
from collections.abc import Sequence

from broker.apis.cluster_action import refusal
from broker.context import Call
from broker.controller.cluster import LEADER_DURING_DELETE
from broker.controller.topics import illegal_name
from broker.fairness import Turns
from broker.framing import CloseConnection
from broker.metadata_cache import BrokerEndpoint, MetadataCache, PartitionView
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode
from wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

_LOG = logging.getLogger(__name__)


async def handle(request: UpdateMetadataRequest, call: Call) -> UpdateMetadataResponse:
    """Replace what is known, if this is the controller's word."""
    refused = await refusal(request, call)
    if refused is not ErrorCode.NONE:
        return UpdateMetadataResponse(error_code=refused)
    for topic in request.topic_states:
        wrong = illegal_name(topic.topic_name)
        if wrong is not None:  # no controller sends it, and names become paths in ZooKeeper
            raise CloseConnection(f"UpdateMetadata for a topic that cannot be: {wrong}")
    turns = Turns()
    views = [await turns.each(topic.partition_states, _view) for topic in request.topic_states]
    try:
        await call.node.know_topics([topic.topic_name for topic in request.topic_states])
    except ZooKeeperFault as error:
        _LOG.warning("settings of topics cannot be read: %s", error)
        return UpdateMetadataResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    if not call.node.partitions.obeys(request.controller_epoch):
        return UpdateMetadataResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    _take(request, views, call.node.metadata, call.node.config.inter_broker_listener.name)
    for topic in request.topic_states:
        if call.node.metadata.topic(topic.topic_name) is None:
            call.node.dynamic.forget(topic.topic_name)
    return UpdateMetadataResponse(error_code=ErrorCode.NONE)


def _take(
    request: UpdateMetadataRequest,
    views: Sequence[Sequence[PartitionView]],
    metadata: MetadataCache,
    inter_broker: str,
) -> None:
    """Bring the cache up to what the controller says, all at once; `views` are of its topics."""
    for topic, partitions in zip(request.topic_states, views, strict=True):
        if any(view.leader == LEADER_DURING_DELETE for view in partitions):
            metadata.remove_topic(topic.topic_name)
        else:
            metadata.put_partitions(topic.topic_name, topic.topic_id, partitions)
    metadata.set_brokers(
        request.controller_id,
        [_endpoint(broker, inter_broker) for broker in request.live_brokers if broker.endpoints],
    )


def _endpoint(broker: UpdateMetadataBroker, inter_broker: str) -> BrokerEndpoint:
    endpoints = {one.listener: (one.host, one.port) for one in broker.endpoints}
    first = broker.endpoints[0]
    host, port = endpoints.get(inter_broker, (first.host, first.port))
    return BrokerEndpoint(
        broker_id=broker.id, host=host, port=port, rack=broker.rack, endpoints=endpoints
    )


def _view(state: UpdateMetadataPartitionState) -> PartitionView:
    return PartitionView(
        index=state.partition_index,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
        offline=state.offline_replicas,
    )
