"""OffsetForLeaderEpoch, key 23, v0-4: where an epoch of a leader ended.

v1: response leader_epoch (KIP-279)
v2: request current_leader_epoch; response throttle_time_ms (KIP-320)
v3: request replica_id (KIP-320)
v4: flexible
"""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, since, string


@message
class OffsetForLeaderEpochEpochEndOffset:
    error_code: int16
    partition: int32
    leader_epoch: int32 = since(1, default=-1, ignorable=True)
    end_offset: int64 = -1


@message
class OffsetForLeaderTopicResult:
    topic: string
    partitions: tuple[OffsetForLeaderEpochEpochEndOffset, ...]


@message
class OffsetForLeaderEpochResponse:
    """End offset of the largest epoch not above the one asked for."""

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 4

    throttle_time_ms: int32 = since(2, default=0, ignorable=True)
    topics: tuple[OffsetForLeaderTopicResult, ...]


@message
class OffsetForLeaderPartition:
    partition: int32
    current_leader_epoch: int32 = since(2, default=-1, ignorable=True)
    leader_epoch: int32


@message
class OffsetForLeaderTopic:
    topic: string
    partitions: tuple[OffsetForLeaderPartition, ...]


@message
class OffsetForLeaderEpochRequest:
    """Epochs, of followers or consumers that check for divergence."""

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 4
    RESPONSE: ClassVar[type[OffsetForLeaderEpochResponse]] = OffsetForLeaderEpochResponse

    replica_id: int32 = since(3, default=-2, ignorable=True)
    topics: tuple[OffsetForLeaderTopic, ...]
