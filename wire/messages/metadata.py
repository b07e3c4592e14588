"""Metadata, key 3, v0-13: brokers, topics, partitions and their leaders.

v1: response rack, is_internal, controller_id
v2: response cluster_id
v3: response throttle_time_ms
v4: request allow_auto_topic_creation
v5: response offline_replicas (KIP-112)
v6: throttled responses are answered before the pause (KIP-219)
v7: response leader_epoch (KIP-320)
v8: request include_cluster_authorized_operations, include_topic_authorized_operations; response
    topic_authorized_operations, cluster_authorized_operations (KIP-430)
v9: flexible
v10: request topic_id; response topic_id (KIP-516)
v11: request without include_cluster_authorized_operations; response without
    cluster_authorized_operations (KIP-700)
v12: topics may be asked for by id (KIP-516)
v13: response error_code (KIP-1102)
"""

from typing import ClassVar

from wire.primitives import ZERO_UUID
from wire.schema import (
    boolean,
    int16,
    int32,
    message,
    nullable_since,
    nullable_string,
    since,
    string,
    uuid,
)


@message
class MetadataResponseBroker:
    node_id: int32
    host: string
    port: int32
    rack: nullable_string = since(1, default=None, ignorable=True)


@message
class MetadataResponsePartition:
    error_code: int16
    partition_index: int32
    leader_id: int32
    leader_epoch: int32 = since(7, default=-1, ignorable=True)
    replica_nodes: tuple[int32, ...]
    isr_nodes: tuple[int32, ...]
    offline_replicas: tuple[int32, ...] = since(5, default=(), ignorable=True)


@message
class MetadataResponseTopic:
    error_code: int16
    name: nullable_string = nullable_since(12, default="")
    topic_id: uuid = since(10, default=ZERO_UUID, ignorable=True)
    is_internal: boolean = since(1, default=False, ignorable=True)
    partitions: tuple[MetadataResponsePartition, ...]
    topic_authorized_operations: int32 = since(8, default=-(2**31))


@message
class MetadataResponse:
    """The cluster as one broker sees it."""

    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[range] = range(14)
    FLEXIBLE_SINCE: ClassVar[int] = 9

    throttle_time_ms: int32 = since(3, default=0, ignorable=True)
    brokers: tuple[MetadataResponseBroker, ...]
    cluster_id: nullable_string = since(2, default=None, ignorable=True)
    controller_id: int32 = since(1, default=-1, ignorable=True)
    topics: tuple[MetadataResponseTopic, ...]
    cluster_authorized_operations: int32 = since(8, until=10, default=-(2**31))
    error_code: int16 = since(13, default=0, ignorable=True)


@message
class MetadataRequestTopic:
    topic_id: uuid = since(10, default=ZERO_UUID, ignorable=True)
    name: nullable_string = nullable_since(10, default="")


@message
class MetadataRequest:
    """Ask for some topics or, with null (an empty list in v0), for all."""

    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[range] = range(14)
    FLEXIBLE_SINCE: ClassVar[int] = 9
    RESPONSE: ClassVar[type[MetadataResponse]] = MetadataResponse

    topics: tuple[MetadataRequestTopic, ...] | None = nullable_since(1, default=())
    allow_auto_topic_creation: boolean = since(4, default=True)
    include_cluster_authorized_operations: boolean = since(8, until=10, default=False)
    include_topic_authorized_operations: boolean = since(8, default=False)
