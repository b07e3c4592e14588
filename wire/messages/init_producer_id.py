"""InitProducerId, key 22, v0-5: allocate a producer id, or fence a transactional one.

v1: throttled responses are answered before the pause (KIP-219)
v2: flexible
v3: request producer_id, producer_epoch (KIP-360)
v4: PRODUCER_FENCED may be answered (KIP-588)
v5: TRANSACTION_ABORTABLE may be answered (KIP-890)
"""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, nullable_string, since


@message
class InitProducerIdResponse:
    """The id and epoch to produce with."""

    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    error_code: int16
    producer_id: int64 = -1
    producer_epoch: int16


@message
class InitProducerIdRequest:
    """Transactional id, or null for an idempotent producer."""

    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[InitProducerIdResponse]] = InitProducerIdResponse

    transactional_id: nullable_string = None
    transaction_timeout_ms: int32
    producer_id: int64 = since(3, default=-1)
    producer_epoch: int16 = since(3, default=-1)
