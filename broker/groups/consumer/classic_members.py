"""Members that still speak the classic protocol in a group of the new one.

They get their partitions by JoinGroup and SyncGroup, and hear by Heartbeat that they have to join
again: when the group's epoch has grown, when they have to give up partitions, and when what they
lack is free. Source of the rules: KIP-848; Kafka's GroupMetadataManager.
"""

from dataclasses import replace

from broker.groups.answers import refused_join, refused_sync
from broker.groups.consumer.conversion import by_id, common_protocol, encoded_assignment
from broker.groups.consumer.draft import NO_MATCHES, Draft
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.heartbeats import advance, take_place
from broker.groups.consumer.member import Member, MemberState
from broker.groups.consumer.timers import Timer, TimerKind, Timers
from broker.groups.joining import Joining
from broker.groups.membership import Leaver, Syncing
from broker.groups.subscription import (
    CONSUMER_PROTOCOL_TYPE,
    Subscription,
    decode_subscription,
)
from broker.groups.write_operation import WriteOperation
from wire.consumer_group_records import ClassicMember, ClassicProtocol
from wire.errors import ErrorCode
from wire.messages.join_group import JoinGroupResponse
from wire.messages.sync_group import SyncGroupResponse
from wire.primitives import MalformedMessage


def join(draft: Draft, joining: Joining, timers: Timers) -> None:
    """Decide on a JoinGroup; nobody waits for others, so it is answered at once."""
    answer = _joined(draft, joining, timers)
    if answer.error_code != ErrorCode.NONE:
        draft.operation.records.clear()
    draft.operation.answer(joining.ticket, answer)


def _joined(draft: Draft, joining: Joining, timers: Timers) -> JoinGroupResponse:
    operation, name = draft.operation, draft.group.group_id
    error = _join_error(draft.group, joining, operation)
    if error is not ErrorCode.NONE:
        return refused_join(error, joining.member_id)
    if joining.must_return and not joining.member_id and joining.instance_id is None:
        return refused_join(ErrorCode.MEMBER_ID_REQUIRED, joining.fresh_member_id)
    known = _member(draft, joining)
    if isinstance(known, ErrorCode):
        return refused_join(known, joining.member_id)
    try:
        subscription = decode_subscription(joining.protocols[0][1])
    except MalformedMessage:
        return refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, joining.member_id)
    told = _told(known, joining, subscription)
    draft.put(told)
    has_changed = (told.topics, told.pattern) != (known.topics, known.pattern)
    draft.refresh(NO_MATCHES, has_changed=has_changed)
    draft.assign()
    owned = by_id(subscription.owned, operation.topics)
    now = advance(draft, told, owned, timers)
    if now is None:
        return refused_join(ErrorCode.UNKNOWN_MEMBER_ID, joining.member_id)
    timers.cancel(Timer(TimerKind.JOIN, name, now.member_id))
    _restart_session(name, now, operation, timers)
    sync = Timer(TimerKind.SYNC, name, now.member_id)
    timers.set(sync, operation.now_ms + joining.rebalance_timeout_ms)
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=now.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=joining.protocols[0][0],
        leader="",
        member_id=now.member_id,
        members=(),
    )


def _join_error(group: ConsumerGroup, joining: Joining, operation: WriteOperation) -> ErrorCode:
    is_known = (
        joining.member_id in group.members or group.static_member(joining.instance_id) is not None
    )
    if not is_known and len(group.members) >= operation.settings.consumer.max_size:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    classic = [one for one in group.members.values() if one.classic is not None]
    supports = [name for name, _ in joining.protocols]
    fits = bool(supports) and joining.protocol_type == CONSUMER_PROTOCOL_TYPE
    if fits and classic:
        newcomer = _told(Member(member_id=""), joining, Subscription(topics=()))
        fits = common_protocol([newcomer, *classic]) is not None
    return ErrorCode.NONE if fits else ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def _member(draft: Draft, joining: Joining) -> Member | ErrorCode:
    group = draft.group
    member_id = joining.member_id or joining.fresh_member_id
    if joining.instance_id is None:
        return group.members.get(member_id) or Member(member_id=member_id)
    known = group.static_member(joining.instance_id)
    if joining.member_id:
        return checked(group, joining.member_id, joining.instance_id)
    return Member(member_id=member_id) if known is None else take_place(draft, known, member_id)


