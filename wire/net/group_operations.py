"""Positions and states of consumer groups, at whichever broker coordinates them."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import trio

from wire.errors import ErrorCode
from wire.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest
from wire.messages.list_groups import ListedGroup, ListGroupsRequest
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from wire.net.cluster import Cluster
from wire.net.connection import Connection
from wire.net.errors import ConnectionClosed, RequestRefused
from wire.net.retries import COORDINATOR_MOVED, PATIENCE_S, PAUSE_S, code_of
from wire.net.transport import Address

TopicPartition: TypeAlias = tuple[str, int]
Result = TypeVar("Result")

GROUPS_SINCE: Final = 8
"""OffsetFetch names several groups at once from this version on, in fields of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """A stored position: the offset of the next record to read."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as its coordinator sees it; with an `error_code` other than NONE it could not say."""

    state: str = ""
    """Kafka's word: Empty, Stable, PreparingRebalance, CompletingRebalance or Dead (unknown)."""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


async def fetch_group_offsets(
    cluster: Cluster, group: str, *, require_stable: bool = False
) -> dict[TopicPartition, GroupOffset]:
    """Return every position the group has stored.

    Raises NetworkFault; RequestRefused if a code, of the group or of any partition, says that the
    positions could not be told.
    """

    async def ask(coordinator: Connection) -> tuple[ErrorCode, dict[TopicPartition, GroupOffset]]:
        if coordinator.version_of(OffsetFetchRequest) >= GROUPS_SINCE:
            request = OffsetFetchRequest(
                groups=(OffsetFetchRequestGroup(group_id=group, topics=None),),
                require_stable=require_stable,
            )
        else:
            request = OffsetFetchRequest(group_id=group, topics=None, require_stable=require_stable)
        answer = await coordinator.request(request)
        return stored_positions(answer.groups[0] if answer.groups else answer)

    code, positions = await _ask_coordinator(cluster, group, ask)
    if code is not ErrorCode.NONE:
        raise RequestRefused(f"positions of group {group}", code)
    return positions


def stored_positions(
    answer: OffsetFetchResponse | OffsetFetchResponseGroup,
) -> tuple[ErrorCode, dict[TopicPartition, GroupOffset]]:
    """Return the first error, of a group or of a partition of it, and the positions there are."""
    code = code_of(answer.error_code)
    positions = {}
    for topic in answer.topics:
        for found in topic.partitions:
            if found.error_code:
                code = code or code_of(found.error_code)
            if found.committed_offset >= 0:
                positions[topic.name, found.partition_index] = GroupOffset(
                    offset=found.committed_offset,
                    leader_epoch=found.committed_leader_epoch,
                    metadata=found.metadata or "",
                )
    return code, positions


async def commit_group_offsets(
    cluster: Cluster, group: str, positions: Mapping[TopicPartition, tuple[int, str]]
) -> dict[TopicPartition, ErrorCode]:
    """Store (offset, metadata) for a group from outside it, and return what came of each.

    A group with live members answers UNKNOWN_MEMBER_ID for all. Raises NetworkFault; committing
    the same again is harmless.
    """
    request = commit_request(group, positions)

    async def ask(coordinator: Connection) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        answer = await coordinator.request(request)
        codes = {
            (topic.name, stored.partition_index): code_of(stored.error_code)
            for topic in answer.topics
            for stored in topic.partitions
        }
        moved = [code for code in codes.values() if code in COORDINATOR_MOVED]
        return moved[0] if moved else ErrorCode.NONE, codes

    return (await _ask_coordinator(cluster, group, ask))[1]


def commit_request(
    group: str, positions: Mapping[TopicPartition, tuple[int, str]]
) -> OffsetCommitRequest:
    """Return the request that stores (offset, metadata) for a group from outside it."""
    by_topic: defaultdict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for (topic, partition), (offset, metadata) in positions.items():
        by_topic[topic].append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    return OffsetCommitRequest(
        group_id=group,
        topics=tuple(
            OffsetCommitRequestTopic(name=name, partitions=tuple(stored))
            for name, stored in by_topic.items()
        ),
    )


async def describe_groups(cluster: Cluster, groups: Iterable[str]) -> dict[str, GroupDescription]:
    """Return state and members of each group, asking each coordinator once for all of its groups.

    Raises NetworkFault. A group whose coordinator is missing, or moves for too long, is described
    by the error code alone.
    """
    descriptions: dict[str, GroupDescription] = {}
    wanted = list(dict.fromkeys(groups))
    give_up_at = trio.current_time() + PATIENCE_S
    while True:
        await _describe(cluster, wanted, descriptions)
        wanted = [group for group in wanted if descriptions[group].error_code in COORDINATOR_MOVED]
        if not wanted or trio.current_time() >= give_up_at:
            return descriptions
        for group in wanted:
            cluster.forget_coordinator(group)
        await trio.sleep(PAUSE_S)


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
        unanswered = GroupDescription(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        descriptions |= dict.fromkeys(held, unanswered)
        for found in answer.groups:
            descriptions[found.group_id] = GroupDescription(
                state=found.group_state,
                protocol_type=found.protocol_type,
                protocol=found.protocol_data,
                members=found.members,
                error_code=code_of(found.error_code),
            )


async def list_groups(cluster: Cluster) -> dict[str, ListedGroup]:
    """Return the groups of all brokers, by id.

    Every broker must answer: raises NetworkFault otherwise, for an unknown group is not an absent
    one.
    """
    groups: dict[str, ListedGroup] = {}
    view = await cluster.metadata((), refresh=True)
    for node in view.brokers:
        give_up_at = trio.current_time() + PATIENCE_S
        while True:
            answer = await cluster.request(ListGroupsRequest(), node=node)
            code = code_of(answer.error_code)
            if code is ErrorCode.NONE:
                break
            if code not in COORDINATOR_MOVED or trio.current_time() >= give_up_at:
                raise RequestRefused(f"groups of broker {node}", code)
            await trio.sleep(PAUSE_S)
        groups |= {group.group_id: group for group in answer.groups}
    return groups


async def _ask_coordinator(
    cluster: Cluster,
    group: str,
    ask: Callable[[Connection], Awaitable[tuple[ErrorCode, Result]]],
) -> tuple[ErrorCode, Result]:
    """Ask until the coordinator is found and willing, or patience is over."""
    give_up_at = trio.current_time() + PATIENCE_S
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
        await trio.sleep(PAUSE_S)
