"""One group of the new protocol: what its records say. It changes only by replaying records.

    epoch         grows with each change of members, subscriptions or topics
    target_epoch  the epoch that the target assignment is for; behind `epoch` until somebody beats
    members       each on its way to its target

Invariant: no partition is owned by two members (`owner_of`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, NamedTuple, assert_never
from uuid import UUID

from broker.groups.consumer.member import Member
from broker.groups.consumer.partitions import NONE, Partitions, TopicIdPartition, gathered
from broker.groups.consumer.sight import Hidden
from wire.consumer_group_records import (
    CurrentKey,
    CurrentValue,
    GroupKey,
    GroupValue,
    Key,
    MemberKey,
    MemberValue,
    PatternKey,
    PatternValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
    TopicsKey,
    TopicsValue,
    Value,
)

NOTHING: Final[frozenset[str]] = frozenset()


class ConsumerGroupState(Enum):
    """A state by the name that clients and tools show; it follows from the rest."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The target is behind the group's epoch."""
    RECONCILING = "Reconciling"
    """Members are on their way to the target."""
    STABLE = "Stable"
    DEAD = "Dead"


class Shape(NamedTuple):
    """A topic as a group knows it."""

    topic_id: UUID
    partition_count: int


@dataclass(slots=True, kw_only=True)
class ConsumerGroup:
    """The state of one group."""

    group_id: str
    epoch: int = 0
    target_epoch: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    topics: Mapping[str, Shape] = field(default_factory=dict)
    """What members subscribe to, of the topics that there were when the group last looked."""
    patterns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The topics that each pattern of a member matches."""
    seen_changes: int = -1
    """Up to which change of the cluster's topics `topics` are right. Not in the records."""
    hidden: dict[str, Hidden] = field(default_factory=dict)
    """What members do not see of their patterns' topics, as far as they have told. Not either."""
    _owners: dict[TopicIdPartition, str] = field(default_factory=dict)

    def copy(self) -> "ConsumerGroup":
        """Return a group that can be changed without this one."""
        return replace(
            self,
            members=dict(self.members),
            targets=dict(self.targets),
            patterns=dict(self.patterns),
            hidden=dict(self.hidden),
            _owners=dict(self._owners),
        )

    @property
    def state(self) -> ConsumerGroupState:
        """The group's state."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(one.is_reconciled_to(self.target_epoch) for one in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def owner_of(self, partition: TopicIdPartition) -> str | None:
        """Return the id of the member that owns a partition, or has still to give it up."""
        return self._owners.get(partition)

    def static_member(self, instance_id: str | None) -> Member | None:
        """Return the member with that instance id."""
        if instance_id is None:
            return None
        return next((one for one in self.members.values() if one.instance_id == instance_id), None)

    def target_of(self, member_id: str) -> Partitions:
        """Return what a member is to own."""
        return self.targets.get(member_id, NONE)

    def topics_of(self, member: Member) -> set[str]:
        """Return the names of the topics that a member subscribes to, by name or by pattern."""
        if not member.pattern:
            return {*member.topics}
        matched = {*self.patterns.get(member.pattern, ())}
        return matched - (self.hidden_of(member) or NOTHING) | {*member.topics}

    def hidden_of(self, member: Member) -> frozenset[str] | None:
        """Return which topics of its pattern a member does not see, None before it has told."""
        known = self.hidden.get(member.member_id)
        return known.topics if known and known.occasion.pattern == member.pattern else None

    def subscribed(self) -> set[str]:
        """Return the names of all topics that members subscribe to."""
        return {topic for member in self.members.values() for topic in self.topics_of(member)}

    def preferred_assignor(self) -> str | None:
        """Return the assignor that most members ask for, None where nobody does."""
        asked = Counter(one.assignor for one in self.members.values() if one.assignor)
        return asked.most_common(1)[0][0] if asked else None

    # Records

    def replay(self, key: Key, value: Value | None) -> None:
        """Apply one record; None deletes. What is of a member that is not there is left out."""
        match key:
            case GroupKey():
                assert isinstance(value, GroupValue), "who deletes a group deletes the whole"
                self.epoch = value.epoch
            case TopicsKey():
                assert value is None or isinstance(value, TopicsValue)
                self._replay_topics(value)
            case MemberKey(_, member_id):
                assert value is None or isinstance(value, MemberValue)
                self._replay_member(member_id, value)
            case TargetEpochKey():
                assert value is None or isinstance(value, TargetEpochValue)
                self.target_epoch = 0 if value is None else value.epoch
            case TargetKey(_, member_id):
                assert value is None or isinstance(value, TargetValue)
                self._replay_target(member_id, value)
            case CurrentKey(_, member_id):
                assert value is None or isinstance(value, CurrentValue)
                self._replay_current(member_id, value)
            case PatternKey(_, pattern):
                assert value is None or isinstance(value, PatternValue)
                self._replay_pattern(pattern, value)
            case _:
                assert_never(key)

    def _replay_topics(self, value: TopicsValue | None) -> None:
        listed = () if value is None else value.topics
        self.topics = {one.topic_name: Shape(one.topic_id, one.num_partitions) for one in listed}

    def _replay_member(self, member_id: str, value: MemberValue | None) -> None:
        if value is not None:
            known = self.members.get(member_id) or Member(member_id=member_id)
            self.members[member_id] = known.with_told(value)
            return
        gone = self.members.pop(member_id, None)
        if gone is not None:
            self._release(gone)
            self.hidden.pop(member_id, None)

    def _replay_target(self, member_id: str, value: TargetValue | None) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = gathered(value.topic_partitions)

    def _replay_current(self, member_id: str, value: CurrentValue | None) -> None:
        known = self.members.get(member_id)
        if known is None:
            return
        self._release(known)
        now = self.members[member_id] = known.with_current(value)
        self._owners.update(dict.fromkeys(now.owned, member_id))

    def _release(self, member: Member) -> None:
        for partition in member.owned:
            if self._owners.get(partition) == member.member_id:
                del self._owners[partition]

    def _replay_pattern(self, pattern: str, value: PatternValue | None) -> None:
        if value is None:
            self.patterns.pop(pattern, None)
        else:
            self.patterns[pattern] = value.topics
