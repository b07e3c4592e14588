"""ListTransactions, key 66, v0-1: the transactional ids that a broker coordinates (KIP-664).

v1: request duration_filter (KIP-994)
"""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, since, string


@message
class ListTransactionsState:
    transactional_id: string
    producer_id: int64
    transaction_state: string


@message
class ListTransactionsResponse:
    """Those that all filters admit."""

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    error_code: int16
    unknown_state_filters: tuple[string, ...] = ()
    transaction_states: tuple[ListTransactionsState, ...] = ()


@message
class ListTransactionsRequest:
    """Filters; one that is empty, or below 0, admits all."""

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[ListTransactionsResponse]] = ListTransactionsResponse

    state_filters: tuple[string, ...] = ()
    producer_id_filters: tuple[int64, ...] = ()
    duration_filter: int64 = since(1, default=-1)
