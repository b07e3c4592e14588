"""StopReplica, key 5, v0-4: the controller tells a broker to stop replicas, and maybe delete them.

v1: request broker_epoch, topics; request without ungrouped_partitions; topics grouped; broker
    epochs (KIP-380)
v2: flexible
v3: request topic_states; request without delete_partitions, topics (KIP-570)
v4: request is_kraft_controller (KIP-866)
"""

from typing import ClassVar

from wire.schema import boolean, int16, int32, int64, message, since, string, until


@message
class StopReplicaPartitionError:
    topic_name: string
    partition_index: int32
    error_code: int16


@message
class StopReplicaResponse:
    """The outcome for each partition."""

    API_KEY: ClassVar[int] = 5
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    error_code: int16
    partition_errors: tuple[StopReplicaPartitionError, ...]


@message
class StopReplicaPartitionV0:
    topic_name: string
    partition_index: int32


@message
class StopReplicaTopicV1:
    name: string
    partition_indexes: tuple[int32, ...]


@message
class StopReplicaPartitionState:
    partition_index: int32
    leader_epoch: int32 = -1
    delete_partition: boolean


@message
class StopReplicaTopicState:
    topic_name: string
    partition_states: tuple[StopReplicaPartitionState, ...]


@message
class StopReplicaRequest:
    """Replicas to stop; `topic_states` from v3 on."""

    API_KEY: ClassVar[int] = 5
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[StopReplicaResponse]] = StopReplicaResponse

    controller_id: int32
    is_kraft_controller: boolean = since(4, default=False)
    controller_epoch: int32
    broker_epoch: int64 = since(1, default=-1, ignorable=True)
    delete_partitions: boolean = until(2, default=False)
    ungrouped_partitions: tuple[StopReplicaPartitionV0, ...] = until(0, default=())
    topics: tuple[StopReplicaTopicV1, ...] = since(1, until=2, default=())
    topic_states: tuple[StopReplicaTopicState, ...] = since(3, default=())
