"""Fetch: batches from files to the socket, at once or as soon as there is enough.

request ─► its session, or one for this request only ─► what is due is looked at ─► answer
                                                          └─ not enough: wait, look again ─┘
"""

from dataclasses import dataclass, field
from typing import Final

import trio

from broker.apis.answers import FileAnswer
from broker.apis.api import MOST_ELEMENTS
from broker.apis.fetching import FetchParams, LogReadResult, read_partition
from broker.context import Call
from broker.fairness import Turns
from broker.log.results import FileSlice
from broker.quotas.entity import CONSUMER_RATE
from broker.replication.fetch_sessions import (
    CONSUMER,
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    CachedPartition,
    FetchSession,
    PartitionKey,
)
from broker.replication.watching import Waiter
from wire.errors import ErrorCode
from wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    replica_of,
)
from wire.primitives import ZERO_UUID

TOPIC_IDS_SINCE: Final = 13
FROM_FOLLOWERS_SINCE: Final = 11
MOST_WANTED: Final = MOST_ELEMENTS
"""Partitions of a session, by however many requests: no more than one request may name. A fetcher
whose session has ended begins anew with all that it wants."""


@dataclass(slots=True)
class Collected:
    """The results of reading each partition of a session once."""

    results: list[tuple[CachedPartition, LogReadResult]] = field(default_factory=list)
    total_bytes: int = 0
    is_final: bool = False
    """An error, a diverging epoch or another replica is told at once, not after the wait. So are
    records with others behind them: to wait for the end would bring no more of them."""


async def handle(request: FetchRequest, call: Call) -> FetchResponse | FileAnswer:
    """Answer when `min_bytes` are there, something is wrong, or `max_wait_ms` is over.

    A fetch in a follower's name is a broker's only: it says what that replica holds, and moves the
    high watermark.
    """
    if replica_of(request) >= 0 and not call.is_broker:
        return _not_a_broker(request)
    session = _session_of(request, call)
    if isinstance(session, FetchSession) and session.is_follower and not call.is_broker:
        session = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session, responses=())
    is_full = session.id == NO_SESSION
    try:
        params = _params(request, call, session)
        # Before the first look: partitions that it has passed may move while it goes on.
        waiter = session.waiter = Waiter()
        found = await _collect(session, params, notes_positions=True)
        if not _suffices(found, session, request):
            found = await _collect_when_ready(session, params, request, waiter)
        if is_full and request.session_epoch == FIRST_EPOCH:
            call.node.partitions.fetch_sessions.keep(session, params.now_ms)
        return _answer(session, found, call, is_full=is_full)
    finally:
        if session.id == NO_SESSION or session.is_over:
            session.close()


