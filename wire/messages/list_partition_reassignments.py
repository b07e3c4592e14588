"""ListPartitionReassignments, key 46, v0: which moves are under way (KIP-455). Flexible."""

from dataclasses import dataclass
from typing import ClassVar

from wire.schema import int16, int32, nullable_string, string


@dataclass(frozen=True, slots=True, kw_only=True)
class OngoingPartitionReassignment:
    partition_index: int32
    replicas: tuple[int32, ...]
    adding_replicas: tuple[int32, ...]
    removing_replicas: tuple[int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OngoingTopicReassignment:
    name: string
    partitions: tuple[OngoingPartitionReassignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsResponse:
    """Each partition that is on the move."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: nullable_string = None
    topics: tuple[OngoingTopicReassignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsTopics:
    name: string
    partition_indexes: tuple[int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
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
