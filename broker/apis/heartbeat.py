"""Heartbeat: a member is alive, and learns whether the group rebalances."""

from broker.context import Call
from wire.errors import ErrorCode
from wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    """Answer at once; while the group is being loaded nothing is wrong with the member."""
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    error = await call.node.groups.ask(
        request.group_id,
        lambda shard, operation: shard.heartbeat(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            operation,
        ),
    )
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        error = ErrorCode.NONE
    return HeartbeatResponse(error_code=error)
