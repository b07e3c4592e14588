"""ConsumerGroupHeartbeat: a member joins, tells what has changed, hears of its partitions, leaves.

Rules and their order follow Apache Kafka's GroupMetadataManager (consumer groups).
"""

from dataclasses import replace
from typing import NamedTuple

from broker.groups.consumer.draft import NO_MATCHES, Draft, Matches
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_FOR_A_WHILE_EPOCH,
    Member,
    MemberState,
    written,
)
from broker.groups.consumer.partitions import NONE, Partitions, by_topic
from broker.groups.consumer.reconciling import reconcile
from broker.groups.consumer.sight import Hidden
from broker.groups.consumer.timers import Timer, TimerKind, Timers
from broker.groups.write_operation import WriteOperation
from wire.consumer_group_records import TargetKey, TargetValue
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from wire.values import frozen


@frozen
class Beating:
    """One ConsumerGroupHeartbeat; None is for what has not changed since the last one.

    `pattern` is empty where the member no longer subscribes by one. `matches` holds the topics
    that patterns match now: of the group as far as they are known, and of this request. `hidden`
    is what the member does not see of them, None where nothing is new of that.
    """

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""
    matches: Matches = NO_MATCHES
    hidden: Hidden | None = None

    @property
    def is_joining(self) -> bool:
        """Whether the member is not in the group yet."""
        return self.epoch == JOIN_EPOCH

    @property
    def is_leaving(self) -> bool:
        """Whether the member goes, for good or for a while."""
        return self.epoch in {LEAVE_EPOCH, LEAVE_FOR_A_WHILE_EPOCH}

    @property
    def is_full(self) -> bool:
        """Whether it tells everything: the member has lost an answer, and is told everything."""
        has_topics = self.topics is not None or self.pattern is not None
        tells_all = self.rebalance_timeout_ms != -1 and has_topics and self.owned is not None
        return self.is_joining or tells_all

    def tells_nothing_of(self, member: Member) -> bool:
        """Say whether all that it tells of the member itself is known: so it is with most beats."""
        return (
            self.topics is None
            and self.pattern is None
            and self.assignor is None
            and self.rack_id is None
            and self.rebalance_timeout_ms == -1
            and self.instance_id in {None, member.instance_id}
            and self.client_id == member.client_id
            and self.client_host == member.client_host
            and member.classic is None
        )

    def of(self, member: Member) -> Member:
        """Return the member with what it tells anew; it speaks the new protocol from now on."""
        if self.tells_nothing_of(member):
            return member
        return replace(
            member,
            instance_id=member.instance_id if self.instance_id is None else self.instance_id,
            rack_id=member.rack_id if self.rack_id is None else self.rack_id,
            rebalance_timeout_ms=(
                member.rebalance_timeout_ms
                if self.rebalance_timeout_ms == -1
                else self.rebalance_timeout_ms
            ),
            topics=member.topics if self.topics is None else tuple(sorted({*self.topics})),
            pattern=member.pattern if self.pattern is None else self.pattern,
            assignor=member.assignor if self.assignor is None else self.assignor,
            client_id=self.client_id,
            client_host=self.client_host,
            classic=None,
        )


class MemberRefusal(NamedTuple):
    """Why a member is refused, in an error and in words."""

    error: ErrorCode
    message: str


def refused(refusal: MemberRefusal) -> ConsumerGroupHeartbeatResponse:
    """Refuse a heartbeat."""
    return ConsumerGroupHeartbeatResponse(
        error_code=refusal.error,
        error_message=refusal.message,
        member_epoch=0,
        heartbeat_interval_ms=0,
    )


def beat(draft: Draft, beating: Beating, timers: Timers) -> ConsumerGroupHeartbeatResponse:
    """Decide on the heartbeat of a member that does not leave."""
    known = _member(draft, beating)
    if isinstance(known, MemberRefusal):
        return _give_up(draft, refused(known))
    told = beating.of(known)
    draft.put(told)
    has_changed = (told.topics, told.pattern or "") != (known.topics, known.pattern or "")
    if beating.hidden is not None:
        has_changed |= draft.hide(told.member_id, beating.hidden)
    draft.refresh(beating.matches, has_changed=has_changed)
    draft.assign()
    now = advance(draft, told, beating.owned, timers)
    if now is None:
        reason = f"member {known.member_id} is in a state that is not known here: join again"
        return _give_up(draft, refused(MemberRefusal(ErrorCode.FENCED_MEMBER_EPOCH, reason)))
    operation = draft.operation
    settings = operation.settings.consumer
    session = Timer(TimerKind.SESSION, beating.group_id, now.member_id)
    timers.set(session, operation.now_ms + settings.session_timeout_ms)
    return ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_id=now.member_id,
        member_epoch=now.epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        assignment=(
            _answered(now.assigned) if beating.is_full or now.assigned != known.assigned else None
        ),
    )


def advance(
    draft: Draft, member: Member, owned: Partitions | None, timers: Timers
) -> Member | None:
    """Bring a member one step nearer to its target; None for one that is to be fenced."""
    group = draft.group
    now = reconcile(
        member,
        group.target_epoch,
        group.target_of(member.member_id),
        is_free=lambda partition: group.owner_of(partition) is None,
        owned=owned,
    )
    if now is None or now == member:
        return now
    draft.put(now)
    watch_revocation(group.group_id, now, draft.operation, timers)
    return now


