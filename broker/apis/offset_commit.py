"""OffsetCommit: store how far a group has read."""

from collections.abc import Mapping

from broker.apis.positions import sorted_out
from broker.context import Call
from broker.groups.offsets import Committing
from wire.errors import ErrorCode
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from wire.topic_partition import TopicPartition

MEMBER_EPOCHS_SINCE = 9
"""Members of the new group protocol commit by these versions only (KIP-848)."""


async def handle(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    """Answer once the offsets are safe; partitions that do not exist are refused one by one."""
    positions, missing = sorted_out(request, call)
    if not positions:
        return _response(request, missing)
    committing = Committing(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id_or_member_epoch,
        positions=positions,
        retention_ms=request.retention_time_ms,
        knows_epochs=call.api_version >= MEMBER_EPOCHS_SINCE,
    )
    outcome = await call.node.groups.ask(
        request.group_id, lambda shard, operation: shard.commit(committing, operation)
    )
    if isinstance(outcome, ErrorCode):
        outcome = dict.fromkeys((TopicPartition(p.topic, p.partition) for p in positions), outcome)
    return _response(request, {**missing, **outcome})


def _response(
    request: OffsetCommitRequest, outcomes: Mapping[TopicPartition, ErrorCode]
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=outcomes[TopicPartition(topic.name, partition.partition_index)],
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
