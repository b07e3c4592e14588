"""DescribeGroups: state and members of groups."""

from broker.context import Call
from broker.fairness import Turns
from broker.groups.administration import described
from wire.acls import SUPPORTED, ResourceType, bits_of
from wire.errors import ErrorCode
from wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

ALL_OPERATIONS = bits_of(SUPPORTED[ResourceType.GROUP])
"""What anybody may do with a group where no authorizer is set."""
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