def _not_a_broker(request: FetchRequest) -> FetchResponse:
    """Refuse each partition, as Apache Kafka does: early versions have no code for the whole."""
    return FetchResponse(
        responses=tuple(
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=tuple(
                    FetchPartitionData(
                        partition_index=one.partition,
                        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                        high_watermark=-1,
                        records=b"",
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _session_of(request: FetchRequest, call: Call) -> FetchSession | ErrorCode:
    """Return what this request is about: a session gone on with, or all that it names itself."""
    sessions = call.node.partitions.fetch_sessions
    by_id = call.api_version >= TOPIC_IDS_SINCE
    session: FetchSession | ErrorCode
    if request.session_epoch in {FIRST_EPOCH, FINAL_EPOCH}:
        if request.session_id != NO_SESSION:
            sessions.end(request.session_id)
        session = FetchSession(replica_id=max(replica_of(request), CONSUMER), by_id=by_id)
    else:
        now_ms = call.node.clock.monotonic_ms()
        session = sessions.resume(
            request.session_id, request.session_epoch, by_id=by_id, now_ms=now_ms
        )
    if isinstance(session, ErrorCode):
        return session
    known = len(session.wanted)
    for topic in request.topics:
        for partition in topic.partitions:
            session.want(_key(topic, partition.partition, by_id=by_id), partition)
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            session.forget(_key(forgotten, index, by_id=by_id))
    has_grown = session.id != NO_SESSION and len(session.wanted) > known
    if len(session.wanted) > MOST_WANTED or (has_grown and sessions.is_too_much()):
        sessions.end(session.id)
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    return session


def _key(topic: FetchTopic | ForgottenTopic, index: int, *, by_id: bool) -> PartitionKey:
    return (topic.topic_id if by_id else topic.topic, index)


def _params(request: FetchRequest, call: Call, session: FetchSession) -> FetchParams:
    budget = request.max_bytes
    if not session.is_follower:
        allowed = call.node.quotas.most_at_once(CONSUMER_RATE, call.principal, call.client_id)
        budget = int(min(budget, call.node.config.fetch_max_bytes, allowed))
    return FetchParams(
        call=call,
        replica_id=session.replica_id,
        replica_epoch=request.replica_state.replica_epoch,
        isolation_level=request.isolation_level,
        rack_id=request.rack_id,
        reads_followers=call.api_version >= FROM_FOLLOWERS_SINCE and not session.is_follower,
        max_bytes=budget,
        now_ms=call.node.clock.monotonic_ms(),
    )


def _suffices(found: Collected, session: FetchSession, request: FetchRequest) -> bool:
    enough = found.total_bytes >= request.min_bytes or found.is_final
    return enough or request.max_wait_ms <= 0 or not session.wanted


async def _collect_when_ready(
    session: FetchSession, params: FetchParams, request: FetchRequest, waiter: Waiter
) -> Collected:
    """Look again whenever something is due, until there is enough or the time is up."""
    with trio.move_on_after(request.max_wait_ms / 1000):
        while True:
            await waiter.wait()
            found = await _collect(session, params, notes_positions=False)
            if _suffices(found, session, request):
                return found
    return await _collect(session, params, notes_positions=False)


async def _collect(
    session: FetchSession, params: FetchParams, *, notes_positions: bool
) -> Collected:
    """Look at what is due, in the order of the session, within the limits.

    The first batch found is given whatever its size, so that a large one cannot block a consumer.
    `notes_positions`: a follower that asks for an offset has everything below. That counts when
    the request comes, not when it is looked at again.
    """
    if notes_positions and session.is_follower:
        _note_quiet_positions(session, params)
    found = Collected()
    budget = params.max_bytes
    turns = Turns()
    for one in list(session.due.values()):
        one.is_stirred = False
        seen = read_partition(
            one, params, budget, first=found.total_bytes == 0, notes_position=notes_positions
        )
        found.results.append((one, seen))
        found.total_bytes += seen.piece.length
        found.is_final |= seen.is_final or seen.is_behind
        budget = max(0, budget - seen.piece.length)
        if seen.is_settled and not _is_news(one, seen):
            session.due.pop(one.key, None)
        await turns.pass_on()
    return found


def _note_quiet_positions(session: FetchSession, params: FetchParams) -> None:
    """Let followers count as caught up where they had everything, and still have."""
    for one in session.wanted.values():
        follower, partition = one.follower, one.partition
        if follower is None or partition is None or one.key in session.due:
            continue
        if not partition.is_led_here:
            continue  # whoever leads now hears it
        if session.replica_id not in partition.in_sync_replicas:
            # It could not join when it came: another was just joining, or its broker was not known.
            partition.fetched_by(
                session.replica_id,
                follower.log_end_offset,
                follower.log_start_offset,
                broker_epoch=params.replica_epoch,
            )
        else:
            follower.fetched(
                follower.log_end_offset,
                follower.log_start_offset,
                partition.log_end_offset,
                params.now_ms,
                params.replica_epoch,
            )


def _answer(
    session: FetchSession, found: Collected, call: Call, *, is_full: bool
) -> FetchResponse | FileAnswer:
    """Say what is new; a full request is answered for every partition that it named.

    All of those are still due: nothing was ever told of them.
    """
    by_topic: dict[object, list[tuple[CachedPartition, FetchPartitionData, FileSlice]]] = {}
    for one, seen in found.results:
        data = seen.data
        if not is_full and not _is_news(one, seen):
            continue
        one.sent_high_watermark, one.sent_log_start = data.high_watermark, data.log_start_offset
        if seen.is_settled:
            if not one.is_stirred:
                session.due.pop(one.key, None)
        elif seen.piece.length:
            session.serve_later(one)
        by_topic.setdefault(one.key[0], []).append((one, data, seen.piece))
    call.node.metrics.record_bytes_out += found.total_bytes
    if session.is_follower:
        _count_throttled(found, call)
    message = FetchResponse(
        session_id=session.id,
        responses=tuple(
            FetchableTopicResponse(
                topic="" if session.by_id else topic,  # type: ignore[arg-type]
                topic_id=topic if session.by_id else ZERO_UUID,  # type: ignore[arg-type]
                partitions=tuple(data for _, data, _ in answers),
            )
            for topic, answers in by_topic.items()
        ),
    )
    slices = [piece for answers in by_topic.values() for _, _, piece in answers]
    return FileAnswer(message=message, slices=slices)


def _count_throttled(found: Collected, call: Call) -> None:
    sent_bytes = sum(
        seen.piece.length
        for one, seen in found.results
        if seen.piece.length and one.partition is not None and one.partition.leaves_slowly
    )
    if sent_bytes:
        now_ms = call.node.clock.monotonic_ms()
        call.node.partitions.quotas.leader.record(sent_bytes, now_ms)


def _is_news(one: CachedPartition, seen: LogReadResult) -> bool:
    data = seen.data
    return bool(
        seen.piece.length
        or seen.is_final
        or data.high_watermark != one.sent_high_watermark
        or data.log_start_offset != one.sent_log_start
    )
