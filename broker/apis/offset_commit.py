"""OffsetCommit: store how far a group has read."""

from collections.abc import Mapping

from broker.context import Call
from broker.groups.offsets import Committing, Position
from wire.errors import ErrorCode
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from wire.topic_partition import TopicPartition


async def handle(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    """Answer once the offsets are safe; partitions that do not exist are refused one by one."""
    positions, missing = _sorted_out(request, call)
    if not positions:
        return _response(request, missing)
    committing = Committing(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id_or_member_epoch,
        positions=positions,
        retention_ms=request.retention_time_ms,
    )
    outcome = await call.node.groups.ask(
        request.group_id, lambda shard, operation: shard.commit(committing, operation)
    )
    if isinstance(outcome, ErrorCode):
        outcome = dict.fromkeys((TopicPartition(p.topic, p.partition) for p in positions), outcome)
    return _response(request, {**missing, **outcome})


def _sorted_out(
    request: OffsetCommitRequest, call: Call
) -> tuple[tuple[Position, ...], dict[TopicPartition, ErrorCode]]:
    """Return what can be committed, and the errors of the rest."""
    positions: dict[TopicPartition, Position] = {}
    missing: dict[TopicPartition, ErrorCode] = {}
    for topic in request.topics:
        known = call.node.metadata.topic(topic.name)
        for partition in topic.partitions:
            name = TopicPartition(topic.name, partition.partition_index)
            if known is None or partition.partition_index not in known.partitions:
                missing[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            positions[name] = Position(  # one that is named again and again counts by the last
                topic=topic.name,
                partition=partition.partition_index,
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=partition.committed_metadata,
            )
    return tuple(positions.values()), missing


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
