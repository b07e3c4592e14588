"""How members of a group leave a site before it is closed: by Kafka's own rebalance. Pure.

While a promotion leads away, heartbeats are answered that the group rebalances. Every client then
gives its partitions back, commits how far it got, and joins anew. In place of that request the
broker hears that the member leaves, and the client waits until the other site is active.
"""

from dataclasses import replace
from typing import Final

from failover.bootstrap.group_members import Member
from wire.errors import ErrorCode
from wire.headers import RequestHeader, decode_response, encode_request, encode_response
from wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from wire.messages.join_group import JoinGroupRequest
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.primitives import Buffer
from wire.request_headers import decode_request_header
from wire.schema import decode_prefix

HEARTBEAT: Final = HeartbeatRequest.API_KEY
JOIN: Final = JoinGroupRequest.API_KEY
SPEAKS_FOR: Final = frozenset({HEARTBEAT, JOIN})
"""Requests that tell which member a connection is for."""
_LEAVE_VERSION: Final = 3
"""The first with the name of a static member (Kafka 2.4)."""


def member_of(frame: Buffer) -> Member | None:
    """Return the member that a request speaks for; None where it has no id yet.

    `frame` is without its size, as everywhere here. Raises MalformedMessage.
    """
    _, request = _read(frame)
    return Member(request.group_id, request.member_id) if request.member_id else None


def leaving(frame: Buffer) -> bytes | None:
    """Return the whole request by which the member leaves, None for one that is not there yet.

    It has the correlation id of the request in whose place it is sent.
    """
    header, request = _read(frame)
    if not request.member_id or isinstance(request, HeartbeatRequest):
        return None
    member = MemberIdentity(
        member_id=request.member_id, group_instance_id=request.group_instance_id
    )
    header = header._replace(api_key=LeaveGroupRequest.API_KEY, api_version=_LEAVE_VERSION)
    leaves = LeaveGroupRequest(group_id=request.group_id, members=(member,))
    return b"".join(encode_request(header, leaves))


def rebalancing(frame: Buffer, version: int) -> bytes:
    """Return the answer to a heartbeat, whole, that has the member join anew."""
    answer = decode_response(HeartbeatResponse, frame, version)
    if answer.error_code == ErrorCode.NONE:
        answer = replace(answer, error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    return b"".join(encode_response(correlation_id, answer, version))


def _read(
    frame: Buffer,
) -> tuple[RequestHeader, HeartbeatRequest | JoinGroupRequest]:
    view = memoryview(frame)
    header, position = decode_request_header(view)
    if header.api_key == HEARTBEAT:
        return header, decode_prefix(HeartbeatRequest, view, header.api_version, position)[0]
    return header, decode_prefix(JoinGroupRequest, view, header.api_version, position)[0]
