"""ListPartitionReassignments: which partitions are on the move (KIP-455)."""

from collections.abc import Collection

from broker.context import Call
from broker.zookeeper.tree import TopicAssignment
from wire.errors import ErrorCode
from wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(
    request: ListPartitionReassignmentsRequest, call: Call
) -> ListPartitionReassignmentsResponse:
    """Answer from what the controller knows; what is not on the move is left out."""
    cluster = call.node.controller.cluster
    if cluster is None:
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.NOT_CONTROLLER,
            error_message="This is not the correct controller for this cluster.",
            topics=(),
        )
    wanted: dict[str, Collection[int]] = {
        name: topic.replicas.keys() for name, topic in cluster.topics.items()
    }
    if request.topics is not None:
        wanted = {topic.name: topic.partition_indexes for topic in request.topics}
    ongoing = {
        name: _ongoing(cluster.topics[name], indexes)
        for name, indexes in wanted.items()
        if name in cluster.topics
    }
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE,
        topics=tuple(
            OngoingTopicReassignment(name=name, partitions=partitions)
            for name, partitions in ongoing.items()
            if partitions
        ),
    )


def _ongoing(
    topic: TopicAssignment, indexes: Collection[int]
) -> tuple[OngoingPartitionReassignment, ...]:
    return tuple(
        OngoingPartitionReassignment(
            partition_index=index,
            replicas=topic.replicas[index],
            adding_replicas=topic.adding.get(index, ()),
            removing_replicas=topic.removing.get(index, ()),
        )
        for index in sorted(topic.moving().intersection(indexes))
    )
