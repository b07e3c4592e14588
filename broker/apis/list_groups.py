"""ListGroups: the groups that this broker coordinates."""

from broker.context import Call
from broker.groups.administration import Filter
from wire.errors import ErrorCode
from wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


async def handle(request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
    """Answer with all groups of this broker that the filters admit."""
    chosen = Filter.of(request.states_filter, request.types_filter)
    groups = await call.node.groups.ask_all(lambda shard, _operation: shard.listed(chosen))
    if isinstance(groups, ErrorCode):
        return ListGroupsResponse(error_code=groups, groups=())
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=tuple(groups))
