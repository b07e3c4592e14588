"""ListPartitionReassignments, key 46, v0: which moves are under way (KIP-455). Flexible."""

from typing import ClassVar

from wire.schema import int16, int32, message, nullable_string, string


@message
class OngoingPartitionReassignment:
    partition_index: int32
    replicas: tuple[int32, ...]
    adding_replicas: tuple[int32, ...]
    removing_replicas: tuple[int32, ...]


@message
class OngoingTopicReassignment:
    name: string
    partitions: tuple[OngoingPartitionReassignment, ...]


@message
class ListPartitionReassignmentsResponse:
    """Each partition that is on the move."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: nullable_string = None
    topics: tuple[OngoingTopicReassignment, ...]


@message
class ListPartitionReassignmentsTopics:
    name: string
    partition_indexes: tuple[int32, ...]


@message
class ListPartitionReassignmentsRequest:
    """The partitions asked about; null for all."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[ListPartitionReassignmentsResponse]] = (
        ListPartitionReassignmentsResponse
    )

    timeout_ms: int32 = 60_000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None
