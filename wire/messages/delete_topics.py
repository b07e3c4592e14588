"""DeleteTopics, key 20, v0-6: delete topics.

v1: response throttle_time_ms
v2: throttled responses are answered before the pause (KIP-219)
v3: TOPIC_DELETION_DISABLED may be answered (KIP-322)
v4: flexible
v5: response error_message (KIP-599)
v6: request topics; request without topic_names; response topic_id (KIP-516)
"""

from typing import ClassVar

from wire.primitives import ZERO_UUID
from wire.schema import (
    int16,
    int32,
    message,
    nullable_since,
    nullable_string,
    since,
    string,
    until,
    uuid,
)


@message
class DeletableTopicResult:
    name: nullable_string = nullable_since(6, default="")
    topic_id: uuid = since(6, default=ZERO_UUID, ignorable=True)
    error_code: int16
    error_message: nullable_string = since(5, default=None, ignorable=True)


@message
class DeleteTopicsResponse:
    """The outcome for each topic."""

    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[range] = range(7)
    FLEXIBLE_SINCE: ClassVar[int] = 4

    throttle_time_ms: int32 = since(1, default=0, ignorable=True)
    responses: tuple[DeletableTopicResult, ...]


@message
class DeleteTopicState:
    name: nullable_string = None
    topic_id: uuid


@message
class DeleteTopicsRequest:
    """Topics by name, from v6 on by name or id; answered by the controller only."""

    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[range] = range(7)
    FLEXIBLE_SINCE: ClassVar[int] = 4
    RESPONSE: ClassVar[type[DeleteTopicsResponse]] = DeleteTopicsResponse

    topics: tuple[DeleteTopicState, ...] = since(6, default=())
    topic_names: tuple[string, ...] = until(5, default=(), ignorable=True)
    timeout_ms: int32
