"""DeleteGroups: remove groups without members, and everything they have committed."""

from broker.context import Call
from broker.fairness import Turns
from wire.errors import ErrorCode
from wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:
    """Answer for each group asked, in order."""
    turns = Turns()
    results: list[DeletableGroupResult] = []
    for group_id in request.groups_names:
        error = await _delete(group_id, call)
        results.append(DeletableGroupResult(group_id=group_id, error_code=error))
        await turns.pass_on()
    return DeleteGroupsResponse(results=tuple(results))


async def _delete(group_id: str, call: Call) -> ErrorCode:
    return await call.node.groups.ask(
        group_id, lambda shard, operation: shard.delete_group(group_id, operation)
    )
