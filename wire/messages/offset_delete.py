"""OffsetDelete, key 47, v0-0: forget positions of a group for topics it is not subscribed to."""

from typing import ClassVar

from wire.schema import NEVER_FLEXIBLE, int16, int32, message, string


@message
class OffsetDeleteResponsePartition:
    partition_index: int32
    error_code: int16


@message
class OffsetDeleteResponseTopic:
    name: string
    partitions: tuple[OffsetDeleteResponsePartition, ...]


@message
class OffsetDeleteResponse:
    """The outcome for each partition."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = NEVER_FLEXIBLE

    error_code: int16
    throttle_time_ms: int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...]


@message
class OffsetDeleteRequestPartition:
    partition_index: int32


@message
class OffsetDeleteRequestTopic:
    name: string
    partitions: tuple[OffsetDeleteRequestPartition, ...]


@message
class OffsetDeleteRequest:
    """Partitions of one group (KIP-496)."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = NEVER_FLEXIBLE
    RESPONSE: ClassVar[type[OffsetDeleteResponse]] = OffsetDeleteResponse

    group_id: string
    topics: tuple[OffsetDeleteRequestTopic, ...]
