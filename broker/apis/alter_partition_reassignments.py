"""AlterPartitionReassignments: move partitions to other brokers, or stop moving them (KIP-455)."""

from collections.abc import Mapping

from broker.context import Call
from broker.controller.cluster import ApiError, MoveRequested
from wire.errors import ErrorCode
from wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from wire.topic_partition import TopicPartition


async def handle(
    request: AlterPartitionReassignmentsRequest, call: Call
) -> AlterPartitionReassignmentsResponse:
    """Answer when the moves are durable; ListPartitionReassignments says how far they are."""
    targets = {
        TopicPartition(topic.name, partition.partition_index): partition.replicas
        for topic in request.topics
        for partition in topic.partitions
    }
    decision = await call.node.controller.ask(lambda _: MoveRequested(targets=targets))
    if decision is None:
        return AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.NOT_CONTROLLER,
            error_message="This is not the correct controller for this cluster.",
            responses=(),
        )
    return AlterPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE, responses=_responses(request, decision.outcomes)
    )


def _responses(
    request: AlterPartitionReassignmentsRequest, outcomes: Mapping[TopicPartition, ApiError]
) -> tuple[ReassignableTopicResponse, ...]:
    return tuple(
        ReassignableTopicResponse(
            name=topic.name,
            partitions=tuple(
                _response(TopicPartition(topic.name, partition.partition_index), outcomes)
                for partition in topic.partitions
            ),
        )
        for topic in request.topics
    )


def _response(
    partition: TopicPartition, outcomes: Mapping[TopicPartition, ApiError]
) -> ReassignablePartitionResponse:
    outcome = outcomes[partition]
    return ReassignablePartitionResponse(
        partition_index=partition.partition,
        error_code=outcome.error,
        error_message=outcome.message,
    )
