"""LeaveGroup: members go, or an administrator removes them."""

from broker.context import Call
from broker.groups.membership import Leaver
from wire.errors import ErrorCode
from wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

SEVERAL_MEMBERS_SINCE = 3


async def handle(request: LeaveGroupRequest, call: Call) -> LeaveGroupResponse:
    """Answer with each member's outcome; before version 3 there is only the one who asks."""
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    leavers = _leavers(request, call.api_version)
    outcomes = await call.node.groups.ask(
        request.group_id, lambda shard, operation: shard.leave(request.group_id, leavers, operation)
    )
    if isinstance(outcomes, ErrorCode):
        return LeaveGroupResponse(error_code=outcomes)
    if call.api_version < SEVERAL_MEMBERS_SINCE:
        return LeaveGroupResponse(error_code=outcomes[0])
    return LeaveGroupResponse(
        error_code=ErrorCode.NONE,
        members=tuple(
            MemberResponse(
                member_id=leaver.member_id,
                group_instance_id=leaver.instance_id,
                error_code=outcome,
            )
            for leaver, outcome in zip(leavers, outcomes, strict=True)
        ),
    )


def _leavers(request: LeaveGroupRequest, api_version: int) -> tuple[Leaver, ...]:
    if api_version < SEVERAL_MEMBERS_SINCE:
        return (Leaver(member_id=request.member_id, instance_id=None),)
    return tuple(
        Leaver(member_id=member.member_id, instance_id=member.group_instance_id)
        for member in request.members
    )
