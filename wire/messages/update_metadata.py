"""UpdateMetadata, key 6, v0-8: the controller tells every broker what the cluster looks like.

v1: request endpoints; request without v0_host, v0_port; brokers may have several endpoints
    (KIP-2)
v2: request rack
v3: request listener
v4: request offline_replicas (KIP-112)
v5: request broker_epoch, topic_states; request without topic_name, ungrouped_partition_states;
    topics grouped; broker epochs (KIP-380)
v6: flexible
v7: request topic_id (KIP-516)
v8: request is_kraft_controller, type (KIP-866)
"""

from typing import ClassVar

from wire.primitives import ZERO_UUID
from wire.schema import (
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    nullable_string,
    since,
    string,
    tagged,
    until,
    uuid,
)


@message
class UpdateMetadataResponse:
    """Whether it was taken in."""

    API_KEY: ClassVar[int] = 6
    VERSIONS: ClassVar[range] = range(9)
    FLEXIBLE_SINCE: ClassVar[int] = 6

    error_code: int16


@message
class UpdateMetadataPartitionState:
    topic_name: string = until(4, default="", ignorable=True)
    partition_index: int32
    controller_epoch: int32
    leader: int32
    leader_epoch: int32
    isr: tuple[int32, ...]
    zk_version: int32
    replicas: tuple[int32, ...]
    offline_replicas: tuple[int32, ...] = since(4, default=(), ignorable=True)


@message
class UpdateMetadataTopicState:
    topic_name: string
    topic_id: uuid = since(7, default=ZERO_UUID, ignorable=True)
    partition_states: tuple[UpdateMetadataPartitionState, ...]


@message
class UpdateMetadataEndpoint:
    port: int32
    host: string
    listener: string = since(3, default="", ignorable=True)
    security_protocol: int16


@message
class UpdateMetadataBroker:
    id: int32
    v0_host: string = until(0, default="", ignorable=True)
    v0_port: int32 = until(0, default=0, ignorable=True)
    endpoints: tuple[UpdateMetadataEndpoint, ...] = since(1, default=(), ignorable=True)
    rack: nullable_string = since(2, default=None, ignorable=True)


@message
class UpdateMetadataRequest:
    """Changed partitions and all brokers that are alive."""

    API_KEY: ClassVar[int] = 6
    VERSIONS: ClassVar[range] = range(9)
    FLEXIBLE_SINCE: ClassVar[int] = 6
    RESPONSE: ClassVar[type[UpdateMetadataResponse]] = UpdateMetadataResponse

    controller_id: int32
    is_kraft_controller: boolean = since(8, default=False)
    type: int8 = tagged(0, since=8, default=0)
    controller_epoch: int32
    broker_epoch: int64 = since(5, default=-1, ignorable=True)
    ungrouped_partition_states: tuple[UpdateMetadataPartitionState, ...] = until(4, default=())
    topic_states: tuple[UpdateMetadataTopicState, ...] = since(5, default=())
    live_brokers: tuple[UpdateMetadataBroker, ...]
