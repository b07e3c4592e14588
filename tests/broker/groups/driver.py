"""Drives one shard by hand: plain integer time, an in-memory log, answers by ticket."""

import re
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from broker.groups.consumer.draft import Matches
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.heartbeats import Beating
from broker.groups.consumer.member import JOIN_EPOCH
from broker.groups.consumer.partitions import Partitions
from broker.groups.consumer.sight import Hidden, SightBasis
from broker.groups.joining import Joining
from broker.groups.member import Protocols
from broker.groups.membership import Leaver, Syncing
from broker.groups.offsets import CommitOutcome, Committing, OffsetToCommit
from broker.groups.records import LatestRecords, UnreadableRecord, batches
from broker.groups.settings import GroupSettings
from broker.groups.shard import Shard
from broker.groups.write_operation import WriteOperation
from broker.metadata_cache import MetadataCache, PartitionView
from wire.consumer_offsets import OffsetValue
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from wire.messages.join_group import JoinGroupResponse
from wire.primitives import pack_int16, pack_int32, pack_string
from wire.record_batch import iterate_batches
from wire.topic_partition import TopicPartition

GROUP = "readers"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
WALL_MS = 1_700_000_000_000
"""The time of day when the driver's clock stands at 0."""
SETTINGS = GroupSettings(initial_rebalance_delay_ms=3_000)


def subscription(*topics: str) -> bytes:
    """Return a consumer's metadata, version 0."""
    named = b"".join(pack_string(topic) for topic in topics)
    return pack_int16(0) + pack_int32(len(topics)) + named + pack_int32(-1)


RANGE: Protocols = (("range", subscription("orders")),)


