"""One classic group: its members, its generation and its timers. No decisions, only their parts.

Invariants:
- `leader_id` names a member, or is None when there are none;
- `static_members` holds exactly the members that have an instance id;
- a pending member has been given an id and is not a member yet;
- in Stable and CompletingRebalance every member supports `protocol_name`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from broker.groups.member import Member, Protocols
from broker.groups.states import ALLOWED, GroupState
from broker.groups.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from wire.consumer_offsets import NO_TIMESTAMP, GroupMember, GroupMetadataValue

_INT_MAX: Final = 2**31 - 1


@dataclass(slots=True, kw_only=True)
class InitialDelay:
    """An empty group waits for more members before its first generation, each time a bit longer."""

    delay_ms: int
    remaining_ms: int
    member_added: bool = False


@dataclass(slots=True, kw_only=True)
class Group:
    """The state of one group; times on the clock of deadlines unless they are called wall."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    state_wall_ms: int = NO_TIMESTAMP
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending_joins: dict[str, int] = field(default_factory=dict)
    """Ids that were given out and not used yet, with the time until which they are kept."""
    pending_syncs: set[str] = field(default_factory=set)
    """Members of this generation that have not sent SyncGroup yet."""
    initial: InitialDelay | None = None
    """Set while the first rebalance of an empty group waits for more members."""
    join_deadline_ms: int | None = None
    sync_deadline_ms: int | None = None
    topics: frozenset[str] | None = None
    """What the members subscribe to; None when unknown (no consumers, or unreadable)."""

    def move_to(self, state: GroupState, wall_ms: int) -> None:
        """Move to a state that the table allows; anything else is our own bug."""
        assert state in ALLOWED[self.state], f"{self.group_id}: {self.state} -> {state}"
        self.state = state
        self.state_wall_ms = wall_ms

    @property
    def next_generation(self) -> int:
        """The number of the next generation; they begin anew at the end of an int32."""
        return self.generation + 1 if self.generation < _INT_MAX else 0

    @property
    def is_rebalancing_possible(self) -> bool:
        """Whether a rebalance may begin from here."""
        return GroupState.PREPARING_REBALANCE in ALLOWED[self.state]

    @property
    def is_consumer_group(self) -> bool:
        """Whether the members are consumers (and not, say, Kafka Connect workers)."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def has_other_members(self) -> bool:
        """Whether there are members and they are no consumers."""
        return self.state is not GroupState.EMPTY and not self.is_consumer_group

    @property
    def has_all_joined(self) -> bool:
        """Whether everybody we know of waits for the next generation."""
        return not self.pending_joins and all(m.has_joined for m in self.members.values())

    @property
    def joined_count(self) -> int:
        """How many members wait for the next generation."""
        return sum(member.has_joined for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest time any member asks to be waited for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads the topic; consumers of unknown topics may read any."""
        return self.is_consumer_group if self.topics is None else topic in self.topics

    # Members

    def add(self, member: Member) -> None:
        """Add a member that supports the group's protocols; the first one leads and sets them."""
        if not self.members:
            self.protocol_type = member.protocol_type
        assert member.protocol_type == self.protocol_type
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members
            self.static_members[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> Member | None:
        """Remove a member or a pending id; the next in line leads if it was the leader."""
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member that restarted its new id; the old one is unknown from now on."""
        assert member.instance_id is not None
        old_id = member.member_id
        renamed = {member_id if key == old_id else key: m for key, m in self.members.items()}
        self.members.clear()
        self.members.update(renamed)
        member.member_id = member_id
        self.static_members[member.instance_id] = member_id
        if self.leader_id == old_id:
            self.leader_id = member_id
        if old_id in self.pending_syncs:
            self.pending_syncs.remove(old_id)
            self.pending_syncs.add(member_id)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, else take one who has; False when nobody has."""
        if self.leader_id is not None and self.members[self.leader_id].has_joined:
            return True
        for member in self.members.values():
            if member.has_joined:
                self.leader_id = member.member_id
                return True
        return False

    # Protocols

    def common_protocols(self) -> list[str]:
        """Return the assignors that every member supports, most popular names first."""
        support = Counter(name for m in self.members.values() for name in dict(m.protocols))
        return [name for name, count in support.items() if count == len(self.members)]

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these assignors could be in this group."""
        if self.state is GroupState.EMPTY or not self.members:
            return bool(protocol_type) and bool(protocols)
        common = set(self.common_protocols())
        return protocol_type == self.protocol_type and any(name in common for name, _ in protocols)

    def select_protocol(self) -> str:
        """Return the assignor most members prefer among those that all support."""
        candidates = self.common_protocols()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def refresh_topics(self) -> None:
        """Read what the members subscribe to out of their metadata for the chosen assignor."""
        if not self.is_consumer_group:
            self.topics = None
        elif not self.members:
            self.topics = frozenset()
        elif self.protocol_name is not None:
            chosen = self.protocol_name
            self.topics = subscribed_topics(m.metadata(chosen) for m in self.members.values())

    # Timers

    def deadlines(self) -> Iterator[int]:
        """Yield every time at which something is due."""
        yield from self.pending_joins.values()
        for member in self.members.values():
            if member.deadline_ms is not None:
                yield member.deadline_ms
        for deadline in (self.join_deadline_ms, self.sync_deadline_ms):
            if deadline is not None:
                yield deadline

    @property
    def next_deadline_ms(self) -> int | None:
        """The earliest time at which something is due, None when nothing is."""
        return min(self.deadlines(), default=None)

    # What is written

    def metadata_value(self, assignments: dict[str, bytes], wall_ms: int) -> GroupMetadataValue:
        """Return the record of the running generation with these assignments by member id."""
        assert self.protocol_name is not None
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp_ms=wall_ms,
            members=tuple(
                metadata_of(member, self.protocol_name, assignments.get(member.member_id, b""))
                for member in self.members.values()
            ),
        )

    def settle(self, value: GroupMetadataValue) -> None:
        """Take over what has just been written about this group: its assignments, or its end.

        The members are the same as in the record, because nothing happens between deciding and
        this, except that one static member may come back under a new id.
        """
        wall_ms = value.current_state_timestamp_ms
        if not value.members:
            self.generation = value.generation
            self.protocol_name = None
            self.leader_id = None
            self.join_deadline_ms = None
            self.move_to(GroupState.EMPTY, wall_ms)
            self.refresh_topics()
            return
        assert value.generation == self.generation
        for written in value.members:
            self._settle_member(written)
        if self.state is GroupState.COMPLETING_REBALANCE:
            self.move_to(GroupState.STABLE, wall_ms)

    def _settle_member(self, written: GroupMember) -> None:
        if written.member_id not in self.members:
            assert written.group_instance_id is not None
            known = self.members[self.static_members[written.group_instance_id]]
            self.rename(known, written.member_id)
        self.members[written.member_id].assignment = written.assignment

    @staticmethod
    def restored(group_id: str, value: GroupMetadataValue) -> "Group":
        """Return the group as its last record describes it; sessions do not run yet.

        There is no `contradiction` in the record.
        """
        group = Group(
            group_id=group_id,
            state=GroupState.STABLE if value.members else GroupState.EMPTY,
            state_wall_ms=value.current_state_timestamp_ms,
            generation=value.generation,
            protocol_type=value.protocol_type or None,
            protocol_name=value.protocol,
        )
        for written in value.members:
            group.add(_member_of(value, written))
        group.leader_id = value.leader if value.leader in group.members else group.leader_id
        group.refresh_topics()
        return group


def contradiction(value: GroupMetadataValue) -> str | None:
    """Say what of a group's record can never have been so, None for what no group contradicts.

    No coordinator writes such a record, but whoever may write to `__consumer_offsets` can.
    """
    instance_ids = [m.group_instance_id for m in value.members if m.group_instance_id is not None]
    if len({member.member_id for member in value.members}) < len(value.members):
        return "two members have one member id"
    if len({*instance_ids}) < len(instance_ids):
        return "two members have one group.instance.id"
    if value.members and value.protocol is None:
        return "there are members without a protocol"
    return None


def metadata_of(member: Member, protocol: str, assignment: bytes) -> GroupMember:
    """Return a member as the group's record holds it."""
    return GroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=assignment,
    )


def _member_of(value: GroupMetadataValue, written: GroupMember) -> Member:
    known_timeout = written.rebalance_timeout_ms
    return Member(
        member_id=written.member_id,
        instance_id=written.group_instance_id,
        client_id=written.client_id,
        client_host=written.client_host,
        protocol_type=value.protocol_type or "",
        protocols=((value.protocol or "", written.subscription),),
        session_timeout_ms=written.session_timeout_ms,
        # Records of version 0 do not have it.
        rebalance_timeout_ms=written.session_timeout_ms if known_timeout < 0 else known_timeout,
        assignment=written.assignment,
    )
