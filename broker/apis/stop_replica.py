"""StopReplica: the controller takes partitions away from this broker, with their logs."""

from broker.context import Call
from wire.errors import ErrorCode
from wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)


async def handle(request: StopReplicaRequest, call: Call) -> StopReplicaResponse:
    """Stop each partition named, unless a newer controller has spoken already.

    STALE_BROKER_EPOCH for what was meant for an earlier life of this broker (KIP-380). Nothing is
    awaited between partitions: a topic made anew meanwhile would be taken for the deleted one.
    """
    partitions = call.node.partitions
    if not await call.node.is_registered_as(request.broker_epoch):
        return StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, partition_errors=())
    if not partitions.obeys(request.controller_epoch):
        return StopReplicaResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH, partition_errors=())
    response = StopReplicaResponse(
        error_code=ErrorCode.NONE,
        partition_errors=tuple(
            StopReplicaPartitionError(
                topic_name=topic.topic_name,
                partition_index=state.partition_index,
                error_code=partitions.stop(
                    topic.topic_name,
                    state.partition_index,
                    leader_epoch=state.leader_epoch,
                    delete=state.delete_partition,
                ),
            )
            for topic in request.topic_states
            for state in topic.partition_states
        ),
    )
    if any(
        state.delete_partition for topic in request.topic_states for state in topic.partition_states
    ):
        partitions.forget_deleted()
    return response
