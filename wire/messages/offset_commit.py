"""OffsetCommit, key 8, v0-9: store positions of a group.

v1: request commit_timestamp, generation_id_or_member_epoch, member_id; stored in the group's
    partition, no longer in ZooKeeper
v2: request retention_time_ms; request without commit_timestamp
v3: response throttle_time_ms; throttled as others are
v4: throttled responses are answered before the pause (KIP-219)
v5: request without retention_time_ms; retention is the broker's business (KIP-211)
v6: request committed_leader_epoch (KIP-320)
v7: request group_instance_id (KIP-345)
v8: flexible
v9: errors of the new group protocol may be answered (KIP-848)
"""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, nullable_string, since, string


@message
class OffsetCommitResponsePartition:
    partition_index: int32
    error_code: int16


@message
class OffsetCommitResponseTopic:
    name: string
    partitions: tuple[OffsetCommitResponsePartition, ...]


@message
class OffsetCommitResponse:
    """One error code for each partition."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[range] = range(10)
    FLEXIBLE_SINCE: ClassVar[int] = 8

    throttle_time_ms: int32 = since(3, default=0, ignorable=True)
    topics: tuple[OffsetCommitResponseTopic, ...]


@message
class OffsetCommitRequestPartition:
    partition_index: int32
    committed_offset: int64
    committed_leader_epoch: int32 = since(6, default=-1, ignorable=True)
    commit_timestamp: int64 = since(1, until=1, default=-1)
    committed_metadata: nullable_string = None


@message
class OffsetCommitRequestTopic:
    name: string
    partitions: tuple[OffsetCommitRequestPartition, ...]


@message
class OffsetCommitRequest:
    """Positions; generation -1 with an empty member is a commit from outside the group."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[range] = range(10)
    FLEXIBLE_SINCE: ClassVar[int] = 8
    RESPONSE: ClassVar[type[OffsetCommitResponse]] = OffsetCommitResponse

    group_id: string
    generation_id_or_member_epoch: int32 = since(1, default=-1, ignorable=True)
    member_id: string = since(1, default="", ignorable=True)
    group_instance_id: nullable_string = since(7, default=None)
    retention_time_ms: int64 = since(2, until=4, default=-1, ignorable=True)
    topics: tuple[OffsetCommitRequestTopic, ...]
