"""SyncGroup, Heartbeat and LeaveGroup: the life of a member within a generation."""

from collections.abc import Mapping

from broker.groups.answers import assigned, refused_sync, synced
from broker.groups.checks import generation_error, membership_error
from broker.groups.group import Group
from broker.groups.rebalance import (
    complete_if_all_joined,
    prepare,
    remove_member,
    restart_session,
)
from broker.groups.states import GroupState
from broker.groups.write_operation import Ticket, WriteOperation
from wire.consumer_offsets import GroupMetadataKey
from wire.errors import ErrorCode
from wire.values import frozen


@frozen
class Syncing:
    """One SyncGroup request; only the leader sends assignments, by member id."""

    ticket: Ticket
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


def sync(group: Group, syncing: Syncing, operation: WriteOperation) -> None:
    """Give a member its assignment, now or as soon as the leader has sent it."""
    error = _sync_error(group, syncing)
    if error is not ErrorCode.NONE:
        operation.answer(syncing.ticket, refused_sync(error))
        return
    member = group.members[syncing.member_id]
    group.pending_syncs.discard(syncing.member_id)
    if not group.pending_syncs:
        group.sync_deadline_ms = None
    if group.state is GroupState.STABLE:
        operation.answer(syncing.ticket, synced(group, member))
        return
    if member.sync_ticket is not None:  # the client has asked again; the first request is over
        operation.answer(member.sync_ticket, refused_sync(ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_ticket = syncing.ticket
    if group.leader_id == syncing.member_id:
        _assign(group, syncing.assignments, operation)


def _sync_error(group: Group, syncing: Syncing) -> ErrorCode:
    if group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = generation_error(group, syncing.member_id, syncing.instance_id, syncing.generation)
    if error is not ErrorCode.NONE:
        return error
    if _differs(syncing.protocol_type, group.protocol_type) or _differs(
        syncing.protocol_name, group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _differs(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known


def _assign(group: Group, assignments: Mapping[str, bytes], operation: WriteOperation) -> None:
    """Write the assignments down; the group is stable once the record has been replayed."""
    given = {member_id: assignments.get(member_id, b"") for member_id in group.members}
    value = group.metadata_value(given, operation.wall_ms)
    operation.records.append((GroupMetadataKey(group=group.group_id), value))
    for member in group.members.values():
        if member.sync_ticket is not None:
            operation.answer(member.sync_ticket, assigned(group, given[member.member_id]))
            member.sync_ticket = None
            restart_session(member, operation)


def heartbeat(
    group: Group,
    member_id: str,
    instance_id: str | None,
    generation: int,
    operation: WriteOperation,
) -> ErrorCode:
    """Note that a member is alive; tell it whether it has to join again."""
    error = generation_error(group, member_id, instance_id, generation)
    if error is not ErrorCode.NONE:
        return error
    restart_session(group.members[member_id], operation)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


@frozen
class Leaver:
    """A member that is to leave: by member id, or (an administrator) by instance id alone."""

    member_id: str
    instance_id: str | None


def leave(group: Group, leavers: tuple[Leaver, ...], operation: WriteOperation) -> list[ErrorCode]:
    """Remove members; return each one's outcome in the order asked."""
    outcomes = [_leave(group, leaver, operation) for leaver in leavers]
    if ErrorCode.NONE in outcomes:
        if group.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
            prepare(group, operation)
        else:
            complete_if_all_joined(group, operation)
    return outcomes


def _leave(group: Group, leaver: Leaver, operation: WriteOperation) -> ErrorCode:
    if not leaver.member_id:
        current_id = group.static_members.get(leaver.instance_id or "")
        if leaver.instance_id is None or current_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        remove_member(group, current_id, operation)
        return ErrorCode.NONE
    if leaver.member_id in group.pending_joins:
        group.remove(leaver.member_id)
        return ErrorCode.NONE
    error = membership_error(group, leaver.member_id, leaver.instance_id)
    if error is ErrorCode.NONE:
        remove_member(group, leaver.member_id, operation)
    return error
