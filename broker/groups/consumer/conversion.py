"""A group changes its protocol while it is in use, and its members with it, one after the other.

    classic ─► consumer   a member of the new protocol joins
    consumer ─► classic   the last member of the new protocol goes

An empty group takes the protocol of whoever joins next. Source of the rules: KIP-848; Kafka's
GroupMetadataManager.
"""

from collections.abc import Collection
from dataclasses import replace

from broker.groups.consumer.draft import Draft, tombstones
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.heartbeats import MemberRefusal
from broker.groups.consumer.member import Member, written
from broker.groups.consumer.partitions import Partitions, TopicIdPartition
from broker.groups.consumer.timers import Timer, TimerKind, Timers
from broker.groups.group import Group, contradiction
from broker.groups.member import Member as ClassicGroupMember
from broker.groups.rebalance import dismiss
from broker.groups.states import GroupState
from broker.groups.subscription import (
    CONSUMER_PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    version_of,
)
from broker.groups.write_operation import Topics, WriteOperation
from wire.consumer_group_records import (
    ClassicMember,
    ClassicProtocol,
    GroupKey,
    GroupValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)
from wire.consumer_offsets import GroupMember, GroupMetadataKey, GroupMetadataValue
from wire.errors import ErrorCode
from wire.primitives import MalformedMessage
from wire.topic_partition import TopicPartition


def taken_over(classic: Group, operation: WriteOperation) -> Draft | MemberRefusal:
    """Return what a classic group becomes for a joining member of the new protocol.

    The classic group stays as it is: the member may be refused yet. See `sent_back`.
    """
    draft = Draft(ConsumerGroup(group_id=classic.group_id), operation)
    if classic.state is GroupState.EMPTY:
        operation.records.append((GroupMetadataKey(group=classic.group_id), None))
        return draft
    refusal = _upgrade_refusal(classic, operation)
    if refusal is not None:
        return refusal
    try:
        members = [_upgraded(classic, one, operation.topics) for one in classic.members.values()]
    except MalformedMessage as fault:
        reason = f"group {classic.group_id} cannot be upgraded: a subscription: {fault}"
        return MemberRefusal(ErrorCode.GROUP_ID_NOT_FOUND, reason)
    operation.records.append((GroupMetadataKey(group=classic.group_id), None))
    _write_upgraded(draft, classic, members)
    return draft


def sent_back(classic: Group, operation: WriteOperation, timers: Timers) -> None:
    """Let the members of a group that has been taken over join anew, within their sessions."""
    for known in classic.members.values():
        dismiss(known, ErrorCode.REBALANCE_IN_PROGRESS, operation, member_id=known.member_id)
        session = Timer(TimerKind.SESSION, classic.group_id, known.member_id)
        timers.set(session, operation.now_ms + known.session_timeout_ms)


def _upgrade_refusal(classic: Group, operation: WriteOperation) -> MemberRefusal | None:
    settings = operation.settings.consumer
    reason = None
    if not settings.migration_policy.allows_upgrade:
        reason = "group.consumer.migration.policy allows no upgrade"
    elif not classic.is_consumer_group:
        reason = "its members are no consumers"
    elif len(classic.members) > settings.max_size:
        reason = f"it has more than {settings.max_size} members"
    if reason is None:
        return None
    words = f"group {classic.group_id} is not a consumer group: {reason}"
    return MemberRefusal(ErrorCode.GROUP_ID_NOT_FOUND, words)


def _upgraded(classic: Group, known: ClassicGroupMember, topics: Topics) -> Member:
    first = known.protocols[0][1]
    # While others wait for the next generation, a newcomer may not know the assignor of this one.
    chosen = dict(known.protocols).get(classic.protocol_name or "", first)
    subscription = decode_subscription(chosen)
    version_of(first)
    return Member(
        member_id=known.member_id,
        instance_id=known.instance_id,
        rack_id=subscription.rack_id,
        client_id=known.client_id,
        client_host=known.client_host,
        topics=tuple(sorted({*subscription.topics})),
        rebalance_timeout_ms=known.rebalance_timeout_ms,
        classic=ClassicMember(
            session_timeout_ms=known.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in known.protocols
            ),
        ),
        epoch=classic.generation,
        previous_epoch=classic.generation,
        assigned=by_id(decode_assignment(known.assignment), topics),
    )


