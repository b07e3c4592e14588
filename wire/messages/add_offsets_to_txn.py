"""AddOffsetsToTxn, key 25, v0-4: make a group's positions part of a transaction.

v1: throttled responses are answered before the pause (KIP-219)
v2: PRODUCER_FENCED may be answered (KIP-588)
v3: flexible
v4: TRANSACTION_ABORTABLE may be answered (KIP-890)
"""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, string


@message
class AddOffsetsToTxnResponse:
    """Whether it was taken in."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    throttle_time_ms: int32 = 0
    error_code: int16


@message
class AddOffsetsToTxnRequest:
    """The group whose positions will be committed."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 3
    RESPONSE: ClassVar[type[AddOffsetsToTxnResponse]] = AddOffsetsToTxnResponse

    transactional_id: string
    producer_id: int64
    producer_epoch: int16
    group_id: string
