"""DeleteGroups: remove groups without members, and everything they have committed."""

from broker.context import Call
from wire.errors import ErrorCode
from wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:
    """Answer for each group asked, in order."""
    results = [
        DeletableGroupResult(group_id=group_id, error_code=await _delete(group_id, call))
        for group_id in request.groups_names
    ]
    return DeleteGroupsResponse(results=tuple(results))


async def _delete(group_id: str, call: Call) -> ErrorCode:
    return await call.node.groups.ask(
        group_id, lambda shard, turn: shard.delete_group(group_id, turn)
    )