def _write_upgraded(draft: Draft, classic: Group, members: list[Member]) -> None:
    """Write the group with its classic members, who own what their leader has assigned.

    A leader may have assigned one partition to two members; here it is one's.
    """
    name, taken = classic.group_id, set[TopicIdPartition]()
    draft.write(GroupKey(name), GroupValue(epoch=classic.generation))
    for member in members:
        owned = member.assigned - taken
        taken |= owned
        value = TargetValue(topic_partitions=written(owned))
        draft.put(replace(member, assigned=owned))
        draft.write(TargetKey(name, member.member_id), value)
    draft.write(TargetEpochKey(name), TargetEpochValue(epoch=classic.generation))


def by_id(partitions: frozenset[TopicPartition], topics: Topics) -> Partitions:
    """Return partitions by topic id, of the topics that there are."""
    views = {topic: topics.topic(topic) for topic, _ in partitions}
    return frozenset(
        TopicIdPartition(view.topic_id, index)
        for topic, index in partitions
        if (view := views[topic]) is not None
    )


def by_name(partitions: Partitions, topics: Topics) -> dict[str, list[int]]:
    """Return the numbers of partitions by the topic's name, of the topics that there are."""
    found: dict[str, list[int]] = {}
    for topic_id, index in sorted(partitions):
        view = topics.topic_by_id(topic_id)
        if view is not None:
            found.setdefault(view.name, []).append(index)
    return found


def downgraded(draft: Draft, gone: Collection[Member], timers: Timers) -> bool:
    """Make the group a classic one if without these members all speak the classic protocol.

    They rebalance at once. Return whether it became one.
    """
    group, operation = draft.group, draft.operation
    staying = [one for one in group.members.values() if one not in gone]
    settings = operation.settings
    was_mixed = any(one.classic is None for one in gone)
    if not staying or not was_mixed or any(one.classic is None for one in staying):
        return False
    allowed = settings.consumer.migration_policy.allows_downgrade
    protocol = common_protocol(staying)
    if not allowed or len(staying) > settings.max_size or protocol is None:
        return False
    value = GroupMetadataValue(
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        generation=group.epoch,
        protocol=protocol,
        leader=staying[0].member_id,
        current_state_timestamp_ms=operation.wall_ms,
        members=tuple(_classic_member(one, protocol, operation.topics) for one in staying),
    )
    if contradiction(value) is not None:
        return False  # each member's records were possible, together no classic group has them
    tombstones(group, operation)
    operation.records.append((GroupMetadataKey(group=group.group_id), value))
    timers.set(Timer(TimerKind.DOWNGRADE, group.group_id), operation.now_ms)
    return True


def common_protocol(members: list[Member]) -> str | None:
    """Return the first assignor that all of these classic members support."""
    supported = [
        [protocol.name for protocol in one.classic.supported_protocols]
        for one in members
        if one.classic is not None
    ]
    return next((name for name in supported[0] if all(name in one for one in supported)), None)


def _classic_member(member: Member, protocol: str, topics: Topics) -> GroupMember:
    assert member.classic is not None
    return GroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        subscription=metadata_for(member, protocol),
        assignment=encoded_assignment(member, topics),
    )


def metadata_for(member: Member, protocol: str) -> bytes:
    """Return what a classic member sent for an assignor, empty where it does not support it."""
    listed = () if member.classic is None else member.classic.supported_protocols
    return next((one.metadata for one in listed if one.name == protocol), b"")


def encoded_assignment(member: Member, topics: Topics) -> bytes:
    """Return what a classic member owns, in the format that it subscribes with."""
    assert member.classic is not None
    first = member.classic.supported_protocols[0].metadata
    return encode_assignment(version_of(first), by_name(member.assigned, topics))
