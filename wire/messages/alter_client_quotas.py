"""AlterClientQuotas, key 49, v0-1: set and remove quotas of users, client ids, addresses (KIP-546).

v1: flexible
"""

from typing import ClassVar

from wire.schema import boolean, float64, int16, int32, message, nullable_string, string


@message
class AlterClientQuotasEntity:
    entity_type: string
    entity_name: nullable_string


@message
class AlterClientQuotasResult:
    error_code: int16
    error_message: nullable_string = None
    entity: tuple[AlterClientQuotasEntity, ...]


@message
class AlterClientQuotasResponse:
    """The outcome for each entity."""

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 1

    throttle_time_ms: int32 = 0
    entries: tuple[AlterClientQuotasResult, ...]


@message
class AlterClientQuotasOperation:
    key: string
    value: float64
    remove: boolean


@message
class AlterClientQuotasEntry:
    entity: tuple[AlterClientQuotasEntity, ...]
    ops: tuple[AlterClientQuotasOperation, ...]


@message
class AlterClientQuotasRequest:
    """What to set and what to remove, entity by entity; a null name is the default of its type."""

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 1
    RESPONSE: ClassVar[type[AlterClientQuotasResponse]] = AlterClientQuotasResponse

    entries: tuple[AlterClientQuotasEntry, ...]
    validate_only: boolean
