"""LeaderAndIsr, key 4, v0-7: the controller tells a broker which partitions it leads or follows.

v1: request is_new (KIP-101)
v2: request broker_epoch, topic_states; request without topic_name, ungrouped_partition_states;
    topics grouped; broker epochs (KIP-380)
v3: request adding_replicas, removing_replicas (KIP-455)
v4: flexible
v5: request topic_id, type; response topics; response without topic_name, partition_errors
    (KIP-516)
v6: request leader_recovery_state (KIP-704)
v7: request is_kraft_controller (KIP-866)
"""

from typing import ClassVar

from wire.primitives import ZERO_UUID
from wire.schema import boolean, int8, int16, int32, int64, message, since, string, until, uuid


@message
class LeaderAndIsrPartitionError:
    topic_name: string = until(4, default="", ignorable=True)
    partition_index: int32
    error_code: int16


@message
class LeaderAndIsrTopicError:
    topic_id: uuid
    partition_errors: tuple[LeaderAndIsrPartitionError, ...]


@message
class LeaderAndIsrResponse:
    """The outcome for each partition."""

    API_KEY: ClassVar[int] = 4
    VERSIONS: ClassVar[range] = range(8)
    FLEXIBLE_SINCE: ClassVar[int] = 4

    error_code: int16
    partition_errors: tuple[LeaderAndIsrPartitionError, ...] = until(4, default=())
    topics: tuple[LeaderAndIsrTopicError, ...] = since(5, default=())


@message
class LeaderAndIsrPartitionState:
    topic_name: string = until(1, default="", ignorable=True)
    partition_index: int32
    controller_epoch: int32
    leader: int32
    leader_epoch: int32
    isr: tuple[int32, ...]
    partition_epoch: int32
    replicas: tuple[int32, ...]
    adding_replicas: tuple[int32, ...] = since(3, default=(), ignorable=True)
    removing_replicas: tuple[int32, ...] = since(3, default=(), ignorable=True)
    is_new: boolean = since(1, default=False, ignorable=True)
    leader_recovery_state: int8 = since(6, default=0)


@message
class LeaderAndIsrTopicState:
    topic_name: string
    topic_id: uuid = since(5, default=ZERO_UUID, ignorable=True)
    partition_states: tuple[LeaderAndIsrPartitionState, ...]


@message
class LeaderAndIsrLiveLeader:
    broker_id: int32
    host_name: string
    port: int32


@message
class LeaderAndIsrRequest:
    """State of partitions that the broker holds."""

    API_KEY: ClassVar[int] = 4
    VERSIONS: ClassVar[range] = range(8)
    FLEXIBLE_SINCE: ClassVar[int] = 4
    RESPONSE: ClassVar[type[LeaderAndIsrResponse]] = LeaderAndIsrResponse

    controller_id: int32
    is_kraft_controller: boolean = since(7, default=False)
    controller_epoch: int32
    broker_epoch: int64 = since(2, default=-1, ignorable=True)
    type: int8 = since(5, default=0)
    ungrouped_partition_states: tuple[LeaderAndIsrPartitionState, ...] = until(1, default=())
    topic_states: tuple[LeaderAndIsrTopicState, ...] = since(2, default=())
    live_leaders: tuple[LeaderAndIsrLiveLeader, ...]
