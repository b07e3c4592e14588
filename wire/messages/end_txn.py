"""EndTxn, key 26, v0-4: commit or abort a transaction.

v1: throttled responses are answered before the pause (KIP-219)
v2: PRODUCER_FENCED may be answered (KIP-588)
v3: flexible
v4: TRANSACTION_ABORTABLE may be answered (KIP-890)
"""

from typing import ClassVar

from wire.schema import boolean, int16, int32, int64, message, string


@message
class EndTxnResponse:
    """Whether it is durable; markers are written afterwards."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    throttle_time_ms: int32 = 0
    error_code: int16


@message
class EndTxnRequest:
    """The decision."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 3
    RESPONSE: ClassVar[type[EndTxnResponse]] = EndTxnResponse

    transactional_id: string
    producer_id: int64
    producer_epoch: int16
    committed: boolean
