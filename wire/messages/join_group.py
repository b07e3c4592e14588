"""JoinGroup, key 11, v0-9: enter a group and wait for its next generation.

v1: request rebalance_timeout_ms (KIP-62)
v2: response throttle_time_ms
v3: throttled responses are answered before the pause (KIP-219)
v4: a member gets its id first: MEMBER_ID_REQUIRED (KIP-394)
v5: request group_instance_id; response group_instance_id (KIP-345)
v6: flexible
v7: response protocol_type (KIP-559)
v8: request reason (KIP-800)
v9: response skip_assignment (KIP-814)
"""

from typing import ClassVar

from wire.schema import (
    boolean,
    bytes_,
    int16,
    int32,
    message,
    nullable_since,
    nullable_string,
    since,
    string,
)


@message
class JoinGroupResponseMember:
    member_id: string
    group_instance_id: nullable_string = since(5, default=None, ignorable=True)
    metadata: bytes_


@message
class JoinGroupResponse:
    """The generation; its leader gets all members."""

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[range] = range(10)
    FLEXIBLE_SINCE: ClassVar[int] = 6

    throttle_time_ms: int32 = since(2, default=0, ignorable=True)
    error_code: int16
    generation_id: int32 = -1
    protocol_type: nullable_string = since(7, default=None, ignorable=True)
    protocol_name: nullable_string = nullable_since(7, default="")
    leader: string
    skip_assignment: boolean = since(9, default=False)
    member_id: string
    members: tuple[JoinGroupResponseMember, ...]


@message
class JoinGroupRequestProtocol:
    name: string
    metadata: bytes_


@message
class JoinGroupRequest:
    """One member, with what it understands."""

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[range] = range(10)
    FLEXIBLE_SINCE: ClassVar[int] = 6
    RESPONSE: ClassVar[type[JoinGroupResponse]] = JoinGroupResponse

    group_id: string
    session_timeout_ms: int32
    rebalance_timeout_ms: int32 = since(1, default=-1, ignorable=True)
    member_id: string
    group_instance_id: nullable_string = since(5, default=None)
    protocol_type: string
    protocols: tuple[JoinGroupRequestProtocol, ...]
    reason: nullable_string = since(8, default=None, ignorable=True)
