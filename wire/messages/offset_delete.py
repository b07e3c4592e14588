"""OffsetDelete, key 47, v0-0: forget positions of a group for topics it is not subscribed to."""

from dataclasses import dataclass
from typing import ClassVar

from wire.schema import NEVER_FLEXIBLE, int16, int32, string


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponsePartition:
    partition_index: int32
    error_code: int16


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponseTopic:
    name: string
    partitions: tuple[OffsetDeleteResponsePartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponse:
    """The outcome for each partition."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = NEVER_FLEXIBLE

    error_code: int16
    throttle_time_ms: int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    partition_index: int32


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    name: string
    partitions: tuple[OffsetDeleteRequestPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequest:
    """Partitions of one group (KIP-496)."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = NEVER_FLEXIBLE
    RESPONSE: ClassVar[type[OffsetDeleteResponse]] = OffsetDeleteResponse

    group_id: string
    topics: tuple[OffsetDeleteRequestTopic, ...]
