"""All groups of the new protocol of one partition of `__consumer_offsets`, and their time."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker.groups.consumer import classic_members
from broker.groups.consumer.conversion import downgraded, sent_back, taken_over
from broker.groups.consumer.draft import NO_MATCHES, Draft, tombstones
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.heartbeats import (
    Beating,
    MemberRefusal,
    beat,
    leave,
    left,
    refused,
    watch_revocation,
)
from broker.groups.consumer.member import LEAVE_EPOCH, Member, MemberState
from broker.groups.consumer.timers import Timer, TimerKind, Timers
from broker.groups.group import Group
from broker.groups.joining import Joining
from broker.groups.membership import Leaver, Syncing
from broker.groups.write_operation import WriteOperation
from wire.consumer_group_records import GroupKey, Key, Value
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

RETRY_MS: Final = 1_000


class ConsumerGroups:
    """Holds the groups. They change only by replaying records; deadlines are in no record."""

    def __init__(self) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._timers = Timers()

    @property
    def groups(self) -> Mapping[str, ConsumerGroup]:
        """A read-only view of all groups by id."""
        return MappingProxyType(self._groups)

    # Members of the new protocol

    def heartbeat(
        self, beating: Beating, classic: Group | None, operation: WriteOperation
    ) -> ConsumerGroupHeartbeatResponse:
        """Decide on a ConsumerGroupHeartbeat; `classic` is the classic group of that name."""
        draft = self._draft(beating, classic, operation)
        if isinstance(draft, MemberRefusal):
            return refused(draft)
        if not beating.is_leaving:
            answer = beat(draft, beating, self._timers)
            if classic is not None and answer.error_code == ErrorCode.NONE:
                sent_back(classic, operation, self._timers)
            return answer
        known = leave(draft, beating)
        if isinstance(known, MemberRefusal):
            return refused(known)
        if beating.epoch == LEAVE_EPOCH:
            self._fence(draft, known)
        return left(beating)

    def _draft(
        self, beating: Beating, classic: Group | None, operation: WriteOperation
    ) -> Draft | MemberRefusal:
        group = self._groups.get(beating.group_id)
        if group is not None:
            return Draft(group, operation)
        if not beating.is_joining:
            kind = "not found" if classic is None else "not a consumer group"
            return MemberRefusal(
                ErrorCode.GROUP_ID_NOT_FOUND, f"group {beating.group_id} is {kind}"
            )
        if classic is not None:
            return taken_over(classic, operation)
        return Draft(ConsumerGroup(group_id=beating.group_id), operation)

    def _fence(self, draft: Draft, *gone: Member) -> None:
        """Remove members; what they owned is free, and the next heartbeat assigns anew."""
        if not gone or downgraded(draft, gone, self._timers):
            return
        for member in gone:
            draft.remove(member.member_id)
        draft.refresh(NO_MATCHES, has_changed=True)

    # Classic members

    def join(self, group_id: str, joining: Joining, operation: WriteOperation) -> None:
        """Decide on a JoinGroup in a group that has members."""
        classic_members.join(Draft(self._groups[group_id], operation), joining, self._timers)

    def sync(self, group_id: str, syncing: Syncing, operation: WriteOperation) -> None:
        """Decide on a SyncGroup."""
        classic_members.sync(self._groups[group_id], syncing, operation, self._timers)

    def classic_heartbeat(
        self, group_id: str, who: tuple[str, str | None, int], operation: WriteOperation
    ) -> ErrorCode:
        """Decide on a Heartbeat of `who`: a member id, an instance id and a generation."""
        return classic_members.heartbeat(self._groups[group_id], who, operation, self._timers)

    def leave(
        self, group_id: str, leavers: tuple[Leaver, ...], operation: WriteOperation
    ) -> list[ErrorCode]:
        """Decide on a LeaveGroup; members of the new protocol are unknown to it."""
        draft = Draft(self._groups[group_id], operation)
        found = [classic_members.leaver(draft.group, one) for one in leavers]
        gone = {one.member_id: one for one in found if isinstance(one, Member)}
        self._fence(draft, *gone.values())
        return [ErrorCode.NONE if isinstance(one, Member) else one for one in found]

    # Administration

    def delete(self, group_id: str, operation: WriteOperation) -> None:
        """Delete a group that has no members."""
        tombstones(self._groups[group_id], operation)

    # Time

    @property
    def next_deadline_ms(self) -> int | None:
        """When `on_time` is to be called next; it may turn out that nothing is due then."""
        return self._timers.next_ms

    def on_time(self, operation: WriteOperation) -> list[str]:
        """Fence who is late; return the groups that have become classic and have to rebalance."""
        fresh: list[str] = []
        late: dict[str, dict[str, Member]] = {}
        for timer in self._timers.take_due(operation.now_ms):
            if timer.kind is TimerKind.DOWNGRADE:
                fresh.append(timer.group_id)
                continue
            group = self._groups.get(timer.group_id)
            member = None if group is None else group.members.get(timer.member_id)
            if member is None:
                continue
            still_owns = member.state is MemberState.UNREVOKED_PARTITIONS
            if timer.kind is not TimerKind.REVOCATION or still_owns:
                late.setdefault(timer.group_id, {})[timer.member_id] = member
        for group_id, members in late.items():
            self._fence(Draft(self._groups[group_id], operation), *members.values())
            for member_id in members:  # in case that it cannot be written
                again = Timer(TimerKind.SESSION, group_id, member_id)
                self._timers.set(again, operation.now_ms + RETRY_MS)
        return fresh

    def start_sessions(self, operation: WriteOperation) -> None:
        """Give every member of a freshly loaded shard a whole session to be heard of."""
        for group in self._groups.values():
            for member in group.members.values():
                session_ms = operation.settings.consumer.session_timeout_ms
                if member.classic is not None:
                    session_ms = member.classic.session_timeout_ms
                session = Timer(TimerKind.SESSION, group.group_id, member.member_id)
                self._timers.set(session, operation.now_ms + session_ms)
                watch_revocation(group.group_id, member, operation, self._timers)

    # Replay

    def replay(self, key: Key, value: Value | None) -> None:
        """Apply a record that has been written."""
        group = self._groups.get(key.group)
        if value is None and (group is None or isinstance(key, GroupKey)):
            self._groups.pop(key.group, None)
            return
        if group is None:
            group = self._groups[key.group] = ConsumerGroup(group_id=key.group)
        group.replay(key, value)

    def forget(self, group_id: str) -> None:
        """Forget a group that is a classic one by now."""
        self._groups.pop(group_id, None)

    def clear(self) -> None:
        """Forget everything: another broker coordinates."""
        self._groups.clear()