class Driver:
    """One shard, its log and its clock."""

    def __init__(self, settings: GroupSettings = SETTINGS, *, now_ms: int = 0) -> None:
        self.settings = settings
        self.topics = MetadataCache("cluster")
        self.shard = Shard(settings, self.topics)
        self.now_ms = now_ms
        self.answers: dict[int, Any] = {}
        self.log: list[bytes] = []
        self.is_broken = False
        """Whether writing fails, as on a full disk."""
        self._last_ticket = 0
        self._last_name = 0

    # Time

    def advance_to(self, now_ms: int) -> None:
        """Let time pass, with every timer at its own moment."""
        while (due_ms := self.shard.next_deadline_ms) is not None and due_ms <= now_ms:
            self.now_ms = max(self.now_ms, due_ms)
            operation = self._begin()
            self.shard.on_time(operation)
            self._conclude(operation)
        self.now_ms = now_ms

    def advance(self, ms: int) -> None:
        """Let so much time pass."""
        self.advance_to(self.now_ms + ms)

    # Requests

    def join(
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        session_timeout_ms: int = SESSION_MS,
        rebalance_timeout_ms: int = REBALANCE_MS,
        must_return: bool = False,
        may_skip_assignment: bool = True,
        group_id: str = GROUP,
    ) -> int:
        """Send a JoinGroup; return its ticket."""
        self._last_name += 1
        joining = Joining(
            ticket=self._ticket(),
            member_id=member_id,
            instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=protocols,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            client_id="client",
            client_host="/127.0.0.1",
            fresh_member_id=f"{instance_id or 'client'}-{self._last_name}",
            must_return=must_return,
            may_skip_assignment=may_skip_assignment,
        )
        operation = self._begin()
        self.shard.join(group_id, joining, operation)
        self._conclude(operation)
        return joining.ticket

    def sync(
        self,
        joined: JoinGroupResponse,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_name: str | None = None,
        group_id: str = GROUP,
    ) -> int:
        """Send the SyncGroup that follows a JoinGroup's answer; return its ticket."""
        syncing = Syncing(
            ticket=self._ticket(),
            member_id=joined.member_id,
            instance_id=instance_id,
            generation=joined.generation_id,
            protocol_type=joined.protocol_type,
            protocol_name=protocol_name or joined.protocol_name,
            assignments=assignments or {},
        )
        operation = self._begin()
        self.shard.sync(group_id, syncing, operation)
        self._conclude(operation)
        return syncing.ticket

    def heartbeat(
        self, member_id: str, generation: int, *, instance_id: str | None = None
    ) -> ErrorCode:
        """Send a Heartbeat; return its answer."""
        operation = self._begin()
        error = self.shard.heartbeat(GROUP, member_id, instance_id, generation, operation)
        self._conclude(operation)
        return error

    def beat(
        self,
        member_id: str = "m",
        epoch: int = 0,
        *,
        topics: Collection[str] | None = None,
        owned: Partitions | None = None,
        rebalance_timeout_ms: int = -1,
        **told: Any,
    ) -> ConsumerGroupHeartbeatResponse:
        """Send a ConsumerGroupHeartbeat; return its answer. One that joins tells what it must.

        Patterns are held against the topics as the coordinator does it.
        """
        if epoch == JOIN_EPOCH:
            topics = ("orders",) if topics is None and "pattern" not in told else topics
            owned = frozenset() if owned is None else owned
            if rebalance_timeout_ms == -1:
                rebalance_timeout_ms = REBALANCE_MS
        group = self.shard.consumer.groups.get(GROUP)
        patterns = {told.get("pattern") or ""} | (group.patterns.keys() if group else set())
        matched = {
            pattern: tuple(filter(re.compile(pattern).fullmatch, sorted(self.topics.topics())))
            for pattern in patterns - {""}
        }
        beating = Beating(
            group_id=GROUP,
            member_id=member_id,
            epoch=epoch,
            topics=None if topics is None else tuple(topics),
            owned=owned,
            rebalance_timeout_ms=rebalance_timeout_ms,
            client_id="client",
            client_host="/127.0.0.1",
            matches=Matches(topics=matched, changes=self.topics.changes),
            hidden=self._hidden(member_id, told.get("pattern")),
            **told,
        )
        operation = self._begin()
        answer = self.shard.consumer_heartbeat(beating, operation)
        self._conclude(operation)
        return answer

    def _hidden(self, member_id: str, pattern: str | None) -> Hidden | None:
        """Let everybody see all topics."""
        group = self.shard.consumer.groups.get(GROUP)
        member = None if group is None else group.members.get(member_id)
        if pattern is None and member is not None:
            pattern = member.pattern
        return Hidden(SightBasis(pattern, self.topics.changes, 0), frozenset()) if pattern else None

    def put_topic(self, name: str, partition_count: int, *, topic_id: int = 1) -> None:
        """Let a topic be there, with so many partitions."""
        views = [
            PartitionView(index=index, leader=0, leader_epoch=0, replicas=(0,), isr=(0,))
            for index in range(partition_count)
        ]
        self.topics.put_partitions(name, UUID(int=topic_id), views)

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The group of the new protocol."""
        return self.shard.consumer.groups[GROUP]

    def leave(self, *leavers: str | Leaver) -> list[ErrorCode]:
        """Send a LeaveGroup; return each member's outcome."""
        operation = self._begin()
        named = tuple(
            Leaver(member_id=leaver, instance_id=None) if isinstance(leaver, str) else leaver
            for leaver in leavers
        )
        outcomes = self.shard.leave(GROUP, named, operation)
        self._conclude(operation)
        return outcomes

    def commit(
        self,
        offsets: Mapping[tuple[str, int], int],
        *,
        member_id: str = "",
        generation: int = -1,
        instance_id: str | None = None,
        metadata: str | None = "",
        retention_ms: int = -1,
        group_id: str = GROUP,
    ) -> CommitOutcome:
        """Send an OffsetCommit; return its outcome."""
        committing = Committing(
            group_id=group_id,
            member_id=member_id,
            instance_id=instance_id,
            generation=generation,
            positions=tuple(
                OffsetToCommit(
                    topic=topic, partition=index, offset=offset, leader_epoch=-1, metadata=metadata
                )
                for (topic, index), offset in offsets.items()
            ),
            retention_ms=retention_ms,
        )
        operation = self._begin()
        outcome = self.shard.commit(committing, operation)
        self._conclude(operation)
        return outcome

    def delete_offsets(self, *partitions: tuple[str, int]) -> CommitOutcome:
        """Send an OffsetDelete; return its outcome."""
        operation = self._begin()
        outcome = self.shard.delete_offsets(
            GROUP, [TopicPartition(*name) for name in partitions], operation
        )
        self._conclude(operation)
        return outcome

    def delete_group(self, group_id: str = GROUP) -> ErrorCode:
        """Send a DeleteGroups for one group; return its outcome."""
        operation = self._begin()
        error = self.shard.delete_group(group_id, operation)
        self._conclude(operation)
        return error

    def expire_offsets(self) -> None:
        """Look for offsets whose retention is over."""
        operation = self._begin()
        self.shard.expire_offsets(operation, operation.wall_ms)
        self._conclude(operation)

    def resign(self) -> None:
        """Stop coordinating."""
        operation = self._begin()
        self.shard.resign(operation)
        self._conclude(operation)

    # What came of it

    def joined(self, ticket: int) -> JoinGroupResponse:
        """Return the answer of a JoinGroup that succeeded."""
        answer = self.answers[ticket]
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code == ErrorCode.NONE
        return answer

    def error(self, ticket: int) -> ErrorCode:
        """Return how a JoinGroup or SyncGroup was answered."""
        return ErrorCode(self.answers[ticket].error_code)

    @property
    def unanswered(self) -> set[int]:
        """Return the tickets that have no answer yet."""
        return set(range(1, self._last_ticket + 1)) - self.answers.keys()

    def waits(self, *tickets: int) -> bool:
        """Return whether none of these requests has been answered."""
        return not any(ticket in self.answers for ticket in tickets)

    def committed(self, group_id: str = GROUP) -> dict[tuple[str, int], int]:
        """Return the committed offsets of a group."""
        return {name: value.offset for name, value in self.committed_values(group_id).items()}

    def committed_values(self, group_id: str = GROUP) -> dict[tuple[str, int], OffsetValue]:
        """Return the committed offsets with all that was stored beside them."""
        committed = self.shard.committed(group_id)
        return {(name.topic, name.partition): value for name, value in committed.items()}

    # Whole stories

    def stable_group(self, count: int = 1, **joining: Any) -> list[JoinGroupResponse]:
        """Bring members into a new group and to a first assignment; the first one leads."""
        tickets = [self.join(**joining) for _ in range(count)]
        self.advance(2 * self.settings.initial_rebalance_delay_ms)
        members = [self.joined(ticket) for ticket in tickets]
        self.assign(members)
        return members

    def assign(self, members: list[JoinGroupResponse]) -> dict[str, bytes]:
        """Let everybody sync, the leader last; each member is assigned its own id."""
        given = {member.member_id: member.member_id.encode() for member in members}
        ordered = sorted(members, key=lambda member: member.member_id == member.leader)
        tickets = {
            member.member_id: self.sync(member, given if member.leader == member.member_id else {})
            for member in ordered
        }
        return {name: self.answers[ticket].assignment for name, ticket in tickets.items()}

    def restarted(self) -> "Driver":
        """Return a coordinator that has loaded this one's log."""
        successor = Driver(self.settings, now_ms=self.now_ms)
        successor.topics = self.topics
        successor.shard = Shard(self.settings, self.topics)
        successor.log = list(self.log)
        latest = LatestRecords()
        for written in self.log:
            for header, batch in iterate_batches(written):
                latest.add(header, batch)
        for record in latest.decoded():
            assert not isinstance(record, UnreadableRecord), record.reason
            successor.shard.replay(record)
        operation = successor._begin()
        successor.shard.start_sessions(operation)
        successor._conclude(operation)
        successor._last_name = self._last_name
        return successor

    def _ticket(self) -> int:
        self._last_ticket += 1
        return self._last_ticket

    def _begin(self) -> WriteOperation:
        return self.shard.begin(self.now_ms, WALL_MS + self.now_ms)

    def _conclude(self, operation: WriteOperation) -> None:
        if self.is_broken and operation.records:
            return
        for batch, records in batches(operation.records, operation.wall_ms):
            self.log.append(batch)
            for record in records:
                self.shard.replay(record)
        for answer in operation.answers:
            assert answer.ticket not in self.answers, "answered twice"
            self.answers[answer.ticket] = answer.response
