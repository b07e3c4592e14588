"""ConsumerGroupHeartbeat, key 68, v0-1: be a member of a group of the new protocol (KIP-848).

v1: request subscribed_topic_regex; the member makes its own id
"""

from typing import ClassVar

from wire.schema import int16, int32, message, nullable_string, since, string, uuid


@message
class TopicPartitions:
    topic_id: uuid
    partitions: tuple[int32, ...]


@message
class Assignment:
    topic_partitions: tuple[TopicPartitions, ...]


@message
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and its partitions where they have changed."""

    API_KEY: ClassVar[int] = 68
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: nullable_string = None
    member_id: nullable_string = None
    member_epoch: int32
    heartbeat_interval_ms: int32
    assignment: Assignment | None = None


@message
class ConsumerGroupHeartbeatRequest:
    """Member epoch 0 joins, -1 leaves, -2 leaves for a while; null is what has not changed."""

    API_KEY: ClassVar[int] = 68
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[ConsumerGroupHeartbeatResponse]] = ConsumerGroupHeartbeatResponse

    group_id: string
    member_id: string
    member_epoch: int32
    instance_id: nullable_string = None
    rack_id: nullable_string = None
    rebalance_timeout_ms: int32 = -1
    subscribed_topic_names: tuple[string, ...] | None = None
    subscribed_topic_regex: nullable_string = since(1, default=None)
    server_assignor: nullable_string = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None
