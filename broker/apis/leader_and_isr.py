"""LeaderAndIsr: the controller tells this broker which partitions it leads or follows."""

import logging
from uuid import UUID

import trio

from broker.apis.cluster_action import refusal
from broker.context import Call
from broker.controller.announcements import FULL
from broker.controller.topics import illegal_name
from broker.framing import CloseConnection
from broker.replication.leadership import Leadership
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode
from wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)

_LOG = logging.getLogger(__name__)


async def handle(request: LeaderAndIsrRequest, call: Call) -> LeaderAndIsrResponse:
    """Take the partitions over, if this is the controller's word."""
    partitions = call.node.partitions
    refused = await refusal(request, call)
    if refused is not ErrorCode.NONE:
        return LeaderAndIsrResponse(error_code=refused)
    _refuse_illegal(request)
    try:
        await call.node.know_topics([topic.topic_name for topic in request.topic_states])
    except ZooKeeperFault as error:
        _LOG.warning("settings of topics cannot be read: %s", error)
        return LeaderAndIsrResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    if not partitions.obeys(request.controller_epoch):
        return LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    partitions.broker_epoch = request.broker_epoch
    if request.type == FULL:
        partitions.set_strays_aside(_assigned(request))
    partitions.known_leaders |= {
        leader.broker_id: (leader.host_name, leader.port) for leader in request.live_leaders
    }
    return LeaderAndIsrResponse(
        error_code=ErrorCode.NONE,
        topics=tuple([await _take(topic, request, call) for topic in request.topic_states]),
    )


def _assigned(request: LeaderAndIsrRequest) -> dict[tuple[str, int], UUID]:
    return {
        (topic.topic_name, state.partition_index): topic.topic_id
        for topic in request.topic_states
        for state in topic.partition_states
    }


def _refuse_illegal(request: LeaderAndIsrRequest) -> None:
    """Hang up on what no controller sends: names become folders and paths in ZooKeeper."""
    for topic in request.topic_states:
        wrong = illegal_name(topic.topic_name)
        if wrong is not None:
            raise CloseConnection(f"LeaderAndIsr for a topic that cannot be: {wrong}")
        if any(state.partition_index < 0 for state in topic.partition_states):
            raise CloseConnection(f"LeaderAndIsr for {topic.topic_name} with a negative partition")


async def _take(
    topic: LeaderAndIsrTopicState, request: LeaderAndIsrRequest, call: Call
) -> LeaderAndIsrTopicError:
    """Take the partitions of a topic, until a newer controller speaks: it may have deleted some."""
    partitions = call.node.partitions
    errors: list[LeaderAndIsrPartitionError] = []
    for state in topic.partition_states:
        error = ErrorCode.STALE_CONTROLLER_EPOCH
        if partitions.obeys(request.controller_epoch):
            error = partitions.take(_leadership(topic, state), is_new=state.is_new)
        errors.append(
            LeaderAndIsrPartitionError(
                topic_name=topic.topic_name,
                partition_index=state.partition_index,
                error_code=error,
            )
        )
        # A new log takes milliseconds of the disk's time; other clients get their turn between.
        await trio.lowlevel.checkpoint()
    return LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=tuple(errors))


def _leadership(topic: LeaderAndIsrTopicState, state: LeaderAndIsrPartitionState) -> Leadership:
    return Leadership(
        topic=topic.topic_name,
        index=state.partition_index,
        topic_id=topic.topic_id,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        replicas=state.replicas,
        partition_epoch=state.partition_epoch,
    )
