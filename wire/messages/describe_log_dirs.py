"""DescribeLogDirs, key 35, v1-4: what lies in a broker's log folders (KIP-113).

v2: flexible
v3: response error_code
v4: response total_bytes and usable_bytes (KIP-827)
"""

from typing import ClassVar

from wire.schema import boolean, int16, int32, int64, message, since, string


@message
class DescribeLogDirsPartition:
    partition_index: int32
    partition_size: int64
    offset_lag: int64
    is_future_key: boolean


@message
class DescribeLogDirsTopic:
    name: string
    partitions: tuple[DescribeLogDirsPartition, ...]


@message
class DescribeLogDirsResult:
    error_code: int16
    log_dir: string
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: int64 = since(4, default=-1, ignorable=True)
    usable_bytes: int64 = since(4, default=-1, ignorable=True)


@message
class DescribeLogDirsResponse:
    """Sizes in bytes; a lag is the log's end minus the high watermark."""

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[range] = range(1, 5)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    error_code: int16 = since(3, default=0, ignorable=True)
    results: tuple[DescribeLogDirsResult, ...]


@message
class DescribableLogDirTopic:
    topic: string
    partitions: tuple[int32, ...]


@message
class DescribeLogDirsRequest:
    """The partitions of interest; None for all."""

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[range] = range(1, 5)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[DescribeLogDirsResponse]] = DescribeLogDirsResponse

    topics: tuple[DescribableLogDirTopic, ...] | None
