"""SyncGroup: the leader hands in the assignment, everybody gets their part of it."""

from broker.context import Call
from broker.groups.answers import refused_sync
from broker.groups.membership import Syncing
from wire.errors import ErrorCode
from wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_REQUIRED_SINCE = 5


async def handle(request: SyncGroupRequest, call: Call) -> SyncGroupResponse:
    """Answer when the leader's assignment is safe, or when the group rebalances again."""
    if not request.group_id:
        return refused_sync(ErrorCode.INVALID_GROUP_ID)
    names_protocol = request.protocol_type is not None and request.protocol_name is not None
    if call.api_version >= PROTOCOL_REQUIRED_SINCE and not names_protocol:
        return refused_sync(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assignments = {given.member_id: given.assignment for given in request.assignments}
    answer = await call.node.groups.ask_later(
        request.group_id,
        lambda shard, operation, ticket: shard.sync(
            request.group_id,
            Syncing(
                ticket=ticket,
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                generation=request.generation_id,
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignments=assignments,
            ),
            operation,
        ),
    )
    return answer if isinstance(answer, SyncGroupResponse) else refused_sync(answer)
