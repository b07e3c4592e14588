"""The answers that several decisions give: to JoinGroup and SyncGroup."""

from dataclasses import replace
from typing import Final

from broker.groups.group import Group
from broker.groups.member import Member
from wire.errors import ErrorCode
from wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from wire.messages.sync_group import SyncGroupResponse

NULL_PROTOCOL_SINCE: Final = 7


def joined(group: Group, member: Member, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """Tell a member about the running generation; its leader also learns who is in it."""
    leads = group.leader_id == member.member_id
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=member_list(group) if leads else (),
    )


def member_list(group: Group) -> tuple[JoinGroupResponseMember, ...]:
    """Return the members as the leader needs them to assign partitions."""
    assert group.protocol_name is not None
    return tuple(
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    )


def refused_join(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """Refuse a JoinGroup."""
    return JoinGroupResponse(
        error_code=error,
        generation_id=-1,
        protocol_type=None,
        protocol_name=None,
        leader="",
        member_id=member_id,
        members=(),
    )


def joined_in(answer: JoinGroupResponse, api_version: int) -> JoinGroupResponse:
    """Return an answer as its version has it: before v7 no protocol is an empty one."""
    if answer.protocol_name is None and api_version < NULL_PROTOCOL_SINCE:
        return replace(answer, protocol_name="")
    return answer


def synced(group: Group, member: Member) -> SyncGroupResponse:
    """Give a member its assignment."""
    return assigned(group, member.assignment)


def assigned(group: Group, assignment: bytes) -> SyncGroupResponse:
    """Give this assignment of the running generation."""
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=assignment,
    )


def refused_sync(error: ErrorCode) -> SyncGroupResponse:
    """Refuse a SyncGroup."""
    return SyncGroupResponse(
        error_code=error, protocol_type=None, protocol_name=None, assignment=b""
    )
