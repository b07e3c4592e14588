"""DescribeProducers, key 61, v0: what a partition's leader knows of its producers (KIP-664)."""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, nullable_string, string


@message
class DescribeProducersProducerState:
    """`current_txn_start_offset` is -1 without an open transaction."""

    producer_id: int64
    producer_epoch: int32
    last_sequence: int32 = -1
    last_timestamp: int64 = -1
    coordinator_epoch: int32
    current_txn_start_offset: int64 = -1


@message
class DescribeProducersPartitionResponse:
    partition_index: int32
    error_code: int16
    error_message: nullable_string = None
    active_producers: tuple[DescribeProducersProducerState, ...]


@message
class DescribeProducersTopicResponse:
    name: string
    partitions: tuple[DescribeProducersPartitionResponse, ...]


@message
class DescribeProducersResponse:
    """The producers of each partition."""

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    topics: tuple[DescribeProducersTopicResponse, ...]


@message
class DescribeProducersTopicRequest:
    name: string
    partition_indexes: tuple[int32, ...]


@message
class DescribeProducersRequest:
    """Partitions that the asked broker leads."""

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[DescribeProducersResponse]] = DescribeProducersResponse

    topics: tuple[DescribeProducersTopicRequest, ...]
