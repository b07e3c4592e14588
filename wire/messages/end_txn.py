"""EndTxn, key 26, v0-5: commit or abort a transaction.

v1: throttled responses are answered before the pause (KIP-219)
v2: PRODUCER_FENCED may be answered (KIP-588)
v3: flexible
v4: TRANSACTION_ABORTABLE may be answered (KIP-890)
v5: response producer_id, producer_epoch; each end gives the producer its next epoch (KIP-890)
"""

from typing import ClassVar

from wire.schema import boolean, int16, int32, int64, message, since, string


@message
class EndTxnResponse:
    """Whether it is durable, and who the producer is from now on; markers follow."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    throttle_time_ms: int32 = 0
    error_code: int16
    producer_id: int64 = since(5, default=-1, ignorable=True)
    producer_epoch: int16 = since(5, default=-1, ignorable=True)


@message
class EndTxnRequest:
    """The decision."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 3
    RESPONSE: ClassVar[type[EndTxnResponse]] = EndTxnResponse

    transactional_id: string
    producer_id: int64
    producer_epoch: int16
    committed: boolean
