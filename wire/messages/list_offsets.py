"""ListOffsets, key 2, v0-9: the offset at a time, or the first or last one.

v1: request without max_num_offsets; response timestamp, offset; response without
    old_style_offsets (KIP-79)
v2: request isolation_level; response throttle_time_ms (KIP-98)
v3: throttled responses are answered before the pause (KIP-219)
v4: request current_leader_epoch; response leader_epoch (KIP-320)
v5: OFFSET_NOT_AVAILABLE may be answered (KIP-207)
v6: flexible
v7: time -3 asks for the largest timestamp (KIP-734)
v8: time -4 asks for the local log start (KIP-405)
v9: time -5 asks for the last tiered offset (KIP-1005)
"""

from typing import ClassVar

from wire.schema import int8, int16, int32, int64, message, since, string, until


@message
class ListOffsetsPartitionResponse:
    partition_index: int32
    error_code: int16
    old_style_offsets: tuple[int64, ...] = until(0, default=())
    timestamp: int64 = since(1, default=-1)
    offset: int64 = since(1, default=-1)
    leader_epoch: int32 = since(4, default=-1)


@message
class ListOffsetsTopicResponse:
    name: string
    partitions: tuple[ListOffsetsPartitionResponse, ...]


@message
class ListOffsetsResponse:
    """One offset for each partition."""

    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[range] = range(10)
    FLEXIBLE_SINCE: ClassVar[int] = 6

    throttle_time_ms: int32 = since(2, default=0, ignorable=True)
    topics: tuple[ListOffsetsTopicResponse, ...]


@message
class ListOffsetsPartition:
    partition_index: int32
    current_leader_epoch: int32 = since(4, default=-1, ignorable=True)
    timestamp: int64
    max_num_offsets: int32 = until(0, default=1)


@message
class ListOffsetsTopic:
    name: string
    partitions: tuple[ListOffsetsPartition, ...]


@message
class ListOffsetsRequest:
    """Times in milliseconds, or -1 for the end and -2 for the start of a log."""

    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[range] = range(10)
    FLEXIBLE_SINCE: ClassVar[int] = 6
    RESPONSE: ClassVar[type[ListOffsetsResponse]] = ListOffsetsResponse

    replica_id: int32
    isolation_level: int8 = since(2, default=0)
    topics: tuple[ListOffsetsTopic, ...]
