"""The groups of one partition of `__consumer_offsets`: pure state, one operation at a time.

A caller begins a write operation, asks for one thing, appends the operation's records, replays them
here with no await in between, and gives the operation's answers once the records are safe. State
that is in no record (who is joining, whose session runs) dies with the coordinator, as in Kafka:
members find the next one and join again.
"""

from collections.abc import Collection, Iterable, Mapping
from heapq import heappop, heappush

from broker.groups import administration, membership, offsets, rebalance
from broker.groups.answers import refused_join, refused_sync
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.groups import ConsumerGroups
from broker.groups.consumer.heartbeats import Beating
from broker.groups.group import Group
from broker.groups.joining import Joining, join
from broker.groups.settings import GroupSettings
from broker.groups.states import GroupState
from broker.groups.write_operation import GroupRecord, Topics, WriteOperation
from wire.consumer_offsets import GroupMetadataKey, GroupMetadataValue, OffsetKey, OffsetValue
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from wire.messages.list_groups import ListedGroup
from wire.topic_partition import TopicPartition


class Shard:
    """All groups whose id hashes to one partition."""

    def __init__(self, settings: GroupSettings, topics: Topics) -> None:
        self.settings = settings
        self._topics = topics
        self.groups: dict[str, Group] = {}
        """The classic ones; no name is in `consumer` as well."""
        self.consumer = ConsumerGroups()
        self.offsets = offsets.Offsets()
        self._timers = _Timers()

    def begin(self, now_ms: int, wall_ms: int) -> WriteOperation:
        """Begin a write operation at this time."""
        return WriteOperation(
            settings=self.settings, now_ms=now_ms, wall_ms=wall_ms, topics=self._topics
        )

    def group(self, group_id: str) -> Group | ConsumerGroup | None:
        """Return a group of either protocol."""
        return self.consumer.groups.get(group_id) or self.groups.get(group_id)

    def _all_groups(self) -> list[Group | ConsumerGroup]:
        return [*self.groups.values(), *self.consumer.groups.values()]

    # Members

    def join(self, group_id: str, joining: Joining, operation: WriteOperation) -> None:
        """Decide on a JoinGroup; the answer may come in a later operation."""
        if self._is_in_use(group_id):
            self.consumer.join(group_id, joining, operation)
            return
        group = self.groups.get(group_id)
        if group_id in self.consumer.groups:  # it has no members, and takes their protocol
            self.consumer.delete(group_id, operation)
        elif group is None and joining.member_id:
            answer = refused_join(ErrorCode.UNKNOWN_MEMBER_ID, joining.member_id)
            operation.answer(joining.ticket, answer)
            return
        group = group or Group(group_id=group_id, state_wall_ms=operation.wall_ms)
        join(group, joining, operation)
        if group.members or group.pending_joins:  # else it was refused: nothing to keep
            self.groups.setdefault(group_id, group)
        self._timers.watch(group)

    def sync(self, group_id: str, syncing: membership.Syncing, operation: WriteOperation) -> None:
        """Decide on a SyncGroup; the answer may come in a later operation."""
        if self._is_in_use(group_id):
            self.consumer.sync(group_id, syncing, operation)
            return
        group = self.groups.get(group_id)
        if group is None:
            operation.answer(syncing.ticket, refused_sync(ErrorCode.UNKNOWN_MEMBER_ID))
            return
        membership.sync(group, syncing, operation)
        self._timers.watch(group)

    def heartbeat(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        operation: WriteOperation,
    ) -> ErrorCode:
        """Note a sign of life."""
        if self._is_in_use(group_id):
            who = member_id, instance_id, generation
            return self.consumer.classic_heartbeat(group_id, who, operation)
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = membership.heartbeat(group, member_id, instance_id, generation, operation)
        self._watch_session(group, member_id)
        return error

    def leave(
        self, group_id: str, leavers: tuple[membership.Leaver, ...], operation: WriteOperation
    ) -> list[ErrorCode]:
        """Remove members; return each one's outcome in the order asked."""
        if self._is_in_use(group_id):
            return self.consumer.leave(group_id, leavers, operation)
        group = self.groups.get(group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID for _ in leavers]
        outcomes = membership.leave(group, leavers, operation)
        self._timers.watch(group)
        return outcomes

    def consumer_heartbeat(
        self, beating: Beating, operation: WriteOperation
    ) -> ConsumerGroupHeartbeatResponse:
        """Decide on a ConsumerGroupHeartbeat."""
        return self.consumer.heartbeat(beating, self.groups.get(beating.group_id), operation)

    def _is_in_use(self, group_id: str) -> bool:
        """Whether a group of the new protocol has members, who may speak the classic one."""
        group = self.consumer.groups.get(group_id)
        return group is not None and bool(group.members)

    def _watch_session(self, group: Group, member_id: str) -> None:
        """Watch one session that has begun anew; cheaper than all that the group waits for."""
        member = group.members.get(member_id)
        if member is not None and member.deadline_ms is not None:
            self._timers.watch_at(group.group_id, member.deadline_ms)

    # Offsets

    def commit(
        self, committing: offsets.Committing, operation: WriteOperation
    ) -> offsets.CommitOutcome:
        """Decide on an OffsetCommit."""
        group = self.group(committing.group_id)
        outcome = offsets.commit(group, committing, operation)
        if isinstance(group, Group):
            self._watch_session(group, committing.member_id)
        return outcome

    def commit_in_transaction(
        self, committing: offsets.CommittingInTransaction, operation: WriteOperation
    ) -> offsets.CommitOutcome:
        """Decide on a TxnOffsetCommit; `replay_pending` takes what it writes."""
        return self.commit(committing, operation)

    def unstable(self, group_id: str) -> frozenset[TopicPartition]:
        """Return the partitions whose offset waits for the end of a transaction."""
        return self.offsets.unstable(group_id)

    def committed(self, group_id: str) -> Mapping[TopicPartition, OffsetValue]:
        """Return the offsets a group has committed; none for a group that does not exist."""
        return self.offsets.of(group_id)

    def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], operation: WriteOperation
    ) -> offsets.CommitOutcome:
        """Decide on an OffsetDelete."""
        return offsets.delete(self.group(group_id), self.offsets, partitions, operation)

    def forget(self, topics: Collection[str], operation: WriteOperation) -> None:
        """Forget all offsets in topics that have been deleted."""
        for group_id in self.offsets.group_ids():
            for topic, partition in self.offsets.of(group_id):
                if topic in topics:
                    operation.records.append(offsets.tombstone(group_id, topic, partition))

    # Administration

    def listed(self, chosen: administration.Filter) -> list[ListedGroup]:
        """Return the groups that a filter admits."""
        return [administration.listed(one) for one in self._all_groups() if chosen.admits(one)]

    def delete_group(self, group_id: str, operation: WriteOperation) -> ErrorCode:
        """Decide on the deletion of one group."""
        return administration.delete(self.group(group_id), self.offsets, operation)

    # Time

    @property
    def next_deadline_ms(self) -> int | None:
        """When `on_time` is to be called next; it may turn out that nothing is due then."""
        due = [self._timers.next_ms, self.consumer.next_deadline_ms]
        return min((due_ms for due_ms in due if due_ms is not None), default=None)

    def on_time(self, operation: WriteOperation) -> None:
        """Do everything that is due by now."""
        for group_id in self._timers.take_due(operation.now_ms):
            group = self.groups.get(group_id)
            if group is not None:
                rebalance.on_time(group, operation)
                self._timers.watch(group)
        for group_id in self.consumer.on_time(operation):
            self._rebalance_downgraded(group_id, operation)

    def _rebalance_downgraded(self, group_id: str, operation: WriteOperation) -> None:
        """Let the members of a group that is classic again join, and share what was another's."""
        group = self.groups.get(group_id)
        if group is not None and group.state is GroupState.STABLE:
            for member in group.members.values():
                rebalance.restart_session(member, operation)
            rebalance.prepare(group, operation)
            self._timers.watch(group)

    def expire_offsets(self, operation: WriteOperation, age_ms: int) -> None:
        """Forget offsets and groups whose retention is over; `age_ms` is the time it counts by."""
        for group in self._all_groups():
            if not self.offsets.unstable(group.group_id):
                administration.expire(group, self.offsets, operation, age_ms)

    # Replay

    def replay(self, record: GroupRecord) -> None:
        """Apply a record that has been written."""
        key, value = record
        if isinstance(key, OffsetKey):
            assert value is None or isinstance(value, OffsetValue)
            self.offsets.replay(key, value)
            if value is not None and self.group(key.group) is None:
                self.groups[key.group] = Group(group_id=key.group)
        elif isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue)
            self._replay_group(key.group, value)
        else:
            assert not isinstance(value, OffsetValue | GroupMetadataValue)
            self.consumer.replay(key, value)
            if value is not None:
                self._forget_classic(key.group)

    def replay_pending(self, producer_id: int, record: GroupRecord) -> None:
        """Apply a record of a transaction that is open: it counts when that commits."""
        key, value = record
        assert isinstance(key, OffsetKey), "groups themselves are never part of a transaction"
        assert isinstance(value, OffsetValue)
        self.offsets.replay_pending(producer_id, key, value)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply a marker: what the producer has committed counts now, or never."""
        for record in self.offsets.take_pending(producer_id):
            if is_commit:
                self.replay(record)

    def _replay_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        group = self.groups.get(group_id)
        if value is None:
            self._forget_classic(group_id)
        elif group is None:
            self.groups[group_id] = Group.restored(group_id, value)
        else:
            group.settle(value)

    def _forget_classic(self, group_id: str) -> None:
        gone = self.groups.pop(group_id, None)
        if gone is not None:
            gone.move_to(GroupState.DEAD, gone.state_wall_ms)

    def start_sessions(self, operation: WriteOperation) -> None:
        """Give every member of a freshly loaded shard one whole session to be heard of."""
        for group in self.groups.values():
            for member in group.members.values():
                rebalance.restart_session(member, operation)
            if len(group.members) > operation.settings.max_size:
                rebalance.prepare(group, operation)  # the limit is lower now, the last must go
            self._timers.watch(group)
        self.consumer.start_sessions(operation)

    def resign(self, operation: WriteOperation) -> None:
        """Send everybody who waits to the next coordinator; the shard is of no use after this."""
        for group in self.groups.values():
            for member in group.members.values():
                rebalance.dismiss(
                    member, ErrorCode.NOT_COORDINATOR, operation, member_id=member.member_id
                )
            group.move_to(GroupState.DEAD, operation.wall_ms)
        self.groups.clear()
        self.consumer.clear()


class _Timers:
    """When to look at which group next. An entry may be early, never late."""

    __slots__ = ("_heap", "_watched")

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._watched: dict[str, int] = {}

    @property
    def next_ms(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def watch(self, group: Group) -> None:
        due_ms = group.next_deadline_ms
        if due_ms is not None:
            self.watch_at(group.group_id, due_ms)

    def watch_at(self, group_id: str, due_ms: int) -> None:
        watched_ms = self._watched.get(group_id)
        if watched_ms is None or due_ms < watched_ms:
            self._watched[group_id] = due_ms
            heappush(self._heap, (due_ms, group_id))

    def take_due(self, now_ms: int) -> list[str]:
        due: list[str] = []
        while self._heap and self._heap[0][0] <= now_ms:
            due_ms, group_id = heappop(self._heap)
            if self._watched.get(group_id) == due_ms:
                del self._watched[group_id]
                due.append(group_id)
        return due
