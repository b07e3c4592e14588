"""DescribeTransactions, key 65, v0: transactions as their coordinator knows them (KIP-664)."""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, string


@message
class DescribeTransactionsTopicData:
    topic: string
    partitions: tuple[int32, ...]


@message
class DescribeTransactionsState:
    """The partitions are those that still lack the transaction's end."""

    error_code: int16
    transactional_id: string
    transaction_state: string
    transaction_timeout_ms: int32
    transaction_start_time_ms: int64
    producer_id: int64
    producer_epoch: int16
    topics: tuple[DescribeTransactionsTopicData, ...]


@message
class DescribeTransactionsResponse:
    """The state of each transactional id."""

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    transaction_states: tuple[DescribeTransactionsState, ...]


@message
class DescribeTransactionsRequest:
    """Transactional ids that the asked broker coordinates."""

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[DescribeTransactionsResponse]] = DescribeTransactionsResponse

    transactional_ids: tuple[string, ...]
