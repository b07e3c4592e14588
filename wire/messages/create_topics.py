"""CreateTopics, key 19, v0-7: create topics.

v1: request validate_only; response error_message
v2: response throttle_time_ms; throttled as others are
v3: throttled responses are answered before the pause (KIP-219)
v4: -1 for the broker's default counts (KIP-464)
v5: response topic_config_error_code, num_partitions, replication_factor, configs; flexible
    (KIP-525)
v6: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599)
v7: response topic_id (KIP-516)
"""

from typing import ClassVar

from wire.primitives import ZERO_UUID
from wire.schema import (
    boolean,
    int8,
    int16,
    int32,
    message,
    nullable_string,
    since,
    string,
    tagged,
    uuid,
)


@message
class CreatableTopicConfigs:
    name: string
    value: nullable_string = None
    read_only: boolean
    config_source: int8 = -1
    is_sensitive: boolean


@message
class CreatableTopicResult:
    name: string
    topic_id: uuid = since(7, default=ZERO_UUID, ignorable=True)
    error_code: int16
    error_message: nullable_string = since(1, default=None, ignorable=True)
    topic_config_error_code: int16 = tagged(0, since=5, default=0, ignorable=True)
    num_partitions: int32 = since(5, default=-1, ignorable=True)
    replication_factor: int16 = since(5, default=-1, ignorable=True)
    configs: tuple[CreatableTopicConfigs, ...] | None = since(5, default=(), ignorable=True)


@message
class CreateTopicsResponse:
    """The outcome for each topic."""

    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[range] = range(8)
    FLEXIBLE_SINCE: ClassVar[int] = 5

    throttle_time_ms: int32 = since(2, default=0, ignorable=True)
    topics: tuple[CreatableTopicResult, ...]


@message
class CreatableReplicaAssignment:
    partition_index: int32
    broker_ids: tuple[int32, ...]


@message
class CreatableTopicConfig:
    name: string
    value: nullable_string = None


@message
class CreatableTopic:
    name: string
    num_partitions: int32
    replication_factor: int16
    assignments: tuple[CreatableReplicaAssignment, ...]
    configs: tuple[CreatableTopicConfig, ...]


@message
class CreateTopicsRequest:
    """Topics with counts or assignments; answered by the controller only."""

    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[range] = range(8)
    FLEXIBLE_SINCE: ClassVar[int] = 5
    RESPONSE: ClassVar[type[CreateTopicsResponse]] = CreateTopicsResponse

    topics: tuple[CreatableTopic, ...]
    timeout_ms: int32 = 60000
    validate_only: boolean = since(1, default=False)
