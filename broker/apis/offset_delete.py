"""OffsetDelete: forget what a group has committed for topics that it no longer reads."""

from collections.abc import Mapping

from broker.context import Call
from wire.errors import ErrorCode
from wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from wire.topic_partition import TopicPartition


async def handle(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse:
    """Answer for each partition; an error of the group itself stands at the top."""
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID, topics=())
    known: list[TopicPartition] = []
    missing: dict[TopicPartition, ErrorCode] = {}
    for topic in request.topics:
        view = call.node.metadata.topic(topic.name)
        for partition in topic.partitions:
            name = TopicPartition(topic.name, partition.partition_index)
            if view is None or partition.partition_index not in view.partitions:
                missing[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                known.append(name)
    outcome = await call.node.groups.ask(
        request.group_id,
        lambda shard, operation: shard.delete_offsets(request.group_id, known, operation),
    )
    if isinstance(outcome, ErrorCode):
        return OffsetDeleteResponse(error_code=outcome, topics=())
    return _response(request, {**missing, **outcome})


def _response(
    request: OffsetDeleteRequest, outcomes: Mapping[TopicPartition, ErrorCode]
) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        error_code=ErrorCode.NONE,
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=outcomes[TopicPartition(topic.name, partition.partition_index)],
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
