"""JoinGroup: who may enter a group, under which id, and whether that begins a rebalance."""

from dataclasses import replace

from broker.groups.answers import joined, refused_join
from broker.groups.checks import membership_error
from broker.groups.group import Group
from broker.groups.member import Member, Protocols
from broker.groups.rebalance import (
    complete_if_all_joined,
    dismiss,
    park_join,
    prepare,
    rebalance_or_complete,
    restart_session,
)
from broker.groups.states import GroupState
from broker.groups.write_operation import Ticket, WriteOperation
from wire.consumer_offsets import GroupMetadataKey, GroupMetadataValue
from wire.errors import ErrorCode
from wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from wire.values import frozen


@frozen
class Joining:
    """One JoinGroup request: what it asks, who asks, and the id to give to a newcomer.

    `must_return`: a newcomer gets its id first and joins with it (KIP-394, version 4 and later), so
    that clients which give up leave no members behind. `may_skip_assignment`: the client knows that
    a restarted static leader needs to assign nothing (version 9 and later).
    """

    ticket: Ticket
    member_id: str
    instance_id: str | None
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    fresh_member_id: str
    must_return: bool
    may_skip_assignment: bool


def join(group: Group, joining: Joining, operation: WriteOperation) -> None:
    """Decide on a JoinGroup; the answer may be left for a later operation."""
    if not _has_room(group, joining, operation):
        operation.answer(joining.ticket, refused_join(ErrorCode.GROUP_MAX_SIZE_REACHED))
        if group.remove(joining.member_id) is not None:
            complete_if_all_joined(group, operation)
    elif not group.supports(joining.protocol_type, joining.protocols):
        _refuse(joining, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, operation)
    elif joining.member_id:
        _join_known(group, joining, operation)
    elif joining.instance_id is not None:
        _join_static(group, joining, joining.instance_id, operation)
    elif joining.must_return:
        group.pending_joins[joining.fresh_member_id] = operation.now_ms + joining.session_timeout_ms
        answer = refused_join(ErrorCode.MEMBER_ID_REQUIRED, joining.fresh_member_id)
        operation.answer(joining.ticket, answer)
    else:
        _add(group, joining, joining.fresh_member_id, operation)


def _has_room(group: Group, joining: Joining, operation: WriteOperation) -> bool:
    """Return whether one more may join.

    During a rebalance those count who have joined, so that a group that has become too large loses
    the last ones to come back; otherwise all members count.
    """
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            member = group.members.get(joining.member_id)
            waits_already = member is not None and member.has_joined
            return waits_already or group.joined_count < operation.settings.max_size
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            return (
                joining.member_id in group.members
                or len(group.members) < operation.settings.max_size
            )


def _refuse(joining: Joining, error: ErrorCode, operation: WriteOperation) -> None:
    operation.answer(joining.ticket, refused_join(error, joining.member_id))


def _add(group: Group, joining: Joining, member_id: str, operation: WriteOperation) -> None:
    member = Member(
        member_id=member_id,
        instance_id=joining.instance_id,
        client_id=joining.client_id,
        client_host=joining.client_host,
        protocol_type=joining.protocol_type,
        protocols=joining.protocols,
        session_timeout_ms=joining.session_timeout_ms,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        is_new=True,
    )
    if group.initial is not None:
        group.initial.member_added = True
    group.add(member)
    park_join(member, joining.ticket, operation)
    rebalance_or_complete(group, operation)


def _join_known(group: Group, joining: Joining, operation: WriteOperation) -> None:
    if joining.member_id in group.pending_joins and joining.instance_id is None:
        _add(group, joining, joining.member_id, operation)
        return
    error = membership_error(group, joining.member_id, joining.instance_id)
    if error is not ErrorCode.NONE:
        _refuse(joining, error, operation)
        return
    member = group.members[joining.member_id]
    match group.state:
        case GroupState.PREPARING_REBALANCE:
            _rejoin(group, member, joining, operation)
        case GroupState.COMPLETING_REBALANCE if member.protocols == joining.protocols:
            # It probably missed our answer.
            operation.answer(joining.ticket, joined(group, member))
        case GroupState.STABLE if (
            member.protocols == joining.protocols and group.leader_id != member.member_id
        ):
            operation.answer(joining.ticket, joined(group, member))
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            # What it wants has changed; or it leads, and has seen that partitions have.
            _rejoin(group, member, joining, operation)
        case GroupState.EMPTY | GroupState.DEAD:
            raise AssertionError(f"{group.group_id} has members and is {group.state}")


def _rejoin(group: Group, member: Member, joining: Joining, operation: WriteOperation) -> None:
    _update(member, joining)
    park_join(member, joining.ticket, operation)
    rebalance_or_complete(group, operation)


def _update(member: Member, joining: Joining) -> None:
    member.protocols = joining.protocols
    member.session_timeout_ms = joining.session_timeout_ms
    member.rebalance_timeout_ms = joining.rebalance_timeout_ms


def _join_static(
    group: Group, joining: Joining, instance_id: str, operation: WriteOperation
) -> None:
    known_id = group.static_members.get(instance_id)
    if known_id is None:
        _add(group, joining, joining.fresh_member_id, operation)
    else:
        _replace(group, group.members[known_id], joining, operation)


def _replace(group: Group, member: Member, joining: Joining, operation: WriteOperation) -> None:
    """Let a restarted static member take its own place (KIP-345).

    Its former self is fenced at once. A stable group does not notice, unless the choice of the
    assignor would change; while the leader is assigning it has to begin again, because the
    assignment that is on its way names the former id.
    """
    dismiss(member, ErrorCode.FENCED_INSTANCE_ID, operation, member_id=member.member_id)
    _update(member, joining)
    restart_session(member, operation)
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
        _replace_quietly(group, member, joining, operation)
        return
    group.rename(member, joining.fresh_member_id)
    park_join(member, joining.ticket, operation)
    if group.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
        prepare(group, operation)
    else:
        complete_if_all_joined(group, operation)


def _replace_quietly(
    group: Group, member: Member, joining: Joining, operation: WriteOperation
) -> None:
    """Write the new id down; it becomes the member's own when the record has been replayed."""
    former_id, fresh_id = member.member_id, joining.fresh_member_id
    assignments = {m.member_id: m.assignment for m in group.members.values()}
    value = _renamed(group.metadata_value(assignments, operation.wall_ms), former_id, fresh_id)
    operation.records.append((GroupMetadataKey(group=group.group_id), value))
    # An older client that hears it leads would assign anew although nothing has changed; so it is
    # told of its former self as the leader.
    leads = group.leader_id == former_id and joining.may_skip_assignment
    answer = JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=fresh_id if leads else group.leader_id or "",
        skip_assignment=leads,
        member_id=fresh_id,
        members=_listed(value) if leads else (),
    )
    operation.answer(joining.ticket, answer)


def _renamed(value: GroupMetadataValue, former_id: str, fresh_id: str) -> GroupMetadataValue:
    members = tuple(
        replace(member, member_id=fresh_id) if member.member_id == former_id else member
        for member in value.members
    )
    return replace(
        value, leader=fresh_id if value.leader == former_id else value.leader, members=members
    )


def _listed(value: GroupMetadataValue) -> tuple[JoinGroupResponseMember, ...]:
    return tuple(
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.subscription,
        )
        for member in value.members
    )
