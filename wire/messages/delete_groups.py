"""DeleteGroups, key 42, v0-2: delete groups that have no members.

v1: throttled responses are answered before the pause (KIP-219)
v2: flexible
"""

from typing import ClassVar

from wire.schema import int16, int32, message, string


@message
class DeletableGroupResult:
    group_id: string
    error_code: int16


@message
class DeleteGroupsResponse:
    """The outcome for each group."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    results: tuple[DeletableGroupResult, ...]


@message
class DeleteGroupsRequest:
    """Groups by id."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[DeleteGroupsResponse]] = DeleteGroupsResponse

    groups_names: tuple[string, ...]
