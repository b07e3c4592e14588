"""Positions of many consumer groups at once, each coordinator asked without waiting in between.

Nothing is tried again here: who asks for many groups asks for some of them again a moment later.
What kept a single group from being answered is that group's result.
"""

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import trio

from wire.errors import ErrorCode
from wire.messages.offset_commit import OffsetCommitResponse
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from wire.net.cluster import Cluster
from wire.net.connection import Connection
from wire.net.errors import BrokerUnreachable, ConnectionClosed, NetworkFault, RequestRefused
from wire.net.group_operations import (
    GROUPS_SINCE,
    GroupOffset,
    TopicPartition,
    commit_request,
    stored_positions,
)
from wire.net.pending import Pending
from wire.net.retries import COORDINATOR_MOVED, code_of
from wire.net.transport import Address
from wire.schema import Request

Found: TypeAlias = dict[TopicPartition, GroupOffset]
Codes: TypeAlias = dict[TopicPartition, ErrorCode]
R = TypeVar("R")
Result = TypeVar("Result")
Results: TypeAlias = dict[str, Result | NetworkFault]

GROUPS_A_REQUEST: Final = 100
UNANSWERED_AT_ONCE: Final = 32
"""A broker answers one request of a connection after the other; more only fills its memory."""


async def fetch_offsets_of(cluster: Cluster, groups: Iterable[str]) -> Results[Found]:
    """Return every position of each group, or the fault that kept it from being told."""

    async def ask(connection: Connection, held: Sequence[str]) -> Results[Found]:
        if connection.version_of(OffsetFetchRequest) < GROUPS_SINCE:
            alone = [OffsetFetchRequest(group_id=group, topics=None) for group in held]
            answers = await _pipelined(connection, alone)
            return {group: _told(group, one) for group, one in zip(held, answers, strict=True)}
        chunks = [
            held[first : first + GROUPS_A_REQUEST]
            for first in range(0, len(held), GROUPS_A_REQUEST)
        ]
        answers = await _pipelined(connection, [_question(chunk) for chunk in chunks])
        results: Results[Found] = {}
        for chunk, answer in zip(chunks, answers, strict=True):
            if isinstance(answer, NetworkFault):
                results |= dict.fromkeys(chunk, answer)
            else:
                results |= {one.group_id: _told(one.group_id, one) for one in answer.groups}
        return results

    return await _ask_coordinators(cluster, list(groups), ask)


async def commit_offsets_of(
    cluster: Cluster, commits: Mapping[str, Mapping[TopicPartition, tuple[int, str]]]
) -> Results[Codes]:
    """Store (offset, metadata) for groups from outside them; return what came of each partition.

    A group with live members answers UNKNOWN_MEMBER_ID for all. Committing again is harmless.
    """

    async def ask(connection: Connection, held: Sequence[str]) -> Results[Codes]:
        requests = [commit_request(group, commits[group]) for group in held]
        answers = await _pipelined(connection, requests)
        return {group: _codes(group, one) for group, one in zip(held, answers, strict=True)}

    return await _ask_coordinators(cluster, list(commits), ask)


def _question(groups: Iterable[str]) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups)
    )


def _codes(group: str, answer: OffsetCommitResponse | NetworkFault) -> Codes | NetworkFault:
    if isinstance(answer, NetworkFault):
        return answer
    codes = {
        (topic.name, stored.partition_index): code_of(stored.error_code)
        for topic in answer.topics
        for stored in topic.partitions
    }
    moved = next((code for code in codes.values() if code in COORDINATOR_MOVED), None)
    return codes if moved is None else RequestRefused(f"commit of group {group}", moved)


def _told(
    group: str, answer: OffsetFetchResponse | OffsetFetchResponseGroup | NetworkFault
) -> Found | NetworkFault:
    if isinstance(answer, NetworkFault):
        return answer
    code, positions = stored_positions(answer)
    return positions if code is ErrorCode.NONE else RequestRefused(f"positions of {group}", code)


async def _pipelined(
    connection: Connection, requests: Sequence[Request[R]]
) -> Sequence[R | NetworkFault]:
    """Send all, waiting for the oldest answer only while many are missing."""
    answers: list[R | NetworkFault] = []
    unanswered: deque[Pending[R]] = deque()

    async def take_oldest() -> None:
        try:
            answers.append(await unanswered.popleft().wait())
        except NetworkFault as fault:
            answers.append(fault)

    for request in requests:
        while len(unanswered) >= UNANSWERED_AT_ONCE:
            await take_oldest()
        try:
            unanswered.append(await connection.send(request))
        except NetworkFault as fault:
            while unanswered:
                await take_oldest()
            answers.append(fault)
    while unanswered:
        await take_oldest()
    return answers


async def _ask_coordinators(
    cluster: Cluster,
    groups: Sequence[str],
    ask: Callable[[Connection, Sequence[str]], Awaitable[Results[Result]]],
) -> Results[Result]:
    """Ask each coordinator for the groups it holds, all coordinators at the same time."""
    results: Results[Result] = {}
    try:
        places = await cluster.coordinators(groups)
    except NetworkFault as fault:
        return dict.fromkeys(groups, fault)
    held_by: defaultdict[Address, list[str]] = defaultdict(list)
    for group, place in places.items():
        if isinstance(place, ErrorCode):
            results[group] = RequestRefused(f"coordinator of group {group}", place)
        else:
            held_by[place].append(group)

    async def ask_one(held: Sequence[str]) -> None:
        unanswered = RequestRefused("many groups", ErrorCode.UNKNOWN_SERVER_ERROR)
        results.update(dict.fromkeys(held, unanswered))
        try:
            results.update(await ask(await cluster.coordinator(held[0]), held))
        except NetworkFault as fault:
            results.update(dict.fromkeys(held, fault))

    async with trio.open_nursery() as nursery:
        for held in held_by.values():
            nursery.start_soon(ask_one, held)
    for group, result in results.items():
        if isinstance(result, NetworkFault) and _may_have_moved(result):
            cluster.forget_coordinator(group)
    return results


def _may_have_moved(fault: NetworkFault) -> bool:
    if isinstance(fault, RequestRefused):
        return fault.code in COORDINATOR_MOVED
    return isinstance(fault, ConnectionClosed | BrokerUnreachable)
