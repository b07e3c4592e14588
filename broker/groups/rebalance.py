"""How a group gets from one generation to the next, and what happens when time runs out.

prepare ─► everybody joins, or the rebalance timeout ─► complete_join ─► SyncGroup of the leader

Rules and their order follow Apache Kafka's GroupMetadataManager (classic groups).
"""

from broker.groups.answers import joined, refused_join, refused_sync
from broker.groups.group import Group, InitialDelay
from broker.groups.member import Member
from broker.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from broker.groups.states import GroupState
from broker.groups.write_operation import WriteOperation
from wire.consumer_offsets import GroupMetadataKey, GroupMetadataValue
from wire.errors import ErrorCode

_SYNCED_STATES = (GroupState.STABLE, GroupState.COMPLETING_REBALANCE)
_RETRY_MS = 1_000


def rebalance_or_complete(group: Group, operation: WriteOperation) -> None:
    """Begin a rebalance, or see whether the one that runs is complete now."""
    if group.is_rebalancing_possible:
        prepare(group, operation)
    else:
        complete_if_all_joined(group, operation)


def prepare(group: Group, operation: WriteOperation) -> None:
    """Begin a rebalance: from now on members learn REBALANCE_IN_PROGRESS and have to join."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        _send_syncing_back(group, operation)
    group.pending_syncs.clear()
    group.sync_deadline_ms = None
    was_empty = group.state is GroupState.EMPTY
    group.move_to(GroupState.PREPARING_REBALANCE, operation.wall_ms)
    if was_empty:
        delay_ms = operation.settings.initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.initial = InitialDelay(delay_ms=delay_ms, remaining_ms=remaining_ms)
        group.join_deadline_ms = operation.now_ms + delay_ms
    elif group.has_all_joined or not group.members:
        complete_join(group, operation)
    else:
        group.join_deadline_ms = operation.now_ms + group.rebalance_timeout_ms


def complete_if_all_joined(group: Group, operation: WriteOperation) -> None:
    """Begin the next generation if nobody is missing; an empty group's delay is waited out."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.initial is None
        and group.has_all_joined
    ):
        complete_join(group, operation)


def complete_join(group: Group, operation: WriteOperation) -> None:
    """Begin the next generation with whoever has joined; static members keep their place."""
    group.initial = None
    group.join_deadline_ms = None
    for member in list(group.members.values()):
        if not member.has_joined and not member.is_static:
            group.remove(member.member_id)
    if not group.members:
        _write_empty_generation(group, operation)
    elif not group.elect_joined_leader():
        # Only silent static members are left; their sessions end this, or their return.
        group.join_deadline_ms = operation.now_ms + max(group.rebalance_timeout_ms, _RETRY_MS)
    else:
        _begin_generation(group, operation)


def _write_empty_generation(group: Group, operation: WriteOperation) -> None:
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.next_generation,
        protocol=None,
        leader=None,
        current_state_timestamp_ms=operation.wall_ms,
        members=(),
    )
    # Cleared when the record has been written; if that fails, it is tried again.
    group.join_deadline_ms = operation.now_ms + _RETRY_MS
    operation.records.append((GroupMetadataKey(group=group.group_id), value))


def _begin_generation(group: Group, operation: WriteOperation) -> None:
    group.generation = group.next_generation
    group.protocol_name = group.select_protocol()
    group.refresh_topics()
    group.move_to(GroupState.COMPLETING_REBALANCE, operation.wall_ms)
    group.pending_syncs = set(group.members)
    group.sync_deadline_ms = operation.now_ms + group.rebalance_timeout_ms
    for member in group.members.values():
        member.is_new = False
        restart_session(member, operation)
        if member.join_ticket is not None:
            operation.answer(member.join_ticket, joined(group, member))
            member.join_ticket = None


def restart_session(member: Member, operation: WriteOperation) -> None:
    """Count the session timeout from now: the member has just been heard."""
    member.deadline_ms = operation.now_ms + member.session_timeout_ms


