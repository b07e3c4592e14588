"""AddPartitionsToTxn, key 24, v0-3: make partitions part of a transaction.

v1: throttled responses are answered before the pause (KIP-219)
v2: PRODUCER_FENCED may be answered (KIP-588)
v3: flexible
"""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, string


@message
class AddPartitionsToTxnPartitionResult:
    partition_index: int32
    partition_error_code: int16


@message
class AddPartitionsToTxnTopicResult:
    name: string
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...]


@message
class AddPartitionsToTxnResponse:
    """One error code for each partition."""

    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[range] = range(4)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    throttle_time_ms: int32 = 0
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...]


@message
class AddPartitionsToTxnTopic:
    name: string
    partitions: tuple[int32, ...]


@message
class AddPartitionsToTxnRequest:
    """One transaction's partitions. Later versions are spoken among brokers."""

    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[range] = range(4)
    FLEXIBLE_SINCE: ClassVar[int] = 3
    RESPONSE: ClassVar[type[AddPartitionsToTxnResponse]] = AddPartitionsToTxnResponse

    v3_and_below_transactional_id: string
    v3_and_below_producer_id: int64
    v3_and_below_producer_epoch: int16
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...]
