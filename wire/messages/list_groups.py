"""ListGroups, key 16, v0-5: the groups that a broker coordinates.

v1: response throttle_time_ms
v2: throttled responses are answered before the pause (KIP-219)
v3: flexible
v4: request states_filter; response group_state (KIP-518)
v5: request types_filter; response group_type (KIP-848)
"""

from typing import ClassVar

from wire.schema import int16, int32, message, since, string


@message
class ListedGroup:
    group_id: string
    protocol_type: string
    group_state: string = since(4, default="", ignorable=True)
    group_type: string = since(5, default="", ignorable=True)


@message
class ListGroupsResponse:
    """The groups of one broker."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    throttle_time_ms: int32 = since(1, default=0, ignorable=True)
    error_code: int16
    groups: tuple[ListedGroup, ...]


@message
class ListGroupsRequest:
    """Filters, both empty for all groups."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 3
    RESPONSE: ClassVar[type[ListGroupsResponse]] = ListGroupsResponse

    states_filter: tuple[string, ...] = since(4, default=())
    types_filter: tuple[string, ...] = since(5, default=())
