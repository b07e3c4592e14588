"""DescribeTopicPartitions, key 75, v0: topics by pages, with eligible leader replicas (KIP-966)."""

from typing import ClassVar

from wire.primitives import ZERO_UUID
from wire.schema import boolean, int16, int32, message, nullable_string, string, uuid


@message
class Cursor:
    """Where the next page begins."""

    topic_name: string
    partition_index: int32


@message
class DescribeTopicPartitionsResponsePartition:
    """Eligible leader replicas are null or empty on brokers that keep none."""

    error_code: int16
    partition_index: int32
    leader_id: int32
    leader_epoch: int32 = -1
    replica_nodes: tuple[int32, ...]
    isr_nodes: tuple[int32, ...]
    eligible_leader_replicas: tuple[int32, ...] | None = None
    last_known_elr: tuple[int32, ...] | None = None
    offline_replicas: tuple[int32, ...]


@message
class DescribeTopicPartitionsResponseTopic:
    error_code: int16
    name: nullable_string
    topic_id: uuid = ZERO_UUID
    is_internal: boolean = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...]
    topic_authorized_operations: int32 = -(2**31)


@message
class DescribeTopicPartitionsResponse:
    """A page of topics; the cursor is null behind the last one."""

    API_KEY: ClassVar[int] = 75
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...]
    next_cursor: Cursor | None = None


@message
class TopicRequest:
    name: string


@message
class DescribeTopicPartitionsRequest:
    """Topics by name, all of them where none is named."""

    API_KEY: ClassVar[int] = 75
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[DescribeTopicPartitionsResponse]] = DescribeTopicPartitionsResponse

    topics: tuple[TopicRequest, ...]
    response_partition_limit: int32 = 2000
    cursor: Cursor | None = None
