"""DescribeGroups, key 15, v0-5: state and members of groups.

v1: response throttle_time_ms
v2: throttled responses are answered before the pause (KIP-219)
v3: request include_authorized_operations; response authorized_operations (KIP-430)
v4: response group_instance_id (KIP-345)
v5: flexible
"""

from typing import ClassVar

from wire.schema import boolean, bytes_, int16, int32, message, nullable_string, since, string


@message
class DescribedGroupMember:
    member_id: string
    group_instance_id: nullable_string = since(4, default=None, ignorable=True)
    client_id: string
    client_host: string
    member_metadata: bytes_
    member_assignment: bytes_


@message
class DescribedGroup:
    error_code: int16
    group_id: string
    group_state: string
    protocol_type: string
    protocol_data: string
    members: tuple[DescribedGroupMember, ...]
    authorized_operations: int32 = since(3, default=-(2**31))


@message
class DescribeGroupsResponse:
    """One entry for each group asked for; an unknown one is in state Dead."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 5

    throttle_time_ms: int32 = since(1, default=0, ignorable=True)
    groups: tuple[DescribedGroup, ...]


@message
class DescribeGroupsRequest:
    """Groups by id."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 5
    RESPONSE: ClassVar[type[DescribeGroupsResponse]] = DescribeGroupsResponse

    groups: tuple[string, ...]
    include_authorized_operations: boolean = since(3, default=False)
