"""CreateAcls, key 30, v0-3: add access control entries.

v1: request resource_pattern_type (KIP-290)
v2: flexible
v3: user resources (KIP-373)
"""

from typing import ClassVar

from wire.schema import int8, int16, int32, message, nullable_string, since, string


@message
class AclCreationResult:
    error_code: int16
    error_message: nullable_string = None


@message
class CreateAclsResponse:
    """The outcome for each entry, in order."""

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[range] = range(4)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    results: tuple[AclCreationResult, ...]


@message
class AclCreation:
    resource_type: int8
    resource_name: string
    resource_pattern_type: int8 = since(1, default=3)
    principal: string
    host: string
    operation: int8
    permission_type: int8


@message
class CreateAclsRequest:
    """The entries."""

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[range] = range(4)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[CreateAclsResponse]] = CreateAclsResponse

    creations: tuple[AclCreation, ...]