def _told(known: Member, joining: Joining, subscription: Subscription) -> Member:
    return replace(
        known,
        instance_id=joining.instance_id,
        rack_id=subscription.rack_id,
        client_id=joining.client_id,
        client_host=joining.client_host,
        topics=tuple(sorted({*subscription.topics})),
        pattern=None,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        assignor=None,
        classic=ClassicMember(
            session_timeout_ms=joining.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in joining.protocols
            ),
        ),
    )


def checked(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member | ErrorCode:
    """Return a member by its id; a static one under a former id is fenced, not unknown."""
    if instance_id is not None:
        known = group.static_member(instance_id)
        if known is not None and known.member_id != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    else:
        known = group.members.get(member_id)
    return ErrorCode.UNKNOWN_MEMBER_ID if known is None else known


def _checked_classic(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> Member | ErrorCode:
    known = checked(group, member_id, instance_id)
    if isinstance(known, ErrorCode):
        return known
    if known.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return known if known.epoch == generation else ErrorCode.ILLEGAL_GENERATION


def sync(group: ConsumerGroup, syncing: Syncing, operation: WriteOperation, timers: Timers) -> None:
    """Give a classic member its partitions."""
    operation.answer(syncing.ticket, _synced(group, syncing, operation, timers))


def _synced(
    group: ConsumerGroup, syncing: Syncing, operation: WriteOperation, timers: Timers
) -> SyncGroupResponse:
    known = _checked_classic(group, syncing.member_id, syncing.instance_id, syncing.generation)
    if isinstance(known, ErrorCode):
        return refused_sync(known)
    assert known.classic is not None
    first = known.classic.supported_protocols[0].name
    if syncing.protocol_type not in {None, CONSUMER_PROTOCOL_TYPE} or (
        syncing.protocol_name not in {None, first}
    ):
        return refused_sync(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # One that gives up partitions has joined already, and joins again when it has.
    if group.epoch > known.epoch and known.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_join(group.group_id, known, operation, timers)
        return refused_sync(ErrorCode.REBALANCE_IN_PROGRESS)
    timers.cancel(Timer(TimerKind.SYNC, group.group_id, known.member_id))
    _restart_session(group.group_id, known, operation, timers)
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=syncing.protocol_type,
        protocol_name=syncing.protocol_name,
        assignment=encoded_assignment(known, operation.topics),
    )


def heartbeat(
    group: ConsumerGroup,
    who: tuple[str, str | None, int],
    operation: WriteOperation,
    timers: Timers,
) -> ErrorCode:
    """Note that a classic member is alive; tell it whether it has to join again.

    `who` is its id, its instance id and its generation.
    """
    known = _checked_classic(group, *who)
    if isinstance(known, ErrorCode):
        return known
    _restart_session(group.group_id, known, operation, timers)
    if known.epoch < group.epoch or known.state is MemberState.UNREVOKED_PARTITIONS:
        must_join = True
    else:
        lacking = group.target_of(known.member_id) - known.assigned
        is_short = known.state is MemberState.UNRELEASED_PARTITIONS
        must_join = is_short and all(group.owner_of(partition) is None for partition in lacking)
    if not must_join:
        return ErrorCode.NONE
    _expect_join(group.group_id, known, operation, timers)
    return ErrorCode.REBALANCE_IN_PROGRESS


def leaver(group: ConsumerGroup, leaving: Leaver) -> Member | ErrorCode:
    """Return the classic member that LeaveGroup names, by an instance id alone as well."""
    if leaving.member_id:
        known = checked(group, leaving.member_id, leaving.instance_id)
    else:
        known = group.static_member(leaving.instance_id) or ErrorCode.UNKNOWN_MEMBER_ID
    is_other = not isinstance(known, ErrorCode) and known.classic is None
    return ErrorCode.UNKNOWN_MEMBER_ID if is_other else known


def _restart_session(
    group_id: str, member: Member, operation: WriteOperation, timers: Timers
) -> None:
    assert member.classic is not None
    session = Timer(TimerKind.SESSION, group_id, member.member_id)
    timers.set(session, operation.now_ms + member.classic.session_timeout_ms)


def _expect_join(group_id: str, member: Member, operation: WriteOperation, timers: Timers) -> None:
    timer = Timer(TimerKind.JOIN, group_id, member.member_id)
    if not timers.is_set(timer):
        timers.set(timer, operation.now_ms + max(member.rebalance_timeout_ms, 0))