def watch_revocation(
    group_id: str, member: Member, operation: WriteOperation, timers: Timers
) -> None:
    """Give a member its rebalance timeout to give up what it has to, if there is something.

    Classic members have the time limits of JoinGroup and SyncGroup instead.
    """
    timer = Timer(TimerKind.REVOCATION, group_id, member.member_id)
    if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
        timers.set(timer, operation.now_ms + max(member.rebalance_timeout_ms, 0))
    else:
        timers.cancel(timer)


def _give_up(
    draft: Draft, answer: ConsumerGroupHeartbeatResponse
) -> ConsumerGroupHeartbeatResponse:
    """Refuse, and write nothing of what had been decided before."""
    draft.operation.records.clear()
    return answer


def _answered(partitions: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
        )
    )


def _member(draft: Draft, beating: Beating) -> Member | MemberRefusal:
    """Return the member that beats, or a new one for one that joins."""
    group = draft.group
    known = group.members.get(beating.member_id)
    is_full = len(group.members) >= draft.operation.settings.consumer.max_size
    comes_back = group.static_member(beating.instance_id) is not None
    if known is None and is_full and not comes_back:
        reason = f"group {group.group_id} has {len(group.members)} members, and takes no more"
        return MemberRefusal(ErrorCode.GROUP_MAX_SIZE_REACHED, reason)
    if beating.instance_id is not None:
        return _static_member(draft, beating, beating.instance_id)
    if known is None:
        if beating.is_joining:
            return Member(member_id=beating.member_id)
        return unknown(group, beating.member_id)
    return _epoch_refusal(known, beating) or known


def unknown(group: ConsumerGroup, member_id: str) -> MemberRefusal:
    """Say that there is no such member."""
    reason = f"member {member_id} is not a member of group {group.group_id}"
    return MemberRefusal(ErrorCode.UNKNOWN_MEMBER_ID, reason)


def _static_member(draft: Draft, beating: Beating, instance_id: str) -> Member | MemberRefusal:
    known = draft.group.static_member(instance_id)
    is_same = known is not None and known.member_id == beating.member_id
    if known is not None and is_same and not (known.is_away and beating.is_joining):
        return _epoch_refusal(known, beating) or known
    if not beating.is_joining:
        return instance_refusal(draft.group, known, beating.member_id, instance_id)
    if known is None:
        return draft.group.members.get(beating.member_id) or Member(member_id=beating.member_id)
    if not known.is_away and known.classic is None:
        reason = f"instance id {instance_id} is owned by member {known.member_id}"
        return MemberRefusal(ErrorCode.UNRELEASED_INSTANCE_ID, reason)
    return take_place(draft, known, beating.member_id)


def instance_refusal(
    group: ConsumerGroup, known: Member | None, member_id: str, instance_id: str
) -> MemberRefusal:
    """Say that an instance id is unknown, or another member's by now."""
    if known is None:
        reason = f"no member of group {group.group_id} has the instance id {instance_id}"
        return MemberRefusal(ErrorCode.UNKNOWN_MEMBER_ID, reason)
    reason = f"member {member_id} with instance id {instance_id} was fenced by {known.member_id}"
    return MemberRefusal(ErrorCode.FENCED_INSTANCE_ID, reason)


def take_place(draft: Draft, known: Member, member_id: str) -> Member:
    """Let a static member that was restarted take its own place, with its partitions."""
    group, target = draft.group, draft.group.target_of(known.member_id)
    now = replace(known, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    draft.remove(known.member_id)
    draft.put(now)
    value = TargetValue(topic_partitions=written(target))
    draft.write(TargetKey(group.group_id, member_id), value)
    return now


def _epoch_refusal(known: Member, beating: Beating) -> MemberRefusal | None:
    """Return why a member's epoch is refused.

    The former one counts if the member owns nothing beyond its assignment: it may have lost the
    answer that told it of the next one.
    """
    if beating.epoch == known.epoch:
        return None
    is_former = beating.epoch < known.epoch and beating.epoch == known.previous_epoch
    if is_former and beating.owned is not None and beating.owned <= known.assigned:
        return None
    than = "larger" if beating.epoch > known.epoch else "smaller"
    reason = f"the epoch {beating.epoch} of member {known.member_id} is {than} than {known.epoch}"
    return MemberRefusal(
        ErrorCode.FENCED_MEMBER_EPOCH, f"{reason}: abandon all partitions and join"
    )


def leave(draft: Draft, beating: Beating) -> Member | MemberRefusal:
    """Return the member that leaves for good, for the caller to remove.

    One that leaves for a while is written here, and its partitions wait for it until its session
    is over.
    """
    group = draft.group
    if beating.instance_id is None:
        known = group.members.get(beating.member_id)
        return unknown(group, beating.member_id) if known is None else known
    known = group.static_member(beating.instance_id)
    if known is None or known.member_id != beating.member_id:
        return instance_refusal(group, known, beating.member_id, beating.instance_id)
    if beating.epoch == LEAVE_FOR_A_WHILE_EPOCH:
        draft.put(replace(known, epoch=LEAVE_FOR_A_WHILE_EPOCH, revoking=NONE))
    return known


def left(beating: Beating) -> ConsumerGroupHeartbeatResponse:
    """Answer a member that has left."""
    return ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_id=beating.member_id,
        member_epoch=beating.epoch,
        heartbeat_interval_ms=0,
    )
