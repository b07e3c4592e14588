"""AddPartitionsToTxn, key 24, v0-5: make partitions part of a transaction.

v1: throttled responses are answered before the pause (KIP-219)
v2: PRODUCER_FENCED may be answered (KIP-588)
v3: flexible
v4: request transactions; request without v3_and_below_transactional_id,
    v3_and_below_producer_id, v3_and_below_producer_epoch, v3_and_below_topics; response error_code,
    results_by_transaction; response without results_by_topic_v3_and_below; brokers ask for several
    transactions at once, also whether partitions are part of them (KIP-890)
v5: TRANSACTION_ABORTABLE may be answered (KIP-890)
"""

from typing import ClassVar

from wire.schema import boolean, int16, int32, int64, message, since, string, until


@message
class AddPartitionsToTxnPartitionResult:
    partition_index: int32
    partition_error_code: int16


@message
class AddPartitionsToTxnTopicResult:
    name: string
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...]


@message
class AddPartitionsToTxnResult:
    transactional_id: string
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...]


@message
class AddPartitionsToTxnResponse:
    """One error code for each partition."""

    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    throttle_time_ms: int32 = 0
    error_code: int16 = since(4, default=0, ignorable=True)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = since(4, default=())
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = until(3, default=())


@message
class AddPartitionsToTxnTopic:
    name: string
    partitions: tuple[int32, ...]


@message
class AddPartitionsToTxnTransaction:
    """With `verify_only` nothing is added: it is asked whether the partitions are part of it."""

    transactional_id: string
    producer_id: int64
    producer_epoch: int16
    verify_only: boolean = False
    topics: tuple[AddPartitionsToTxnTopic, ...]


@message
class AddPartitionsToTxnRequest:
    """A client's transaction up to v3; from v4 on transactions that a broker asks about."""

    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 3
    RESPONSE: ClassVar[type[AddPartitionsToTxnResponse]] = AddPartitionsToTxnResponse

    transactions: tuple[AddPartitionsToTxnTransaction, ...] = since(4, default=())
    v3_and_below_transactional_id: string = until(3, default="")
    v3_and_below_producer_id: int64 = until(3, default=0)
    v3_and_below_producer_epoch: int16 = until(3, default=0)
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = until(3, default=())
