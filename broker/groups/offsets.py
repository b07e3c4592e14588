"""The offsets that groups have committed: the store, and who may write and delete in it."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from broker.groups.checks import commit_error, generation_error
from broker.groups.consumer import checks as consumer_checks
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.group import Group
from broker.groups.rebalance import restart_session
from broker.groups.settings import MAX_STRING_BYTES, GroupSettings
from broker.groups.states import GroupState
from broker.groups.write_operation import GroupRecord, WriteOperation
from wire.consumer_offsets import NO_TIMESTAMP, OffsetKey, OffsetValue
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition
from wire.values import frozen

NO_RETENTION: Final = -1
LAST_MS: Final = 2**63 - 1
"""The latest time that a record can hold."""
_NOTHING: Final[Mapping[TopicPartition, OffsetValue]] = MappingProxyType({})


class Offsets:
    """Committed offsets by group, topic and partition. Changes only by replaying records.

    What a producer has committed in an open transaction is pending: it counts when the
    transaction commits, unless something was committed or deleted there behind it.
    """

    __slots__ = ("_groups", "_pending")

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, OffsetValue]] = {}
        self._pending: dict[int, dict[tuple[str, TopicPartition], OffsetValue]] = {}
        """By producer id."""

    def of(self, group_id: str) -> Mapping[TopicPartition, OffsetValue]:
        """Return a group's offsets in the order in which the partitions were first committed."""
        return self._groups.get(group_id, _NOTHING)

    def group_ids(self) -> list[str]:
        """Return the groups that have offsets."""
        return list(self._groups)

    def replay(self, key: OffsetKey, value: OffsetValue | None) -> None:
        """Apply one record; a tombstone forgets the offset."""
        for pending in self._pending.values():
            pending.pop((key.group, TopicPartition(key.topic, key.partition)), None)
        if value is not None:
            name = TopicPartition(key.topic, key.partition)
            self._groups.setdefault(key.group, {})[name] = value
            return
        offsets = self._groups.get(key.group)
        if offsets is None:
            return
        offsets.pop(TopicPartition(key.topic, key.partition), None)
        if not offsets:
            del self._groups[key.group]

    def replay_pending(self, producer_id: int, key: OffsetKey, value: OffsetValue) -> None:
        """Apply one record of an open transaction."""
        name = TopicPartition(key.topic, key.partition)
        self._pending.setdefault(producer_id, {})[key.group, name] = value

    def take_pending(self, producer_id: int) -> list[tuple[OffsetKey, OffsetValue]]:
        """Return, and no longer hold, what is pending of a producer whose transaction ends."""
        return [
            (OffsetKey(group=group, topic=name.topic, partition=name.partition), value)
            for (group, name), value in self._pending.pop(producer_id, {}).items()
        ]

    def unstable(self, group_id: str) -> frozenset[TopicPartition]:
        """Return the partitions of a group whose offset may change when a transaction ends."""
        return frozenset(
            name
            for pending in self._pending.values()
            for group, name in pending
            if group == group_id
        )


