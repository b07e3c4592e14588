"""CreatePartitions, key 37, v0-3: add partitions to topics.

v1: throttled responses are answered before the pause (KIP-219)
v2: flexible
v3: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599)
"""

from typing import ClassVar

from wire.schema import boolean, int16, int32, message, nullable_string, string


@message
class CreatePartitionsTopicResult:
    name: string
    error_code: int16
    error_message: nullable_string = None


@message
class CreatePartitionsResponse:
    """The outcome for each topic."""

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[range] = range(4)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    results: tuple[CreatePartitionsTopicResult, ...]


@message
class CreatePartitionsAssignment:
    broker_ids: tuple[int32, ...]


@message
class CreatePartitionsTopic:
    name: string
    count: int32
    assignments: tuple[CreatePartitionsAssignment, ...] | None


@message
class CreatePartitionsRequest:
    """New totals, with assignments for the added partitions if wanted."""

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[range] = range(4)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[CreatePartitionsResponse]] = CreatePartitionsResponse

    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: int32
    validate_only: boolean
