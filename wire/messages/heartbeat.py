"""Heartbeat, key 12, v0-4: stay a member of a group.

v1: response throttle_time_ms
v2: throttled responses are answered before the pause (KIP-219)
v3: request group_instance_id (KIP-345)
v4: flexible
"""

from typing import ClassVar

from wire.schema import int16, int32, message, nullable_string, since, string


@message
class HeartbeatResponse:
    """Tells of a rebalance by its error code."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 4

    throttle_time_ms: int32 = since(1, default=0, ignorable=True)
    error_code: int16


@message
class HeartbeatRequest:
    """Sent by every member, several times per session timeout."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 4
    RESPONSE: ClassVar[type[HeartbeatResponse]] = HeartbeatResponse

    group_id: string
    generation_id: int32
    member_id: string
    group_instance_id: nullable_string = since(3, default=None)
