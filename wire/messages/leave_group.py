"""LeaveGroup, key 13, v0-5: leave a group.

v1: response throttle_time_ms
v2: throttled responses are answered before the pause (KIP-219)
v3: request members; request without member_id; response members (KIP-345)
v4: flexible
v5: request reason (KIP-800)
"""

from typing import ClassVar

from wire.schema import int16, int32, message, nullable_string, since, string, until


@message
class MemberResponse:
    member_id: string
    group_instance_id: nullable_string = None
    error_code: int16


@message
class LeaveGroupResponse:
    """The outcome for each member."""

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 4

    throttle_time_ms: int32 = since(1, default=0, ignorable=True)
    error_code: int16
    members: tuple[MemberResponse, ...] = since(3, default=())


@message
class MemberIdentity:
    member_id: string
    group_instance_id: nullable_string = None
    reason: nullable_string = since(5, default=None, ignorable=True)


@message
class LeaveGroupRequest:
    """One member, or from v3 on several."""

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 4
    RESPONSE: ClassVar[type[LeaveGroupResponse]] = LeaveGroupResponse

    group_id: string
    member_id: string = until(2, default="")
    members: tuple[MemberIdentity, ...] = since(3, default=())
