"""Groups as tools list, describe and delete them."""

from collections.abc import Sequence
from typing import Final

from broker.groups.consumer.draft import tombstones
from broker.groups.consumer.group import ConsumerGroup, ConsumerGroupState
from broker.groups.group import Group
from broker.groups.member import Member
from broker.groups.offsets import Offsets, expired, tombstone
from broker.groups.states import GroupState
from broker.groups.subscription import CONSUMER_PROTOCOL_TYPE
from broker.groups.write_operation import WriteOperation
from wire.consumer_offsets import GroupMetadataKey
from wire.errors import ErrorCode
from wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from wire.messages.list_groups import ListedGroup
from wire.values import frozen

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
EMPTY: Final = frozenset({GroupState.EMPTY, ConsumerGroupState.EMPTY})


@frozen
class Filter:
    """Which groups to list; compared without regard to case, empty means all."""

    states: frozenset[str]
    types: frozenset[str]

    @staticmethod
    def of(states: Sequence[str], types: Sequence[str]) -> "Filter":
        """Return the filter that a request names."""
        return Filter(
            states=frozenset(state.strip().lower() for state in states),
            types=frozenset(kind.strip().lower() for kind in types),
        )

    def admits(self, group: Group | ConsumerGroup) -> bool:
        """Return whether the group is to be listed."""
        state_fits = not self.states or group.state.value.lower() in self.states
        return state_fits and (not self.types or type_of(group) in self.types)


def type_of(group: Group | ConsumerGroup) -> str:
    """Return the name of the protocol that a group has members of, or had last."""
    return CLASSIC if isinstance(group, Group) else CONSUMER


def listed(group: Group | ConsumerGroup) -> ListedGroup:
    """Return a group's line in a list."""
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=(
            group.protocol_type or "" if isinstance(group, Group) else CONSUMER_PROTOCOL_TYPE
        ),
        group_state=group.state.value,
        group_type=type_of(group),
    )


def described(group_id: str, group: Group | None, operations: int) -> DescribedGroup:
    """Return a group as tools show it; one that does not exist is Dead, which is no error.

    `operations` is passed on: what the one who asks may do with the group, as bits.
    The assignor and what it says about each member mean something only in a stable generation.
    """
    if group is None:
        return DescribedGroup(
            error_code=ErrorCode.NONE,
            group_id=group_id,
            group_state=GroupState.DEAD.value,
            protocol_type="",
            protocol_data="",
            members=(),
            authorized_operations=operations,
        )
    protocol = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=tuple(_described_member(m, protocol) for m in group.members.values()),
        authorized_operations=operations,
    )


def _described_member(member: Member, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=b"" if protocol is None else member.assignment,
    )


def delete(
    group: Group | ConsumerGroup | None, offsets: Offsets, operation: WriteOperation
) -> ErrorCode:
    """Delete a group that has no members, with all its offsets."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state not in EMPTY:
        return ErrorCode.NON_EMPTY_GROUP
    for topic, partition in offsets.of(group.group_id):
        operation.records.append(tombstone(group.group_id, topic, partition))
    _delete(group, operation)
    return ErrorCode.NONE


def _delete(group: Group | ConsumerGroup, operation: WriteOperation) -> None:
    if isinstance(group, Group):
        operation.records.append((GroupMetadataKey(group=group.group_id), None))
    else:
        tombstones(group, operation)


def expire(
    group: Group | ConsumerGroup, offsets: Offsets, operation: WriteOperation, age_ms: int
) -> None:
    """Forget offsets that are over, and the group when it is empty and nothing is left of it."""
    over = expired(group, offsets, operation.settings, age_ms)
    for topic, partition in over:
        operation.records.append(tombstone(group.group_id, topic, partition))
    nothing_left = len(over) == len(offsets.of(group.group_id))
    is_awaited = isinstance(group, Group) and bool(group.pending_joins)
    if nothing_left and group.state in EMPTY and not is_awaited:
        _delete(group, operation)
