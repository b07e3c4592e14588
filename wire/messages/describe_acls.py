"""DescribeAcls, key 29, v0-3: access control entries that match a filter.

v1: request pattern_type_filter; response pattern_type (KIP-290)
v2: flexible
v3: user resources (KIP-373)
"""

from typing import ClassVar

from wire.schema import int8, int16, int32, message, nullable_string, since, string


@message
class AclDescription:
    principal: string
    host: string
    operation: int8
    permission_type: int8


@message
class DescribeAclsResource:
    resource_type: int8
    resource_name: string
    pattern_type: int8 = since(1, default=3)
    acls: tuple[AclDescription, ...]


@message
class DescribeAclsResponse:
    """Entries by resource."""

    API_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[range] = range(4)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: nullable_string = None
    resources: tuple[DescribeAclsResource, ...]


@message
class DescribeAclsRequest:
    """A filter; null matches anything."""

    API_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[range] = range(4)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[DescribeAclsResponse]] = DescribeAclsResponse

    resource_type_filter: int8
    resource_name_filter: nullable_string = None
    pattern_type_filter: int8 = since(1, default=3)
    principal_filter: nullable_string = None
    host_filter: nullable_string = None
    operation: int8
    permission_type: int8
