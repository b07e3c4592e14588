"""FindCoordinator, key 10, v0-6: which broker coordinates a group or a transactional id.

v1: request key_type; response throttle_time_ms, error_message (KIP-98)
v2: throttled responses are answered before the pause (KIP-219)
v3: flexible
v4: request coordinator_keys; request without key; response coordinators; response without
    error_code, error_message, node_id, host, port; several keys at once (KIP-699)
v5: TRANSACTION_ABORTABLE may be answered (KIP-890)
v6: key type 2 for share groups (KIP-932)
"""

from typing import ClassVar

from wire.schema import int8, int16, int32, message, nullable_string, since, string, until


@message
class Coordinator:
    key: string
    node_id: int32
    host: string
    port: int32
    error_code: int16
    error_message: nullable_string = None


@message
class FindCoordinatorResponse:
    """The coordinator of each key."""

    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[range] = range(7)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    throttle_time_ms: int32 = since(1, default=0, ignorable=True)
    error_code: int16 = until(3, default=0)
    error_message: nullable_string = since(1, until=3, default=None, ignorable=True)
    node_id: int32 = until(3, default=0)
    host: string = until(3, default="")
    port: int32 = until(3, default=0)
    coordinators: tuple[Coordinator, ...] = since(4, default=())


@message
class FindCoordinatorRequest:
    """Keys of one kind: 0 for groups, 1 for transactional ids."""

    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[range] = range(7)
    FLEXIBLE_SINCE: ClassVar[int] = 3
    RESPONSE: ClassVar[type[FindCoordinatorResponse]] = FindCoordinatorResponse

    key: string = until(3, default="")
    key_type: int8 = since(1, default=0)
    coordinator_keys: tuple[string, ...] = since(4, default=())
