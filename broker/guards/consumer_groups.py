"""Guards of groups of the new protocol (KIP-848)."""

from dataclasses import replace
from typing import Any

from broker.context import Call, Handler
from broker.groups.consumer.describing import not_described
from broker.groups.consumer.heartbeats import MemberRefusal, refused
from broker.guards.groups import REFUSED
from broker.guards.guard import may_group, may_topic, sorted_out
from wire.acls import Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def heartbeat(request: ConsumerGroupHeartbeatRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Let a member beat that may read the group, and describe each topic that it names.

    Of the topics that a pattern matches, the handler leaves out those that may not be described.
    """
    if not may_group(call, Operation.READ, request.group_id):
        return refused(MemberRefusal(REFUSED, "no READ of the group"))
    _, hidden = await sorted_out(
        request.subscribed_topic_names or (),
        lambda name: may_topic(call, Operation.DESCRIBE, name),
    )
    if hidden:
        return refused(MemberRefusal(NO_TOPIC, "no DESCRIBE of a topic in SubscribedTopicNames"))
    return await handle(request, call)


async def describe(request: ConsumerGroupDescribeRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Describe those that may be described, and whose members' topics may be."""
    kept, hidden = await sorted_out(
        request.group_ids, lambda group_id: may_group(call, Operation.DESCRIBE, group_id)
    )
    answer = await handle(replace(request, group_ids=kept), call)
    told = [_of_known_topics(group, call) for group in answer.groups]
    if request.include_authorized_operations:
        told = [_with_operations(group, call) for group in told]
    own = [not_described(group_id, REFUSED) for group_id in hidden]
    return replace(answer, groups=(*told, *own))


def _of_known_topics(group: DescribedGroup, call: Call) -> DescribedGroup:
    topics = {name for one in group.members for name in one.subscribed_topic_names}
    topics |= {
        owned.topic_name
        for one in group.members
        for assignment in (one.assignment, one.target_assignment)
        for owned in assignment.topic_partitions
    }
    if all(may_topic(call, Operation.DESCRIBE, name) for name in topics):
        return group
    return not_described(group.group_id, NO_TOPIC, "no DESCRIBE of a topic that its members read")


def _with_operations(group: DescribedGroup, call: Call) -> DescribedGroup:
    if group.error_code:
        return group
    operations = call.rights.told(ResourceType.GROUP, group.group_id)
    return replace(group, authorized_operations=operations)
