"""ConsumerGroupDescribe: state and members of groups of the new protocol (KIP-848)."""

from broker.apis.describe_groups import ALL_OPERATIONS, NOT_ASKED
from broker.context import Call
from broker.fairness import Turns
from broker.groups.consumer.describing import described, not_described
from broker.groups.shard import Shard
from broker.groups.write_operation import WriteOperation
from wire.errors import ErrorCode
from wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


async def handle(
    request: ConsumerGroupDescribeRequest, call: Call
) -> ConsumerGroupDescribeResponse:
    """Answer for each group asked, in order."""
    operations = ALL_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    turns = Turns()
    groups: list[DescribedGroup] = []
    for group_id in request.group_ids:
        groups.append(await _described(group_id, operations, call))
        await turns.pass_on()
    return ConsumerGroupDescribeResponse(groups=tuple(groups))


async def _described(group_id: str, operations: int, call: Call) -> DescribedGroup:
    if not call.node.groups.settings.consumer.is_served:
        return not_described(group_id, ErrorCode.UNSUPPORTED_VERSION)

    def describe(shard: Shard, operation: WriteOperation) -> DescribedGroup:
        group = shard.consumer.groups.get(group_id)
        if group is not None:
            return described(group, operation, operations)
        kind = "is not a consumer group" if group_id in shard.groups else "not found"
        message = f"Group {group_id} {kind}."
        return not_described(group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)

    answer = await call.node.groups.ask(group_id, describe)
    return not_described(group_id, answer) if isinstance(answer, ErrorCode) else answer
