"""ConsumerGroupDescribe, key 69, v0-1: state and members of groups of the new protocol (KIP-848).

v1: response member_type (KIP-1099)
"""

from typing import ClassVar

from wire.schema import (
    boolean,
    int8,
    int16,
    int32,
    message,
    nullable_string,
    since,
    string,
    uuid,
)


@message
class TopicPartitions:
    topic_id: uuid
    topic_name: string
    partitions: tuple[int32, ...]


@message
class Assignment:
    topic_partitions: tuple[TopicPartitions, ...]


@message
class Member:
    """Member type 0 speaks the classic protocol, 1 the new one; -1 is not known."""

    member_id: string
    instance_id: nullable_string = None
    rack_id: nullable_string = None
    member_epoch: int32
    client_id: string
    client_host: string
    subscribed_topic_names: tuple[string, ...]
    subscribed_topic_regex: nullable_string = None
    assignment: Assignment
    target_assignment: Assignment
    member_type: int8 = since(1, default=-1, ignorable=True)


@message
class DescribedGroup:
    error_code: int16
    error_message: nullable_string = None
    group_id: string
    group_state: string
    group_epoch: int32
    assignment_epoch: int32
    assignor_name: string
    members: tuple[Member, ...]
    authorized_operations: int32 = -(2**31)


@message
class ConsumerGroupDescribeResponse:
    """One entry for each group asked for; GROUP_ID_NOT_FOUND also for groups of other types."""

    API_KEY: ClassVar[int] = 69
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    groups: tuple[DescribedGroup, ...]


@message
class ConsumerGroupDescribeRequest:
    """Groups by id."""

    API_KEY: ClassVar[int] = 69
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[ConsumerGroupDescribeResponse]] = ConsumerGroupDescribeResponse

    group_ids: tuple[string, ...]
    include_authorized_operations: boolean
