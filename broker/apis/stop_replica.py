"""StopReplica: the controller takes partitions away from this broker, with their logs."""

from broker.apis.cluster_action import refusal
from broker.context import Call
from wire.errors import ErrorCode
from wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)


async def handle(request: StopReplicaRequest, call: Call) -> StopReplicaResponse:
    """Stop each partition named, if this is the controller's word.

    Nothing is awaited between partitions: a topic made anew meanwhile would be taken for the
    deleted one.
    """
    refused = await refusal(request, call)
    if refused is not ErrorCode.NONE:
        return StopReplicaResponse(error_code=refused, partition_errors=())
    partitions = call.node.partitions
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
