"""OffsetFetch, key 9, v0-9: positions a group has stored.

v1: stored in the group's partition, no longer in ZooKeeper
v2: response error_code; null for all partitions (KIP-88)
v3: response throttle_time_ms
v4: throttled responses are answered before the pause (KIP-219)
v5: response committed_leader_epoch (KIP-320)
v6: flexible
v7: request require_stable (KIP-447)
v8: request groups; request without group_id, topics; response groups; response without topics,
    error_code; several groups at once (KIP-709)
v9: request member_id, member_epoch (KIP-848)
"""

from typing import ClassVar

from wire.schema import boolean, int16, int32, int64, message, nullable_string, since, string, until


@message
class OffsetFetchResponsePartition:
    partition_index: int32
    committed_offset: int64
    committed_leader_epoch: int32 = since(5, default=-1, ignorable=True)
    metadata: nullable_string = None
    error_code: int16


@message
class OffsetFetchResponseTopic:
    name: string
    partitions: tuple[OffsetFetchResponsePartition, ...]


@message
class OffsetFetchResponsePartitions:
    partition_index: int32
    committed_offset: int64
    committed_leader_epoch: int32 = -1
    metadata: nullable_string = None
    error_code: int16


@message
class OffsetFetchResponseTopics:
    name: string
    partitions: tuple[OffsetFetchResponsePartitions, ...]


@message
class OffsetFetchResponseGroup:
    group_id: string
    topics: tuple[OffsetFetchResponseTopics, ...]
    error_code: int16 = 0


@message
class OffsetFetchResponse:
    """Positions; -1 where nothing is stored."""

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[range] = range(10)
    FLEXIBLE_SINCE: ClassVar[int] = 6

    throttle_time_ms: int32 = since(3, default=0, ignorable=True)
    topics: tuple[OffsetFetchResponseTopic, ...] = until(7, default=())
    error_code: int16 = since(2, until=7, default=0, ignorable=True)
    groups: tuple[OffsetFetchResponseGroup, ...] = since(8, default=())


@message
class OffsetFetchRequestTopic:
    name: string
    partition_indexes: tuple[int32, ...]


@message
class OffsetFetchRequestTopics:
    name: string
    partition_indexes: tuple[int32, ...]


@message
class OffsetFetchRequestGroup:
    group_id: string
    member_id: nullable_string = since(9, default=None, ignorable=True)
    member_epoch: int32 = since(9, default=-1, ignorable=True)
    topics: tuple[OffsetFetchRequestTopics, ...] | None


@message
class OffsetFetchRequest:
    """Partitions of one group, from v8 on of several; null for all of them."""

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[range] = range(10)
    FLEXIBLE_SINCE: ClassVar[int] = 6
    RESPONSE: ClassVar[type[OffsetFetchResponse]] = OffsetFetchResponse

    group_id: string = until(7, default="")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = until(7, default=(), nullable_since=2)
    groups: tuple[OffsetFetchRequestGroup, ...] = since(8, default=())
    require_stable: boolean = since(7, default=False)
