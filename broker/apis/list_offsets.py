"""ListOffsets: where a log starts and ends, and which offset belongs to a time."""

from typing import Final

from broker.apis.fetching import READ_COMMITTED, check_epoch
from broker.context import Call
from broker.fairness import Turns
from broker.log.lookup import Further
from broker.log.results import StorageError, TimestampOffset
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
ONE_OFFSET_SINCE: Final = 1
LEADER_EPOCH_SINCE: Final = 4
OFFSET_NOT_AVAILABLE_SINCE: Final = 5


async def handle(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    """Answer for each partition that is led here."""
    turns = Turns()
    topics: list[ListOffsetsTopicResponse] = []
    for topic in request.topics:
        found: list[ListOffsetsPartitionResponse] = []
        for asked in topic.partitions:
            found.append(await _find(topic.name, request, call, asked))
            await turns.pass_on()
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(found)))
    return ListOffsetsResponse(topics=tuple(topics))


async def _find(
    topic: str, request: ListOffsetsRequest, call: Call, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    partition = call.node.led(topic, index)
    if not isinstance(partition, Partition):
        return ListOffsetsPartitionResponse(partition_index=index, error_code=partition)
    wrong = check_epoch(partition, asked.current_leader_epoch)
    if wrong is ErrorCode.NONE and asked.timestamp < LATEST_TIERED:
        wrong = ErrorCode.UNSUPPORTED_VERSION
    if wrong is not ErrorCode.NONE:
        return ListOffsetsPartitionResponse(partition_index=index, error_code=wrong)
    end, term = _readable_end(partition, request), partition.term
    try:
        timestamp, offset, epoch = await _look_up(partition, asked.timestamp, end, call)
    except StorageError:
        return ListOffsetsPartitionResponse(
            partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR
        )
    if not partition.is_led_here or partition.term != term:
        return await _find(topic, request, call, asked)  # it took long, and others have led
    if request.replica_id < 0 and partition.is_behind_its_epoch and _is_open(asked, offset):
        return ListOffsetsPartitionResponse(
            partition_index=index, error_code=_not_available(call.api_version)
        )
    is_oldest = call.api_version < ONE_OFFSET_SINCE
    return ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        old_style_offsets=_before(partition, asked, offset, end) if is_oldest else (),
        timestamp=UNKNOWN if is_oldest else timestamp,
        offset=UNKNOWN if is_oldest else offset,
        leader_epoch=epoch if call.api_version >= LEADER_EPOCH_SINCE else UNKNOWN,
    )


def _before(
    partition: Partition, asked: ListOffsetsPartition, offset: int, end: int
) -> tuple[int, ...]:
    """Return what v0 asks for: where segments begin that are wholly before a time, newest first.

    The end of the log counts as one more where the end is asked for. Kafka goes by the times of
    files; here the stamps of records decide.
    """
    starts = [max(base, partition.log_start_offset) for base in partition.log.segment_bases]
    if asked.timestamp == LATEST:
        found = [start for start in starts if start < end] + [end]
    elif asked.timestamp == EARLIEST:
        found = starts[:1]
    else:
        limit = end if offset == UNKNOWN else offset
        stops = [*starts[1:], end]
        found = [start for start, stop in zip(starts, stops, strict=True) if stop <= limit]
    return tuple(reversed(found))[: max(asked.max_num_offsets, 0)]


def _readable_end(partition: Partition, request: ListOffsetsRequest) -> int:
    if request.replica_id >= 0:
        return partition.log_end_offset
    if request.isolation_level == READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark


def _is_open(asked: ListOffsetsPartition, offset: int) -> bool:
    """Return whether a new leader's answer may lie before one that an earlier leader gave.

    Its high watermark may be lower at first; where the log starts does not depend on it (KIP-207).
    """
    if asked.timestamp == LATEST:
        return True
    return asked.timestamp not in {EARLIEST, EARLIEST_LOCAL, LATEST_TIERED} and offset == UNKNOWN


def _not_available(version: int) -> ErrorCode:
    if version < OFFSET_NOT_AVAILABLE_SINCE:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.OFFSET_NOT_AVAILABLE


async def _look_up(
    partition: Partition, timestamp: int, end: int, call: Call
) -> tuple[int, int, int]:
    """Return (timestamp, offset, leader epoch), -1 for what is unknown or not to be found."""
    if timestamp == LATEST:
        return UNKNOWN, end, partition.leader_epoch
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return UNKNOWN, partition.log_start_offset, UNKNOWN
    if timestamp == LATEST_TIERED:
        return UNKNOWN, UNKNOWN, UNKNOWN
    if timestamp == MAX_TIMESTAMP:
        timestamp = partition.log.newest_ms
    found = None if timestamp < 0 else await _at_time(partition, timestamp, end, call)
    if found is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    return found.timestamp_ms, found.offset, found.leader_epoch


async def _at_time(
    partition: Partition, timestamp: int, end: int, call: Call
) -> TimestampOffset | None:
    """Return the first record below `end` that is as young, without stopping the others."""
    found = partition.log.look_for_timestamp(timestamp, stop_offset=end)
    while isinstance(found, Further):
        inside = await call.aside.beside(found.search)
        if inside is not None:
            return inside
        found = partition.log.look_for_timestamp(
            timestamp, start_offset=found.next_offset, stop_offset=end
        )
    return found
