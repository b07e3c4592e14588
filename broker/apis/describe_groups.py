"""DescribeGroups: state and members of groups."""

from broker.context import Call
from broker.fairness import Turns
from broker.groups.administration import described
from wire.errors import ErrorCode
from wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

READ = 1 << 3
DELETE = 1 << 6
DESCRIBE = 1 << 8
ALL_OPERATIONS = READ | DELETE | DESCRIBE
"""What anybody may do with a group here: the bits of Kafka's AclOperation codes."""
NOT_ASKED = -(2**31)


async def handle(request: DescribeGroupsRequest, call: Call) -> DescribeGroupsResponse:
    """Answer for each group asked, in order."""
    operations = ALL_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    turns = Turns()
    groups: list[DescribedGroup] = []
    for group_id in request.groups:
        groups.append(await _described(group_id, operations, call))
        await turns.pass_on()
    return DescribeGroupsResponse(groups=tuple(groups))


async def _described(group_id: str, operations: int, call: Call) -> DescribedGroup:
    answer = await call.node.groups.ask(
        group_id,
        lambda shard, _operation: described(group_id, shard.groups.get(group_id), operations),
    )
    if isinstance(answer, ErrorCode):
        return DescribedGroup(
            error_code=answer,
            group_id=group_id,
            group_state="",
            protocol_type="",
            protocol_data="",
            members=(),
        )
    return answer
