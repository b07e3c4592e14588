"""ElectLeaders, key 43, v0-2: give partitions their preferred leader, or any leader at all.

v1: request election_type; response error_code (KIP-460)
v2: flexible
"""

from typing import ClassVar

from wire.schema import int8, int16, int32, message, nullable_string, since, string


@message
class ElectLeadersPartitionResult:
    partition_id: int32
    error_code: int16
    error_message: nullable_string = None


@message
class ReplicaElectionResult:
    topic: string
    partition_result: tuple[ElectLeadersPartitionResult, ...]


@message
class ElectLeadersResponse:
    """The outcome for each partition; when all were asked for, of those that needed one."""

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    error_code: int16 = since(1, default=0, ignorable=True)
    replica_election_results: tuple[ReplicaElectionResult, ...]


@message
class ElectLeadersTopicPartitions:
    topic: string
    partitions: tuple[int32, ...]


@message
class ElectLeadersRequest:
    """The partitions; null for all. `election_type` 0 is preferred, 1 unclean."""

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[ElectLeadersResponse]] = ElectLeadersResponse

    election_type: int8 = since(1, default=0)
    topic_partitions: tuple[ElectLeadersTopicPartitions, ...] | None
    timeout_ms: int32 = 60_000
