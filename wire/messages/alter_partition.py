"""AlterPartition, key 56, v2-3: a leader asks the controller to change its partition's ISR.

v2: topics by id (KIP-841); before it a topic travels by name, which only brokers older than
    Kafka 3.3 do
v3: request new_isr_with_epochs; request without new_isr (KIP-903)
All versions are flexible.
"""

from typing import ClassVar

from wire.schema import int8, int16, int32, int64, message, since, until, uuid


@message
class AlterPartitionPartitionResult:
    partition_index: int32
    error_code: int16
    leader_id: int32 = -1
    leader_epoch: int32 = -1
    isr: tuple[int32, ...] = ()
    leader_recovery_state: int8 = 0
    partition_epoch: int32 = -1


@message
class AlterPartitionTopicResult:
    topic_id: uuid
    partitions: tuple[AlterPartitionPartitionResult, ...]


@message
class AlterPartitionResponse:
    """The state of each partition as it is now, or why it did not change."""

    API_KEY: ClassVar[int] = 56
    VERSIONS: ClassVar[range] = range(2, 4)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    error_code: int16
    topics: tuple[AlterPartitionTopicResult, ...] = ()


@message
class AlterPartitionBrokerState:
    broker_id: int32
    broker_epoch: int64 = -1


@message
class AlterPartitionPartition:
    partition_index: int32
    leader_epoch: int32
    new_isr: tuple[int32, ...] = until(2, default=())
    new_isr_with_epochs: tuple[AlterPartitionBrokerState, ...] = since(3, default=())
    leader_recovery_state: int8 = 0
    partition_epoch: int32


@message
class AlterPartitionTopic:
    topic_id: uuid
    partitions: tuple[AlterPartitionPartition, ...]


@message
class AlterPartitionRequest:
    """The in-sync replicas that a leader wants, each checked against what it knew."""

    API_KEY: ClassVar[int] = 56
    VERSIONS: ClassVar[range] = range(2, 4)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[AlterPartitionResponse]] = AlterPartitionResponse

    broker_id: int32
    broker_epoch: int64 = -1
    topics: tuple[AlterPartitionTopic, ...]
