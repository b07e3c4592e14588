"""DescribeClientQuotas, key 48, v0-1: quotas of users, client ids and addresses (KIP-546).

v1: flexible
"""

from typing import ClassVar

from wire.schema import boolean, float64, int8, int16, int32, message, nullable_string, string


@message
class DescribeClientQuotasEntity:
    entity_type: string
    entity_name: nullable_string


@message
class DescribeClientQuotasValue:
    key: string
    value: float64


@message
class DescribeClientQuotasEntry:
    entity: tuple[DescribeClientQuotasEntity, ...]
    values: tuple[DescribeClientQuotasValue, ...]


@message
class DescribeClientQuotasResponse:
    """What is set for each entity that the filter finds; null with an error."""

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 1

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: nullable_string = None
    entries: tuple[DescribeClientQuotasEntry, ...] | None = None


@message
class DescribeClientQuotasComponent:
    entity_type: string
    match_type: int8
    match: nullable_string = None


@message
class DescribeClientQuotasRequest:
    """A filter: all components have to match; `strict` leaves out entities that have more."""

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 1
    RESPONSE: ClassVar[type[DescribeClientQuotasResponse]] = DescribeClientQuotasResponse

    components: tuple[DescribeClientQuotasComponent, ...]
    strict: boolean
