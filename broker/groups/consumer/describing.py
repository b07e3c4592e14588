"""Groups of the new protocol as tools describe them."""

from broker.groups.consumer.assignors import Assignor
from broker.groups.consumer.draft import Draft
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import Member as GroupMember
from broker.groups.consumer.partitions import Partitions, by_topic
from broker.groups.write_operation import Topics, WriteOperation
from wire.errors import ErrorCode
from wire.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def described(group: ConsumerGroup, operation: WriteOperation, operations: int) -> DescribedGroup:
    """Return a group as tools show it.

    `operations` is passed on: what the one who asks may do with the group, as bits.
    """
    assignor: Assignor = Draft(group, operation).assignor()
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor.value,
        members=tuple(_member(group, one, operation.topics) for one in group.members.values()),
        authorized_operations=operations,
    )


def not_described(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    """Say why a group is not described."""
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )


def _member(group: ConsumerGroup, member: GroupMember, topics: Topics) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.pattern or None,
        assignment=_assignment(member.assigned, topics),
        target_assignment=_assignment(group.target_of(member.member_id), topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(partitions: Partitions, topics: Topics) -> Assignment:
    """Return partitions with their topics' names; what is gone by now is left out."""
    named = (
        (topics.topic_by_id(topic_id), indexes)
        for topic_id, indexes in by_topic(partitions).items()
    )
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=view.topic_id, topic_name=view.name, partitions=indexes)
            for view, indexes in named
            if view is not None
        )
    )