def park_join(member: Member, ticket: int, operation: WriteOperation) -> None:
    """Let a JoinGroup wait for the next generation; an earlier one of the same member is over."""
    if member.join_ticket is not None:
        again = refused_join(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        operation.answer(member.join_ticket, again)
    member.join_ticket = ticket
    if member.is_new:
        member.deadline_ms = operation.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS


def remove_member(group: Group, member_id: str, operation: WriteOperation) -> None:
    """Take a member out; whatever it was waiting for is answered UNKNOWN_MEMBER_ID."""
    member = group.remove(member_id)
    if member is not None:
        dismiss(member, ErrorCode.UNKNOWN_MEMBER_ID, operation)


def dismiss(
    member: Member, error: ErrorCode, operation: WriteOperation, *, member_id: str = ""
) -> None:
    """Answer what a member waits for with an error."""
    if member.join_ticket is not None:
        operation.answer(member.join_ticket, refused_join(error, member_id))
        member.join_ticket = None
    if member.sync_ticket is not None:
        operation.answer(member.sync_ticket, refused_sync(error))
        member.sync_ticket = None


def after_removal(group: Group, operation: WriteOperation) -> None:
    """Go on without the members that were just removed."""
    if group.state in _SYNCED_STATES:
        prepare(group, operation)
    elif group.state is GroupState.PREPARING_REBALANCE and group.has_all_joined:
        complete_join(group, operation)


def on_time(group: Group, operation: WriteOperation) -> None:
    """Do everything that is due by now in this group."""
    _expire_pending_joins(group, operation)
    _expire_members(group, operation)
    if group.join_deadline_ms is not None and group.join_deadline_ms <= operation.now_ms:
        _on_join_deadline(group, operation)
    if group.sync_deadline_ms is not None and group.sync_deadline_ms <= operation.now_ms:
        _on_sync_deadline(group, operation)


def _expire_pending_joins(group: Group, operation: WriteOperation) -> None:
    late = [name for name, deadline in group.pending_joins.items() if deadline <= operation.now_ms]
    for member_id in late:
        group.remove(member_id)
    if late and group.state is GroupState.PREPARING_REBALANCE and group.has_all_joined:
        complete_join(group, operation)


def _expire_members(group: Group, operation: WriteOperation) -> None:
    silent = []
    for member in group.members.values():
        if member.deadline_ms is None or member.deadline_ms > operation.now_ms:
            continue
        if member.is_excused:
            member.deadline_ms = None  # it runs again when its answer is given
        else:
            silent.append(member.member_id)
    for member_id in silent:
        remove_member(group, member_id, operation)
    if silent:
        after_removal(group, operation)


def _on_join_deadline(group: Group, operation: WriteOperation) -> None:
    initial = group.initial
    if initial is None or not initial.member_added or initial.remaining_ms == 0:
        complete_join(group, operation)
        return
    # Somebody came during the delay, so there may be more to come: once more, within the limit.
    delay_ms = min(operation.settings.initial_rebalance_delay_ms, initial.remaining_ms)
    remaining_ms = max(initial.remaining_ms - initial.delay_ms, 0)
    group.initial = InitialDelay(delay_ms=delay_ms, remaining_ms=remaining_ms)
    group.join_deadline_ms = operation.now_ms + delay_ms


def _on_sync_deadline(group: Group, operation: WriteOperation) -> None:
    group.sync_deadline_ms = None
    late = group.pending_syncs & group.members.keys()
    if group.state not in _SYNCED_STATES or not late:
        return
    for member_id in sorted(late):
        remove_member(group, member_id, operation)
    prepare(group, operation)


def _send_syncing_back(group: Group, operation: WriteOperation) -> None:
    for member in group.members.values():
        member.assignment = b""
        if member.sync_ticket is not None:
            operation.answer(member.sync_ticket, refused_sync(ErrorCode.REBALANCE_IN_PROGRESS))
            member.sync_ticket = None
            restart_session(member, operation)
