"""ControlledShutdown, key 7, v1-3: a broker asks the controller to move its leaderships away.

v2: request broker_epoch (KIP-380)
v3: flexible
"""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, since, string


@message
class RemainingPartition:
    topic_name: string
    partition_index: int32


@message
class ControlledShutdownResponse:
    """The partitions that the broker still leads."""

    API_KEY: ClassVar[int] = 7
    VERSIONS: ClassVar[range] = range(1, 4)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    error_code: int16
    remaining_partitions: tuple[RemainingPartition, ...]


@message
class ControlledShutdownRequest:
    """The broker that wants to leave."""

    API_KEY: ClassVar[int] = 7
    VERSIONS: ClassVar[range] = range(1, 4)
    FLEXIBLE_SINCE: ClassVar[int] = 3
    RESPONSE: ClassVar[type[ControlledShutdownResponse]] = ControlledShutdownResponse

    broker_id: int32
    broker_epoch: int64 = since(2, default=-1, ignorable=True)
