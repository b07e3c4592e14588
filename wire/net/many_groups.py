"""Positions of many consumer groups at once, each coordinator asked without waiting in between.

Nothing is tried again here: a caller that asks for many groups asks for some of them again a moment
later. A group that could not be answered has the reason as its result.
"""

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import trio

from wire.errors import ErrorCode
from wire.headers import decode_response
from wire.hot.group_offsets import (
    GROUPS_SINCE,
    STABLE_SINCE,
    GroupFound,
    GroupOffset,
    commit_body,
    fetch_body,
    found_of,
    read_committed,
    read_fetched,
)
from wire.messages.offset_commit import OffsetCommitRequest
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from wire.net.cluster import Cluster
from wire.net.connection import Connection
from wire.net.errors import BrokerUnreachable, ConnectionClosed, NetworkFault, RequestRefused
from wire.net.pending import PendingAnswer
from wire.net.retries import COORDINATOR_MOVED, code_of
from wire.net.transport import Address
from wire.primitives import Buffer
from wire.schema import AnyRequest, encode
from wire.topic_partition import TopicPartition

GroupOffsets: TypeAlias = dict[TopicPartition, GroupOffset]
Codes: TypeAlias = dict[TopicPartition, ErrorCode]
T = TypeVar("T")
Result = TypeVar("Result")
Results: TypeAlias = dict[str, Result | NetworkFault]

GROUPS_A_REQUEST: Final = 100
UNANSWERED_AT_ONCE: Final = 32
"""A broker answers one request of a connection after the other; more only fills its memory."""


async def fetch_offsets_of(
    cluster: Cluster, groups: Iterable[str], *, require_stable: bool = False
) -> Results[GroupOffsets]:
    """Return every position of each group, or the fault that kept it from being told.

    That is UNSTABLE_OFFSET_COMMIT where a transaction with positions of the group is open, if
    `require_stable` and its coordinator knows that (Kafka 2.5); else they are those before it.
    """

    async def ask(connection: Connection, held: Sequence[str]) -> Results[GroupOffsets]:
        version = connection.version_of(OffsetFetchRequest)
        some = GROUPS_A_REQUEST if version >= GROUPS_SINCE else 1
        chunks = [held[first : first + some] for first in range(0, len(held), some)]
        bodies = [_question(chunk, version, require_stable) for chunk in chunks]
        answers = await _pipelined(connection, OffsetFetchRequest, version, bodies, _read_found)
        results: Results[GroupOffsets] = {}
        for chunk, answer in zip(chunks, answers, strict=True):
            if isinstance(answer, NetworkFault):
                results |= dict.fromkeys(chunk, answer)
            elif version >= GROUPS_SINCE:
                results |= {one.group: _told(one) for one in answer}
            else:
                results[chunk[0]] = _told(answer[0]._replace(group=chunk[0]))
        return results

    return await _ask_coordinators(cluster, list(groups), ask)


async def commit_offsets_of(
    cluster: Cluster, commits: Mapping[str, Mapping[TopicPartition, tuple[int, str]]]
) -> Results[Codes]:
    """Store (offset, metadata) for groups from outside them; return what came of each partition.

    A group with live members answers UNKNOWN_MEMBER_ID for all. Committing again is harmless.
    """

    async def ask(connection: Connection, held: Sequence[str]) -> Results[Codes]:
        version = connection.version_of(OffsetCommitRequest)
        bodies = [commit_body(group, commits[group], version) for group in held]
        answers = await _pipelined(connection, OffsetCommitRequest, version, bodies, read_committed)
        return {group: _codes(group, one) for group, one in zip(held, answers, strict=True)}

    return await _ask_coordinators(cluster, list(commits), ask)


def _question(groups: Sequence[str], version: int, require_stable: bool) -> bytes:  # noqa: FBT001
    if version >= GROUPS_SINCE:
        return fetch_body(groups, version, require_stable=require_stable)
    [group] = groups
    is_stable = require_stable and version >= STABLE_SINCE
    request = OffsetFetchRequest(group_id=group, topics=None, require_stable=is_stable)
    return encode(request, version)


def _read_found(frame: Buffer, version: int) -> list[GroupFound]:
    if version >= GROUPS_SINCE:
        return read_fetched(frame, version)
    return [found_of("", decode_response(OffsetFetchResponse, frame, version))]


def _codes(group: str, answer: Mapping[TopicPartition, int] | NetworkFault) -> Codes | NetworkFault:
    if isinstance(answer, NetworkFault):
        return answer
    codes = {place: code_of(code) if code else ErrorCode.NONE for place, code in answer.items()}
    moved = next((code for code in codes.values() if code in COORDINATOR_MOVED), None)
    return codes if moved is None else RequestRefused(f"commit of group {group}", moved)


def _told(answer: GroupFound) -> GroupOffsets | NetworkFault:
    if not answer.error_code:
        return answer.positions
    return RequestRefused(f"positions of {answer.group}", code_of(answer.error_code))


async def _pipelined(
    connection: Connection,
    request: type[AnyRequest],
    version: int,
    bodies: Iterable[bytes],
    read: Callable[[Buffer, int], T],
) -> Sequence[T | NetworkFault]:
    """Send all, waiting for the oldest answer only while many are missing."""
    answers: list[T | NetworkFault] = []
    unanswered: deque[PendingAnswer[Any]] = deque()

    async def take_oldest() -> None:
        try:
            answers.append(await unanswered.popleft().wait_read(read))
        except NetworkFault as fault:
            answers.append(fault)

    for body in bodies:
        while len(unanswered) >= UNANSWERED_AT_ONCE:
            await take_oldest()
        pending: PendingAnswer[Any] = PendingAnswer(connection, request.RESPONSE, version, 0.0)
        try:
            await connection.post(request, version, [([body], len(body), pending)])
        except NetworkFault as fault:
            while unanswered:
                await take_oldest()
            answers.append(fault)
        else:
            unanswered.append(pending)
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
