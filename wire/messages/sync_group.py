"""SyncGroup, key 14, v0-5: hand out the leader's assignment.

v1: response throttle_time_ms
v2: throttled responses are answered before the pause (KIP-219)
v3: request group_instance_id (KIP-345)
v4: flexible
v5: request protocol_type, protocol_name; response protocol_type, protocol_name (KIP-559)
"""

from typing import ClassVar

from wire.schema import bytes_, int16, int32, message, nullable_string, since, string


@message
class SyncGroupResponse:
    """The assignment of one member."""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 4

    throttle_time_ms: int32 = since(1, default=0, ignorable=True)
    error_code: int16
    protocol_type: nullable_string = since(5, default=None, ignorable=True)
    protocol_name: nullable_string = since(5, default=None, ignorable=True)
    assignment: bytes_


@message
class SyncGroupRequestAssignment:
    member_id: string
    assignment: bytes_


@message
class SyncGroupRequest:
    """Assignments from the leader, none from the others."""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 4
    RESPONSE: ClassVar[type[SyncGroupResponse]] = SyncGroupResponse

    group_id: string
    generation_id: int32
    member_id: string
    group_instance_id: nullable_string = since(3, default=None)
    protocol_type: nullable_string = since(5, default=None, ignorable=True)
    protocol_name: nullable_string = since(5, default=None, ignorable=True)
    assignments: tuple[SyncGroupRequestAssignment, ...]
