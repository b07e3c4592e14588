"""AlterPartitionReassignments, key 45, v0: move partitions to other brokers (KIP-455). Flexible."""

from typing import ClassVar

from wire.schema import int16, int32, message, nullable_string, string


@message
class ReassignablePartitionResponse:
    partition_index: int32
    error_code: int16
    error_message: nullable_string = None


@message
class ReassignableTopicResponse:
    name: string
    partitions: tuple[ReassignablePartitionResponse, ...]


@message
class AlterPartitionReassignmentsResponse:
    """The outcome of each partition: begun, cancelled or refused."""

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: nullable_string = None
    responses: tuple[ReassignableTopicResponse, ...]


@message
class ReassignablePartition:
    partition_index: int32
    replicas: tuple[int32, ...] | None = None


@message
class ReassignableTopic:
    name: string
    partitions: tuple[ReassignablePartition, ...]


@message
class AlterPartitionReassignmentsRequest:
    """The brokers that shall hold each partition; null cancels a move that is under way."""

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[AlterPartitionReassignmentsResponse]] = (
        AlterPartitionReassignmentsResponse
    )

    timeout_ms: int32 = 60_000
    topics: tuple[ReassignableTopic, ...]
