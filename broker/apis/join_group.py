"""JoinGroup: become a member, or come back for the next generation."""

from uuid import uuid4

from broker.context import Call
from broker.groups.answers import joined_in, refused_join
from broker.groups.joining import Joining
from broker.groups.settings import MAX_STRING_BYTES, GroupSettings
from broker.groups.write_operation import Ticket
from wire.errors import ErrorCode
from wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_SINCE = 4
SKIP_ASSIGNMENT_SINCE = 9
MAX_PREFIX = 255
"""Ids begin with the client's own name, or as much of it as leaves the id short enough to write."""


async def handle(request: JoinGroupRequest, call: Call) -> JoinGroupResponse:
    """Answer when the generation begins, which may take as long as the rebalance timeout."""
    return joined_in(await _answer(request, call), call.api_version)


async def _answer(request: JoinGroupRequest, call: Call) -> JoinGroupResponse:
    groups = call.node.groups
    error = _error(request, groups.settings)
    if error is not ErrorCode.NONE:
        return refused_join(error, request.member_id)
    answer = await groups.ask_later(
        request.group_id,
        lambda shard, operation, ticket: shard.join(
            request.group_id, _joining(request, call, ticket), operation
        ),
    )
    if isinstance(answer, JoinGroupResponse):
        return answer
    return refused_join(answer, request.member_id)


def _error(request: JoinGroupRequest, settings: GroupSettings) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    shortest, longest = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if not shortest <= request.session_timeout_ms <= longest:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    names = [request.protocol_type, request.member_id, request.group_instance_id or ""]
    names += [protocol.name for protocol in request.protocols]
    if any(len(name.encode(errors="replace")) > MAX_STRING_BYTES for name in names):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _joining(request: JoinGroupRequest, call: Call, ticket: Ticket) -> Joining:
    client_id = call.client_id or ""
    rebalance_timeout_ms = request.rebalance_timeout_ms
    return Joining(
        ticket=ticket,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        session_timeout_ms=request.session_timeout_ms,
        # Version 0 has one timeout for both.
        rebalance_timeout_ms=(
            request.session_timeout_ms if rebalance_timeout_ms < 0 else rebalance_timeout_ms
        ),
        client_id=client_id,
        client_host=f"/{call.client_host}",  # as Java prints an address
        fresh_member_id=f"{(request.group_instance_id or client_id)[:MAX_PREFIX]}-{uuid4()}",
        must_return=call.api_version >= MEMBER_ID_REQUIRED_SINCE,
        may_skip_assignment=call.api_version >= SKIP_ASSIGNMENT_SINCE,
    )
