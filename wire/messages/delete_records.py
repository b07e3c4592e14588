"""DeleteRecords, key 21, v0-2: move the start of logs.

v1: throttled responses are answered before the pause (KIP-219)
v2: flexible
"""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, string


@message
class DeleteRecordsPartitionResult:
    partition_index: int32
    low_watermark: int64
    error_code: int16


@message
class DeleteRecordsTopicResult:
    name: string
    partitions: tuple[DeleteRecordsPartitionResult, ...]


@message
class DeleteRecordsResponse:
    """The new start of each log."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    topics: tuple[DeleteRecordsTopicResult, ...]


@message
class DeleteRecordsPartition:
    partition_index: int32
    offset: int64


@message
class DeleteRecordsTopic:
    name: string
    partitions: tuple[DeleteRecordsPartition, ...]


@message
class DeleteRecordsRequest:
    """Offsets before which records are dropped; -1 for the high watermark."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[DeleteRecordsResponse]] = DeleteRecordsResponse

    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: int32
