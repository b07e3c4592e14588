"""Positions and states of consumer groups, at whichever broker coordinates them."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import trio

from wire.errors import ErrorCode
from wire.hot.group_offsets import (
    GROUPS_SINCE,
    STABLE_SINCE,
    GroupOffset,
    commit_body,
    found_of,
    read_committed,
)
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest
from wire.messages.list_groups import ListedGroup, ListGroupsRequest
from wire.messages.offset_commit import OffsetCommitRequest
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from wire.net.cluster import Cluster
from wire.net.connection import Connection
from wire.net.errors import ConnectionClosed, RequestRefused
from wire.net.retries import COORDINATOR_MOVED, PATIENCE_S, code_of
from wire.net.transport import Address
from wire.topic_partition import TopicPartition
from wire.values import frozen

Result = TypeVar("Result")


@frozen
class GroupDescription:
    """A group as its coordinator sees it; with an `error_code` other than NONE it could not say."""

    state: str = ""
    """Kafka's word: Empty, Stable, PreparingRebalance, CompletingRebalance or Dead (unknown); of
    the new protocol also Assigning and Reconciling."""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


DEAD: Final = "Dead"
CONSUMER_PROTOCOL_TYPE: Final = "consumer"
UNANSWERED: Final = GroupDescription(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
NOT_OF_NEW_PROTOCOL: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}
)
"""There is no such group, or brokers have the protocol switched off."""


async def fetch_group_offsets(
    cluster: Cluster, group: str, *, require_stable: bool = False
) -> dict[TopicPartition, GroupOffset]:
    """Return every position the group has stored.

    Raises NetworkFault; RequestRefused if a code, of the group or of any partition, says that the
    positions could not be told. Brokers before 2.5 do not know what `require_stable` is.
    """

    async def ask(coordinator: Connection) -> tuple[ErrorCode, dict[TopicPartition, GroupOffset]]:
        version = coordinator.version_of(OffsetFetchRequest)
        is_stable = require_stable and version >= STABLE_SINCE
        if version >= GROUPS_SINCE:
            request = OffsetFetchRequest(
                groups=(OffsetFetchRequestGroup(group_id=group, topics=None),),
                require_stable=is_stable,
            )
        else:
            request = OffsetFetchRequest(group_id=group, topics=None, require_stable=is_stable)
        answer = await coordinator.request(request)
        found = found_of(group, answer.groups[0] if answer.groups else answer)
        return code_of(found.error_code), found.positions

    code, positions = await _ask_coordinator(cluster, group, ask)
    if code is not ErrorCode.NONE:
        raise RequestRefused(f"positions of group {group}", code)
    return positions


async def commit_group_offsets(
    cluster: Cluster, group: str, positions: Mapping[TopicPartition, tuple[int, str]]
) -> dict[TopicPartition, ErrorCode]:
    """Store (offset, metadata) for a group from outside it, and return what came of each.

    A group with live members answers UNKNOWN_MEMBER_ID for all. Raises NetworkFault; committing
    the same again is harmless.
    """

    async def ask(coordinator: Connection) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        version = coordinator.version_of(OffsetCommitRequest)
        body = commit_body(group, positions, version)
        answer = await coordinator.ask(OffsetCommitRequest, version, [body], read_committed)
        codes = {place: code_of(code) for place, code in answer.items()}
        moved = [code for code in codes.values() if code in COORDINATOR_MOVED]
        return moved[0] if moved else ErrorCode.NONE, codes

    return (await _ask_coordinator(cluster, group, ask))[1]


async def describe_groups(cluster: Cluster, groups: Iterable[str]) -> dict[str, GroupDescription]:
    """Return state and members of each group, asking each coordinator once for all of its groups.

    Groups of the new protocol (KIP-848), which DescribeGroups calls dead, are asked for by their
    own API, where brokers have it. Their members come without metadata and assignments.

    Raises NetworkFault. A group whose coordinator is missing, or moves for too long, is described
    by the error code alone.
    """
    descriptions: dict[str, GroupDescription] = {}
    wanted = list(dict.fromkeys(groups))
    give_up_at, failures = trio.current_time() + PATIENCE_S, 0
    while True:
        await _describe(cluster, wanted, descriptions)
        wanted = [group for group in wanted if descriptions[group].error_code in COORDINATOR_MOVED]
        if not wanted or trio.current_time() >= give_up_at:
            return descriptions
        for group in wanted:
            cluster.forget_coordinator(group)
        failures += 1
        await cluster.pause(failures)


async def _describe(
    cluster: Cluster, groups: Iterable[str], descriptions: dict[str, GroupDescription]
) -> None:
    by_coordinator: defaultdict[Address, list[str]] = defaultdict(list)
    for group, place in (await cluster.coordinators(groups)).items():
        if isinstance(place, ErrorCode):
            descriptions[group] = GroupDescription(error_code=place)
        else:
            by_coordinator[place].append(group)
    for held in by_coordinator.values():
        answer = await cluster.request_coordinator(
            held[0], DescribeGroupsRequest(groups=tuple(held))
        )
        descriptions |= dict.fromkeys(held, UNANSWERED)
        for found in answer.groups:
            descriptions[found.group_id] = GroupDescription(
                state=found.group_state,
                protocol_type=found.protocol_type,
                protocol=found.protocol_data,
                members=found.members,
                error_code=code_of(found.error_code),
            )
        dead = [group for group in held if _may_be_of_new_protocol(descriptions[group])]
        if dead:
            descriptions |= await _described_by_new_protocol(cluster, dead)


def _may_be_of_new_protocol(description: GroupDescription) -> bool:
    return description.error_code is ErrorCode.NONE and description.state == DEAD


async def _described_by_new_protocol(
    cluster: Cluster, groups: Sequence[str]
) -> dict[str, GroupDescription]:
    """Return what there is of the new protocol; the groups have one coordinator."""
    connection = await cluster.coordinator(groups[0])
    if not connection.serves(ConsumerGroupDescribeRequest):
        return {}
    request = ConsumerGroupDescribeRequest(
        group_ids=tuple(groups), include_authorized_operations=False
    )
    answer = await cluster.request_coordinator(groups[0], request)
    return {
        found.group_id: GroupDescription(
            state=found.group_state,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol=found.assignor_name,
            members=tuple(
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=b"",
                    member_assignment=b"",
                )
                for member in found.members
            ),
            error_code=code_of(found.error_code),
        )
        for found in answer.groups
        if found.error_code not in NOT_OF_NEW_PROTOCOL
    }


async def list_groups(cluster: Cluster) -> dict[str, ListedGroup]:
    """Return the groups of all brokers, by id.

    Every broker must answer: raises NetworkFault otherwise, for an unknown group is not an absent
    one.
    """
    groups: dict[str, ListedGroup] = {}
    view = await cluster.metadata((), refresh=True)
    for node in view.brokers:
        give_up_at, failures = trio.current_time() + PATIENCE_S, 0
        while True:
            answer = await cluster.request(ListGroupsRequest(), node=node)
            code = code_of(answer.error_code)
            if code is ErrorCode.NONE:
                break
            if code not in COORDINATOR_MOVED or trio.current_time() >= give_up_at:
                raise RequestRefused(f"groups of broker {node}", code)
            failures += 1
            await cluster.pause(failures)
        groups |= {group.group_id: group for group in answer.groups}
    return groups


async def _ask_coordinator(
    cluster: Cluster,
    group: str,
    ask: Callable[[Connection], Awaitable[tuple[ErrorCode, Result]]],
) -> tuple[ErrorCode, Result]:
    """Ask until the coordinator is found and willing, or patience is over."""
    give_up_at, failures = trio.current_time() + PATIENCE_S, 0
    while True:
        try:
            code, result = await ask(await cluster.coordinator(group))
        except RequestRefused as refused:
            if refused.code not in COORDINATOR_MOVED or trio.current_time() >= give_up_at:
                raise
        except ConnectionClosed:
            cluster.forget_coordinator(group)
            raise
        else:
            if code not in COORDINATOR_MOVED or trio.current_time() >= give_up_at:
                return code, result
        cluster.forget_coordinator(group)
        failures += 1
        await cluster.pause(failures)
