"""Fetch, key 1, v0-17: read record batches, for consumers and for followers.

v1: response throttle_time_ms
v2: records with timestamps (magic 1)
v3: request max_bytes; partitions are served in the order asked for (KIP-74)
v4: request isolation_level; response last_stable_offset, aborted_transactions (KIP-98)
v5: request log_start_offset; response log_start_offset (KIP-107)
v6: KAFKA_STORAGE_ERROR may be answered
v7: request session_id, session_epoch, forgotten_topics_data; response error_code, session_id;
    fetch sessions (KIP-227)
v8: throttled responses are answered before the pause (KIP-219)
v9: request current_leader_epoch (KIP-320)
v10: zstd allowed (KIP-110)
v11: request rack_id; response preferred_read_replica (KIP-392)
v12: request last_fetched_epoch, cluster_id; response diverging_epoch, current_leader,
    snapshot_id; flexible; truncation by epoch (KIP-595)
v13: request topic_id; request without topic; response topic_id; response without topic; topics by
    id (KIP-516)
v14: OFFSET_MOVED_TO_TIERED_STORAGE may be answered (KIP-405)
v15: request replica_state; request without replica_id (KIP-903)
v16: response node_endpoints (KIP-951)
v17: request replica_directory_id (KIP-853)
"""

from typing import ClassVar

from wire.primitives import ZERO_UUID
from wire.schema import (
    int8,
    int16,
    int32,
    int64,
    message,
    nullable_string,
    records_,
    since,
    string,
    tagged,
    until,
    uuid,
)


@message
class FetchEpochEndOffset:
    epoch: int32 = -1
    end_offset: int64 = -1


@message
class FetchLeaderIdAndEpoch:
    leader_id: int32 = -1
    leader_epoch: int32 = -1


@message
class SnapshotId:
    end_offset: int64 = -1
    epoch: int32 = -1


@message
class AbortedTransaction:
    producer_id: int64
    first_offset: int64


@message
class FetchPartitionData:
    partition_index: int32
    error_code: int16
    high_watermark: int64
    last_stable_offset: int64 = since(4, default=-1, ignorable=True)
    log_start_offset: int64 = since(5, default=-1, ignorable=True)
    diverging_epoch: FetchEpochEndOffset = tagged(0, since=12, default=FetchEpochEndOffset())
    current_leader: FetchLeaderIdAndEpoch = tagged(1, since=12, default=FetchLeaderIdAndEpoch())
    snapshot_id: SnapshotId = tagged(2, since=12, default=SnapshotId())
    aborted_transactions: tuple[AbortedTransaction, ...] | None = since(
        4, default=(), ignorable=True
    )
    preferred_read_replica: int32 = since(11, default=-1)
    records: records_


@message
class FetchableTopicResponse:
    topic: string = until(12, default="", ignorable=True)
    topic_id: uuid = since(13, default=ZERO_UUID, ignorable=True)
    partitions: tuple[FetchPartitionData, ...]


@message
class FetchNodeEndpoint:
    node_id: int32
    host: string
    port: int32
    rack: nullable_string = None


@message
class FetchResponse:
    """Batches, which may begin before the position asked for and be cut off at the end."""

    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[range] = range(18)
    FLEXIBLE_SINCE: ClassVar[int] = 12

    throttle_time_ms: int32 = since(1, default=0, ignorable=True)
    error_code: int16 = since(7, default=0, ignorable=True)
    session_id: int32 = since(7, default=0)
    responses: tuple[FetchableTopicResponse, ...]
    node_endpoints: tuple[FetchNodeEndpoint, ...] = tagged(0, since=16, default=())


@message
class ReplicaState:
    replica_id: int32 = -1
    replica_epoch: int64 = -1


@message
class FetchPartition:
    partition: int32
    current_leader_epoch: int32 = since(9, default=-1, ignorable=True)
    fetch_offset: int64
    last_fetched_epoch: int32 = since(12, default=-1)
    log_start_offset: int64 = since(5, default=-1, ignorable=True)
    partition_max_bytes: int32
    replica_directory_id: uuid = tagged(0, since=17, default=ZERO_UUID, ignorable=True)


@message
class FetchTopic:
    topic: string = until(12, default="", ignorable=True)
    topic_id: uuid = since(13, default=ZERO_UUID, ignorable=True)
    partitions: tuple[FetchPartition, ...]


@message
class ForgottenTopic:
    topic: string = until(12, default="", ignorable=True)
    topic_id: uuid = since(13, default=ZERO_UUID, ignorable=True)
    partitions: tuple[int32, ...]


@message
class FetchRequest:
    """Positions to read from; a follower names itself, a consumer does not."""

    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[range] = range(18)
    FLEXIBLE_SINCE: ClassVar[int] = 12
    RESPONSE: ClassVar[type[FetchResponse]] = FetchResponse

    cluster_id: nullable_string = tagged(0, since=12, default=None, ignorable=True)
    replica_id: int32 = until(14, default=-1)
    replica_state: ReplicaState = tagged(1, since=15, default=ReplicaState())
    max_wait_ms: int32
    min_bytes: int32
    max_bytes: int32 = since(3, default=2**31 - 1, ignorable=True)
    isolation_level: int8 = since(4, default=0, ignorable=True)
    session_id: int32 = since(7, default=0, ignorable=True)
    session_epoch: int32 = since(7, default=-1, ignorable=True)
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...] = since(7, default=())
    rack_id: string = since(11, default="", ignorable=True)


def replica_of(request: FetchRequest) -> int:
    """Return the follower's broker id, negative for a consumer (v15 moved it)."""
    return max(request.replica_id, request.replica_state.replica_id)
