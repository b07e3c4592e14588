"""How a group gets from one generation to the next, and what happens when time runs out.

prepare ─► everybody joins, or the rebalance timeout ─► complete_join ─► SyncGroup of the leader

Rules and their order follow Apache Kafka's GroupMetadataManager (classic groups).
"""

from broker.groups.answers import joined, refused_join, refused_sync
from broker.groups.group import Group, InitialDelay
from broker.groups.member import Member
from broker.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from broker.groups.states import GroupState
from broker.groups.turn import Turn
from wire.consumer_offsets import GroupMetadataKey, GroupMetadataValue
from wire.errors import ErrorCode

_SYNCED_STATES = (GroupState.STABLE, GroupState.COMPLETING_REBALANCE)
_RETRY_MS = 1_000


def rebalance_or_complete(group: Group, turn: Turn) -> None:
    """Begin a rebalance, or see whether the one that runs is complete now."""
    if group.is_rebalancing_possible:
        prepare(group, turn)
    else:
        complete_if_all_joined(group, turn)


def prepare(group: Group, turn: Turn) -> None:
    """Begin a rebalance: from now on members learn REBALANCE_IN_PROGRESS and have to join."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        _send_syncing_back(group, turn)
    group.pending_syncs.clear()
    group.sync_deadline_ms = None
    was_empty = group.state is GroupState.EMPTY
    group.move_to(GroupState.PREPARING_REBALANCE, turn.wall_ms)
    if was_empty:
        delay_ms = turn.settings.initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.initial = InitialDelay(delay_ms=delay_ms, remaining_ms=remaining_ms)
        group.join_deadline_ms = turn.now_ms + delay_ms
    elif group.has_all_joined or not group.members:
        complete_join(group, turn)
    else:
        group.join_deadline_ms = turn.now_ms + group.rebalance_timeout_ms


def complete_if_all_joined(group: Group, turn: Turn) -> None:
    """Begin the next generation if nobody is missing; an empty group's delay is waited out."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.initial is None
        and group.has_all_joined
    ):
        complete_join(group, turn)


def complete_join(group: Group, turn: Turn) -> None:
    """Begin the next generation with whoever has joined; static members keep their place."""
    group.initial = None
    group.join_deadline_ms = None
    for member in list(group.members.values()):
        if not member.has_joined and not member.is_static:
            group.remove(member.member_id)
    if not group.members:
        _write_empty_generation(group, turn)
    elif not group.elect_joined_leader():
        # Only silent static members are left; their sessions end this, or their return.
        group.join_deadline_ms = turn.now_ms + max(group.rebalance_timeout_ms, _RETRY_MS)
    else:
        _begin_generation(group, turn)


def _write_empty_generation(group: Group, turn: Turn) -> None:
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.next_generation,
        protocol=None,
        leader=None,
        current_state_timestamp_ms=turn.wall_ms,
        members=(),
    )
    # Cleared when the record has been written; if that fails, it is tried again.
    group.join_deadline_ms = turn.now_ms + _RETRY_MS
    turn.records.append((GroupMetadataKey(group=group.group_id), value))


def _begin_generation(group: Group, turn: Turn) -> None:
    group.generation = group.next_generation
    group.protocol_name = group.select_protocol()
    group.refresh_topics()
    group.move_to(GroupState.COMPLETING_REBALANCE, turn.wall_ms)
    group.pending_syncs = set(group.members)
    group.sync_deadline_ms = turn.now_ms + group.rebalance_timeout_ms
    for member in group.members.values():
        member.is_new = False
        restart_session(member, turn)
        if member.join_ticket is not None:
            turn.answer(member.join_ticket, joined(group, member))
            member.join_ticket = None


def restart_session(member: Member, turn: Turn) -> None:
    """Count the session timeout from now: the member has just been heard."""
    member.deadline_ms = turn.now_ms + member.session_timeout_ms


def park_join(member: Member, ticket: int, turn: Turn) -> None:
    """Let a JoinGroup wait for the next generation; an earlier one of the same member is over."""
    if member.join_ticket is not None:
        again = refused_join(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        turn.answer(member.join_ticket, again)
    member.join_ticket = ticket
    if member.is_new:
        member.deadline_ms = turn.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS


def remove_member(group: Group, member_id: str, turn: Turn) -> None:
    """Take a member out; whatever it was waiting for is answered UNKNOWN_MEMBER_ID."""
    member = group.remove(member_id)
    if member is not None:
        dismiss(member, ErrorCode.UNKNOWN_MEMBER_ID, turn)


def dismiss(member: Member, error: ErrorCode, turn: Turn, *, member_id: str = "") -> None:
    """Answer what a member waits for with an error."""
    if member.join_ticket is not None:
        turn.answer(member.join_ticket, refused_join(error, member_id))
        member.join_ticket = None
    if member.sync_ticket is not None:
        turn.answer(member.sync_ticket, refused_sync(error))
        member.sync_ticket = None


def after_removal(group: Group, turn: Turn) -> None:
    """Go on without the members that were just removed."""
    if group.state in _SYNCED_STATES:
        prepare(group, turn)
    elif group.state is GroupState.PREPARING_REBALANCE and group.has_all_joined:
        complete_join(group, turn)


def on_time(group: Group, turn: Turn) -> None:
    """Do everything that is due by now in this group."""
    _expire_pending_joins(group, turn)
    _expire_members(group, turn)
    if group.join_deadline_ms is not None and group.join_deadline_ms <= turn.now_ms:
        _on_join_deadline(group, turn)
    if group.sync_deadline_ms is not None and group.sync_deadline_ms <= turn.now_ms:
        _on_sync_deadline(group, turn)


def _expire_pending_joins(group: Group, turn: Turn) -> None:
    late = [name for name, deadline in group.pending_joins.items() if deadline <= turn.now_ms]
    for member_id in late:
        group.remove(member_id)
    if late and group.state is GroupState.PREPARING_REBALANCE and group.has_all_joined:
        complete_join(group, turn)


def _expire_members(group: Group, turn: Turn) -> None:
    silent = []
    for member in group.members.values():
        if member.deadline_ms is None or member.deadline_ms > turn.now_ms:
            continue
        if member.is_excused:
            member.deadline_ms = None  # it runs again when its answer is given
        else:
            silent.append(member.member_id)
    for member_id in silent:
        remove_member(group, member_id, turn)
    if silent:
        after_removal(group, turn)


def _on_join_deadline(group: Group, turn: Turn) -> None:
    initial = group.initial
    if initial is None or not initial.member_added or initial.remaining_ms == 0:
        complete_join(group, turn)
        return
    # Somebody came during the delay, so there may be more to come: once more, within the limit.
    delay_ms = min(turn.settings.initial_rebalance_delay_ms, initial.remaining_ms)
    remaining_ms = max(initial.remaining_ms - initial.delay_ms, 0)
    group.initial = InitialDelay(delay_ms=delay_ms, remaining_ms=remaining_ms)
    group.join_deadline_ms = turn.now_ms + delay_ms


def _on_sync_deadline(group: Group, turn: Turn) -> None:
    group.sync_deadline_ms = None
    late = group.pending_syncs & group.members.keys()
    if group.state not in _SYNCED_STATES or not late:
        return
    for member_id in sorted(late):
        remove_member(group, member_id, turn)
    prepare(group, turn)


def _send_syncing_back(group: Group, turn: Turn) -> None:
    for member in group.members.values():
        member.assignment = b""
        if member.sync_ticket is not None:
            turn.answer(member.sync_ticket, refused_sync(ErrorCode.REBALANCE_IN_PROGRESS))
            member.sync_ticket = None
            restart_session(member, turn)
