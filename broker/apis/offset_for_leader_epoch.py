"""OffsetForLeaderEpoch: where an epoch ended, so that clients and followers notice divergence."""

from functools import partial

from broker.apis.fetching import check_epoch
from broker.context import Call
from broker.fairness import Turns
from broker.log.results import StorageError
from broker.replication.partition import Partition
from wire.errors import ErrorCode
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


async def handle(request: OffsetForLeaderEpochRequest, call: Call) -> OffsetForLeaderEpochResponse:
    """Answer for each partition that is led here."""
    turns = Turns()
    topics: list[OffsetForLeaderTopicResult] = []
    for topic in request.topics:
        partitions = await turns.each(topic.partitions, partial(_end_of, topic.topic, call))
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
    return OffsetForLeaderEpochResponse(topics=tuple(topics))


def _end_of(
    topic: str, call: Call, asked: OffsetForLeaderPartition
) -> OffsetForLeaderEpochEpochEndOffset:
    partition = call.node.led(topic, asked.partition)
    error = partition if not isinstance(partition, Partition) else ErrorCode.NONE
    if isinstance(partition, Partition):
        error = check_epoch(partition, asked.current_leader_epoch)
    if error is not ErrorCode.NONE or not isinstance(partition, Partition):
        return OffsetForLeaderEpochEpochEndOffset(error_code=error, partition=asked.partition)
    try:
        epoch, end = _look_up(partition, asked.leader_epoch)
    except StorageError:
        return OffsetForLeaderEpochEpochEndOffset(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, partition=asked.partition
        )
    return OffsetForLeaderEpochEpochEndOffset(
        error_code=ErrorCode.NONE, partition=asked.partition, leader_epoch=epoch, end_offset=end
    )


def _look_up(partition: Partition, epoch: int) -> tuple[int, int]:
    """The present epoch ends where the log does; an older one where its successor began."""
    if epoch == partition.leader_epoch:
        return epoch, partition.log_end_offset
    return partition.log.end_offset_for_epoch(epoch)
