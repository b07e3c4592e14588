"""A group as it will be when the records of an operation are replayed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from broker.groups.consumer.assignors import ASSIGN, Assignor, Subscriber
from broker.groups.consumer.group import ConsumerGroup, Shape
from broker.groups.consumer.member import Member, following, written
from broker.groups.consumer.sight import Hidden
from broker.groups.write_operation import WriteOperation
from wire.consumer_group_records import (
    CurrentKey,
    GroupKey,
    GroupValue,
    Key,
    MemberKey,
    PatternKey,
    PatternValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
    TopicShape,
    TopicsKey,
    TopicsValue,
    Value,
)
from wire.values import frozen


@frozen
class Matches:
    """The topics that patterns match, as the cluster was at this change of its topics."""

    topics: Mapping[str, tuple[str, ...]]
    changes: int


NO_MATCHES: Final = Matches(topics=MappingProxyType({}), changes=-1)


@dataclass(slots=True)
class Draft:
    """Decides on records and shows what they make of the group, which itself stays as it is.

    The group is copied at the first record: most heartbeats write none.
    """

    group: ConsumerGroup
    operation: WriteOperation
    _is_copy: bool = False
    _origin: ConsumerGroup = field(init=False)

    def __post_init__(self) -> None:
        """Remember the group as it is: what is in no record goes there at once."""
        self._origin = self.group

    def write(self, key: Key, value: Value | None) -> None:
        """Decide on a record."""
        if not self._is_copy:
            self.group, self._is_copy = self.group.copy(), True
        self.operation.records.append((key, value))
        self.group.replay(key, value)

    def put(self, member: Member) -> None:
        """Write what a member tells of itself, and what it owns, as far as that is new."""
        name = self.group.group_id
        known = self.group.members.get(member.member_id)
        if known is member:
            return
        told = member.told_value()
        if known is None or known.told_value() != told:
            self.write(MemberKey(name, member.member_id), told)
        if self.group.members[member.member_id] != member:
            self.write(CurrentKey(name, member.member_id), member.current_value())

    def remove(self, member_id: str) -> None:
        """Write that a member is gone; its epoch stays as it is."""
        name = self.group.group_id
        self.write(CurrentKey(name, member_id), None)
        self.write(TargetKey(name, member_id), None)
        self.write(MemberKey(name, member_id), None)

    def hide(self, member_id: str, hidden: Hidden) -> bool:
        """Take over what a member does not see; say whether it is to be assigned anew."""
        group = self.group
        before = group.hidden.get(member_id)
        self._origin.hidden[member_id] = group.hidden[member_id] = hidden
        if before is not None:
            return before.topics != hidden.topics
        held = {topic_id for topic_id, _ in group.target_of(member_id)}
        return any(
            name in group.topics and group.topics[name].topic_id in held for name in hidden.topics
        )

    def refresh(self, matches: Matches, *, has_changed: bool) -> None:
        """Look again at the topics that members subscribe to.

        Write them, and a new epoch, where they are others than before; `has_changed` asks for a
        new epoch in any case. A pattern that `matches` does not have keeps what it was known to
        match.
        """
        group, topics = self.group, self.operation.topics
        if not has_changed and group.seen_changes == topics.changes:
            return
        looked_at = group
        has_changed |= self._refresh_patterns(matches)
        shapes = self._shapes()
        if shapes != self.group.topics:
            has_changed = True
            self.write(TopicsKey(group.group_id), _topics_value(shapes))
        if has_changed:
            epoch = following(self.group.epoch)
            self.write(GroupKey(group.group_id), GroupValue(epoch=epoch))
        elif not self._patterns() or self._has_all_of_now(matches):
            looked_at.seen_changes = topics.changes

    def assign(self) -> None:
        """Assign anew if the target is behind the group's epoch."""
        group = self.group
        if group.epoch == group.target_epoch:
            return
        subscribers = [
            Subscriber(
                member_id=member.member_id,
                instance_id=member.instance_id,
                topics=frozenset(
                    group.topics[name].topic_id
                    for name in group.topics_of(member)
                    if name in group.topics
                ),
                target=group.target_of(member.member_id),
            )
            for member in group.members.values()
        ]
        counts = {shape.topic_id: shape.partition_count for shape in group.topics.values()}
        for member_id, target in ASSIGN[self.assignor()](subscribers, counts).items():
            if group.targets.get(member_id) != target:
                value = TargetValue(topic_partitions=written(target))
                self.write(TargetKey(group.group_id, member_id), value)
        self.write(TargetEpochKey(group.group_id), TargetEpochValue(epoch=group.epoch))

    def assignor(self) -> Assignor:
        """Return the assignor that most members ask for, else the first that is served."""
        served = self.operation.settings.consumer.assignors
        preferred = self.group.preferred_assignor()
        return Assignor(preferred if preferred in served else served[0])

    def _has_all_of_now(self, matches: Matches) -> bool:
        is_of_now = matches.changes == self.operation.topics.changes
        return is_of_now and self._patterns() <= matches.topics.keys()

    def _patterns(self) -> set[str]:
        return {one.pattern for one in self.group.members.values() if one.pattern}

    def _refresh_patterns(self, matches: Matches) -> bool:
        """Write what the members' patterns match now; say whether that is other than before."""
        name, wanted = self.group.group_id, self._patterns()
        has_changed = False
        for pattern in sorted(wanted & matches.topics.keys()):
            topics = self._seen(pattern, matches.topics[pattern])
            if self.group.patterns.get(pattern) != topics:
                has_changed = True
                value = PatternValue(
                    topics=topics,
                    version=matches.changes,
                    timestamp_ms=self.operation.wall_ms,
                )
                self.write(PatternKey(name, pattern), value)
        for pattern in sorted(self.group.patterns.keys() - wanted):
            self.write(PatternKey(name, pattern), None)
        return has_changed

    def _seen(self, pattern: str, matched: tuple[str, ...]) -> tuple[str, ...]:
        """Return the topics that a member with this pattern sees.

        Whoever has not beaten since this broker coordinates saw what the pattern was kept with.
        """
        group = self.group
        hidden = [group.hidden_of(one) for one in group.members.values() if one.pattern == pattern]
        unseen = [topics for topics in hidden if topics is not None]
        before = group.patterns.get(pattern, ()) if None in hidden else ()
        return tuple(
            name
            for name in matched
            if name in before or any(name not in topics for topics in unseen)
        )

    def _shapes(self) -> dict[str, Shape]:
        found: dict[str, Shape] = {}
        for name in self.group.subscribed():
            view = self.operation.topics.topic(name)
            if view is not None and view.partitions:
                found[name] = Shape(view.topic_id, len(view.partitions))
        return found


def _topics_value(shapes: Mapping[str, Shape]) -> TopicsValue:
    return TopicsValue(
        topics=tuple(
            TopicShape(topic_id=topic_id, topic_name=name, num_partitions=count)
            for name, (topic_id, count) in sorted(shapes.items())
        )
    )


def tombstones(group: ConsumerGroup, operation: WriteOperation) -> None:
    """Write that a whole group is gone; its offsets are not part of it."""
    name = group.group_id
    keys: list[Key] = [CurrentKey(name, member_id) for member_id in group.members]
    keys += [TargetKey(name, member_id) for member_id in group.targets.keys() | group.members]
    keys += [TargetEpochKey(name)]
    keys += [MemberKey(name, member_id) for member_id in group.members]
    keys += [PatternKey(name, pattern) for pattern in group.patterns]
    keys += [TopicsKey(name), GroupKey(name)]
    operation.records += [(key, None) for key in keys]
