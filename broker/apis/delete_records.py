"""DeleteRecords: move a log's start forward."""

from typing import Final

from broker.context import Call
from broker.log.results import StorageError
from broker.replication.partition import Partition
from wire.errors import ErrorCode
from wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

UP_TO_HIGH_WATERMARK: Final = -1


async def handle(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    """Answer for each partition that is led here."""
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(_delete(topic.name, asked, call) for asked in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _delete(topic: str, asked: DeleteRecordsPartition, call: Call) -> DeleteRecordsPartitionResult:
    partition = call.node.led(topic, asked.partition_index)
    if not isinstance(partition, Partition):
        return _failed(asked, partition)
    if not partition.log.config.deletes:
        return _failed(asked, ErrorCode.POLICY_VIOLATION)
    offset = asked.offset
    if offset == UP_TO_HIGH_WATERMARK:
        offset = partition.high_watermark
    if not 0 <= offset <= partition.high_watermark:
        return _failed(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
    try:
        if offset > partition.log_start_offset:
            partition.delete_before(offset)
    except StorageError:
        return _failed(asked, ErrorCode.KAFKA_STORAGE_ERROR)
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index,
        low_watermark=partition.log_start_offset,
        error_code=ErrorCode.NONE,
    )


def _failed(asked: DeleteRecordsPartition, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=-1, error_code=error
    )
