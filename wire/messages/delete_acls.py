"""DeleteAcls, key 31, v0-3: remove the access control entries that match filters.

v1: request pattern_type_filter; response pattern_type (KIP-290)
v2: flexible
v3: user resources (KIP-373)
"""

from typing import ClassVar

from wire.schema import int8, int16, int32, message, nullable_string, since, string


@message
class DeleteAclsMatchingAcl:
    error_code: int16
    error_message: nullable_string = None
    resource_type: int8
    resource_name: string
    pattern_type: int8 = since(1, default=3)
    principal: string
    host: string
    operation: int8
    permission_type: int8


@message
class DeleteAclsFilterResult:
    error_code: int16
    error_message: nullable_string = None
    matching_acls: tuple[DeleteAclsMatchingAcl, ...]


@message
class DeleteAclsResponse:
    """The rights that each filter removed, in the filters' order."""

    API_KEY: ClassVar[int] = 31
    VERSIONS: ClassVar[range] = range(4)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    filter_results: tuple[DeleteAclsFilterResult, ...]


@message
class DeleteAclsFilter:
    resource_type_filter: int8
    resource_name_filter: nullable_string = None
    pattern_type_filter: int8 = since(1, default=3)
    principal_filter: nullable_string = None
    host_filter: nullable_string = None
    operation: int8
    permission_type: int8


@message
class DeleteAclsRequest:
    """The filters."""

    API_KEY: ClassVar[int] = 31
    VERSIONS: ClassVar[range] = range(4)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[DeleteAclsResponse]] = DeleteAclsResponse

    filters: tuple[DeleteAclsFilter, ...]