@frozen
class OffsetToCommit:
    """One offset to commit; `leader_epoch` is -1 when the client does not know it."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


@frozen
class Committing:
    """One OffsetCommit request: by a member in its generation, or with neither.

    `retention_ms` is NO_RETENTION unless an old client asks for its own.
    """

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    positions: tuple[OffsetToCommit, ...]
    retention_ms: int = NO_RETENTION
    knows_epochs: bool = True
    """Whether the request is of a version that members of the new protocol commit by (KIP-848)."""


@frozen
class CommittingInTransaction(Committing):
    """One TxnOffsetCommit request, in the open transaction of this producer."""

    producer_id: int
    producer_epoch: int


CommitOutcome: TypeAlias = ErrorCode | Mapping[TopicPartition, ErrorCode]
"""One error for the whole request, or one outcome for each partition."""


def commit(
    group: Group | ConsumerGroup | None, committing: Committing, operation: WriteOperation
) -> CommitOutcome:
    """Decide on a commit; a commit to a group that does not exist creates a simple one."""
    if isinstance(committing, CommittingInTransaction):
        error = _transactional_commit_error(group, committing)
        operation.producer = committing.producer_id, committing.producer_epoch
    else:
        error = _commit_error(group, committing)
    if error is not ErrorCode.NONE:
        return error
    member = group.members.get(committing.member_id) if isinstance(group, Group) else None
    if member is not None:
        restart_session(member, operation)
    outcomes: dict[TopicPartition, ErrorCode] = {}
    for position in committing.positions:
        accepted = _fits(position.metadata or "", operation.settings)
        outcomes[TopicPartition(position.topic, position.partition)] = (
            ErrorCode.NONE if accepted else ErrorCode.OFFSET_METADATA_TOO_LARGE
        )
        if accepted:
            operation.records.append(_record(committing, position, operation))
    return outcomes


def _fits(metadata: str, settings: GroupSettings) -> bool:
    """Return whether metadata may be stored; the limit counts characters, as in Kafka."""
    if len(metadata) > settings.offset_metadata_max_bytes:
        return False
    return len(metadata.encode(errors="replace")) <= MAX_STRING_BYTES


def _commit_error(group: Group | ConsumerGroup | None, committing: Committing) -> ErrorCode:
    """Return NONE if the commit is allowed.

    A generation of a group that does not exist is an illegal one: members rejoin then. Kafka 4's
    coordinator answers GROUP_ID_NOT_FOUND from version 9 on, which old librdkafka gives up on.
    """
    if isinstance(group, ConsumerGroup):
        return consumer_checks.commit_error(
            group,
            committing.member_id,
            committing.generation,
            knows_epochs=committing.knows_epochs,
        )
    if group is not None:
        return commit_error(
            group, committing.member_id, committing.instance_id, committing.generation
        )
    return ErrorCode.NONE if committing.generation < 0 else ErrorCode.ILLEGAL_GENERATION


def _transactional_commit_error(
    group: Group | ConsumerGroup | None, committing: CommittingInTransaction
) -> ErrorCode:
    """Return NONE if the commit is allowed.

    A producer that names nothing of the group is believed, also while the group has members: those
    are fenced by their producers (before KIP-447).
    """
    names_nothing = (
        committing.generation < 0 and not committing.member_id and committing.instance_id is None
    )
    if names_nothing:
        return ErrorCode.NONE
    if group is None:
        return ErrorCode.ILLEGAL_GENERATION
    if isinstance(group, ConsumerGroup):
        # TxnOffsetCommit has no error for an epoch; producers know this one.
        error = consumer_checks.commit_error(
            group, committing.member_id, committing.generation, knows_epochs=True
        )
        is_stale = error is ErrorCode.STALE_MEMBER_EPOCH
        return ErrorCode.ILLEGAL_GENERATION if is_stale else error
    return generation_error(
        group, committing.member_id, committing.instance_id, committing.generation
    )


def _record(
    committing: Committing, position: OffsetToCommit, operation: WriteOperation
) -> GroupRecord:
    expires = committing.retention_ms != NO_RETENTION
    return (
        OffsetKey(group=committing.group_id, topic=position.topic, partition=position.partition),
        OffsetValue(
            offset=position.offset,
            leader_epoch=position.leader_epoch,
            metadata=position.metadata or "",
            commit_timestamp_ms=operation.wall_ms,
            expire_timestamp_ms=(
                min(operation.wall_ms + committing.retention_ms, LAST_MS)
                if expires
                else NO_TIMESTAMP
            ),
        ),
    )


def delete(
    group: Group | ConsumerGroup | None,
    offsets: Offsets,
    partitions: Iterable[TopicPartition],
    operation: WriteOperation,
) -> CommitOutcome:
    """Delete offsets of topics that no member reads."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    is_read = _reads(group)
    if isinstance(group, Group) and group.has_other_members:
        return ErrorCode.NON_EMPTY_GROUP
    known = offsets.of(group.group_id)
    outcomes: dict[TopicPartition, ErrorCode] = {}
    for name in partitions:
        if is_read(name.topic):
            outcomes[name] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            continue
        outcomes[name] = ErrorCode.NONE
        if name in known:
            operation.records.append(tombstone(group.group_id, *name))
    return outcomes


def tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    """Return the record that forgets an offset."""
    return OffsetKey(group=group_id, topic=topic, partition=partition), None


def _reads(group: Group | ConsumerGroup) -> Callable[[str], bool]:
    """Return what says whether a member of the group reads a topic."""
    if isinstance(group, Group):
        return group.is_subscribed_to
    return group.subscribed().__contains__


def expired(
    group: Group | ConsumerGroup, offsets: Offsets, settings: GroupSettings, age_ms: int
) -> list[TopicPartition]:
    """Return the offsets of a group that have been kept long enough.

    The retention counts from the commit, and in an empty group not before its last member left.
    (Kafka counts an empty group's from there alone; then what a mirror commits to a group that was
    left long ago would vanish at once.) Partitions that a stable group reads never expire, and
    while a group rebalances nothing does: what it will read is not known. The coordinator knows
    what members of the new protocol read, always; when they left is in no record.
    """
    is_read = _reads(group)
    if isinstance(group, ConsumerGroup):
        return [
            name
            for name, value in offsets.of(group.group_id).items()
            if not is_read(name.topic) and _is_over(value, NO_TIMESTAMP, settings, age_ms)
        ]
    if group.state not in {GroupState.EMPTY, GroupState.STABLE}:
        return []
    is_stable = group.state is GroupState.STABLE
    if is_stable and (not group.is_consumer_group or group.topics is None):
        return []
    left_wall_ms = NO_TIMESTAMP if is_stable else group.state_wall_ms
    return [
        name
        for name, value in offsets.of(group.group_id).items()
        if not is_read(name.topic) and _is_over(value, left_wall_ms, settings, age_ms)
    ]


def _is_over(value: OffsetValue, left_wall_ms: int, settings: GroupSettings, age_ms: int) -> bool:
    if value.expire_timestamp_ms != NO_TIMESTAMP:
        return age_ms >= value.expire_timestamp_ms
    counted_from = max(value.commit_timestamp_ms, left_wall_ms)
    return age_ms - counted_from >= settings.offsets_retention_ms
