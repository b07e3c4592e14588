"""OffsetForLeaderEpoch: where an epoch ended, so that clients and followers notice divergence."""

from broker.apis.fetching import check_epoch
from broker.context import Call
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
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_end_of(topic.topic, asked, call) for asked in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _end_of(
    topic: str, asked: OffsetForLeaderPartition, call: Call
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
