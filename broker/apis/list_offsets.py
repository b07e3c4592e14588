"""ListOffsets: where a log starts and ends, and which offset belongs to a time."""

from typing import Final

from broker.apis.fetch import READ_COMMITTED, check_epoch
from broker.context import Call
from broker.log.results import StorageError
from broker.replication.partition import Partition
from wire.errors import ErrorCode
from wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
UNKNOWN: Final = -1
LEADER_EPOCH_SINCE: Final = 4


async def handle(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    """Answer for each partition that is led here."""
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _find(topic.name, asked, request.isolation_level, call)
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _find(
    topic: str, asked: ListOffsetsPartition, isolation_level: int, call: Call
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    partition = call.node.led(topic, index)
    if not isinstance(partition, Partition):
        return ListOffsetsPartitionResponse(partition_index=index, error_code=partition)
    wrong_epoch = check_epoch(partition, asked.current_leader_epoch)
    if wrong_epoch is not ErrorCode.NONE:
        return ListOffsetsPartitionResponse(partition_index=index, error_code=wrong_epoch)
    if asked.timestamp < LATEST_TIERED:
        return ListOffsetsPartitionResponse(
            partition_index=index, error_code=ErrorCode.UNSUPPORTED_VERSION
        )
    end = partition.high_watermark
    if isolation_level == READ_COMMITTED:
        end = partition.last_stable_offset
    try:
        timestamp, offset, epoch = _look_up(partition, asked.timestamp, end)
    except StorageError:
        return ListOffsetsPartitionResponse(
            partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR
        )
    return ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch if call.api_version >= LEADER_EPOCH_SINCE else UNKNOWN,
    )


def _look_up(partition: Partition, timestamp: int, end: int) -> tuple[int, int, int]:
    """Return (timestamp, offset, leader epoch), -1 for what is unknown or not to be found."""
    if timestamp == LATEST:
        return UNKNOWN, end, partition.leader_epoch
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return UNKNOWN, partition.log_start_offset, UNKNOWN
    if timestamp == LATEST_TIERED:
        return UNKNOWN, UNKNOWN, UNKNOWN
    if timestamp == MAX_TIMESTAMP:
        found = partition.log.newest_record()
    else:
        found = partition.log.offset_for_timestamp(timestamp, stop_offset=end)
    if found is None or found.offset >= end:
        return UNKNOWN, UNKNOWN, UNKNOWN
    return found.timestamp_ms, found.offset, found.leader_epoch
