"""The leader's memory of what fetchers want, and the follower's of what it has said."""

from uuid import UUID

from broker.replication.fetch_positions import FetchPositions, TopicIdPartition
from broker.replication.fetch_sessions import (
    CONSUMER,
    MAX_EPOCH,
    MIN_EVICTION_MS,
    FetchSession,
    FetchSessions,
)
from wire.errors import ErrorCode
from wire.messages.fetch import FetchPartition

TOPIC = UUID(int=7)


def position(offset: int, index: int = 0) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1)


def session(replica_id: int = CONSUMER, *, size: int = 1) -> FetchSession:
    made = FetchSession(replica_id=replica_id, by_id=True)
    for index in range(size):
        made.want((TOPIC, index), position(0, index))
    return made


def kept(sessions: FetchSessions, made: FetchSession, now_ms: int = 0) -> FetchSession:
    assert sessions.keep(made, now_ms)
    return made


def test_requests_of_a_session_are_counted() -> None:
    sessions = FetchSessions()
    made = kept(sessions, session())
    assert sessions.resume(made.id, 1, by_id=True, now_ms=0) is made
    for epoch in (1, 3):
        answer = sessions.resume(made.id, epoch, by_id=True, now_ms=0)
        assert answer is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.resume(made.id, 2, by_id=True, now_ms=0) is made
    answer = sessions.resume(made.id, 3, by_id=False, now_ms=0)
    assert answer is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    sessions.end(made.id)
    answer = sessions.resume(made.id, 3, by_id=True, now_ms=0)
    assert answer is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_count_goes_round_past_zero() -> None:
    sessions = FetchSessions()
    made = kept(sessions, session())
    made.epoch = MAX_EPOCH
    assert sessions.resume(made.id, MAX_EPOCH, by_id=True, now_ms=0) is made
    assert made.epoch == 1
    positions = FetchPositions(session_id=9, session_epoch=MAX_EPOCH)
    positions.continued()
    assert positions.session_epoch == 1


def test_nothing_wanted_is_not_worth_a_session() -> None:
    assert not FetchSessions().keep(session(size=0), 0)


def test_a_full_cache_declines_until_somebody_has_had_its_time() -> None:
    sessions = FetchSessions(slots=1)
    first = kept(sessions, session())
    assert not sessions.keep(session(size=9), MIN_EVICTION_MS)
    larger = kept(sessions, session(size=9), MIN_EVICTION_MS + 1)
    assert len(sessions) == 1
    answer = sessions.resume(first.id, 1, by_id=True, now_ms=0)
    assert answer is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    sessions.resume(larger.id, 1, by_id=True, now_ms=3 * MIN_EVICTION_MS)
    assert not sessions.keep(session(), 3 * MIN_EVICTION_MS), "the larger one is worth more"
    assert sessions.keep(session(replica_id=2), 3 * MIN_EVICTION_MS), "a follower is worth most"
    assert not sessions.keep(session(size=99), 9 * MIN_EVICTION_MS - 1) or len(sessions) == 1


def test_a_long_unused_session_makes_room_for_any() -> None:
    sessions = FetchSessions(slots=2)
    unused, used = kept(sessions, session(size=9)), kept(sessions, session(size=9))
    sessions.resume(used.id, 1, by_id=True, now_ms=MIN_EVICTION_MS)
    assert sessions.keep(session(), MIN_EVICTION_MS + 1)
    assert sessions.resume(used.id, 2, by_id=True, now_ms=0) is used
    answer = sessions.resume(unused.id, 1, by_id=True, now_ms=0)
    assert answer is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_very_many_partitions_of_few_sessions_leave_no_room_either() -> None:
    sessions = FetchSessions(most_partitions=10)
    small, large = kept(sessions, session(size=3)), kept(sessions, session(size=7))
    assert not sessions.keep(session(replica_id=2), MIN_EVICTION_MS)
    kept(sessions, session(replica_id=2, size=2), MIN_EVICTION_MS + 1)
    assert len(sessions) == 2
    answer = sessions.resume(small.id, 1, by_id=True, now_ms=0)
    assert answer is ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "it was worth less"
    assert sessions.resume(large.id, 1, by_id=True, now_ms=0) is large
    assert not sessions.keep(session(size=11), 0), "and one alone may want too much"


def told(positions: FetchPositions) -> tuple[dict[int, int], list[int]]:
    """Return the next request: offsets by partition, and what it forgets."""
    topics, forgotten = positions.next_request()
    return (
        {part.partition: part.fetch_offset for topic in topics for part in topic.partitions},
        [index for topic in forgotten for index in topic.partitions],
    )


def test_a_follower_says_only_what_has_changed() -> None:
    positions = FetchPositions()
    for index in range(3):
        positions.put(TopicIdPartition(TOPIC, index), position(0, index))
    assert told(positions) == ({0: 0, 1: 0, 2: 0}, [])
    positions.answered(5)
    positions.put(TopicIdPartition(TOPIC, 1), position(4, 1))
    positions.put(TopicIdPartition(TOPIC, 2), position(0, 2))
    assert told(positions) == ({1: 4}, [])
    positions.drop(TopicIdPartition(TOPIC, 0))
    assert told(positions) == ({}, [0])
    positions.lost()
    assert told(positions) == ({1: 4, 2: 0}, [])


def test_a_follower_without_a_session_says_everything() -> None:
    positions = FetchPositions()
    positions.put(TopicIdPartition(TOPIC, 0), position(0))
    told(positions)
    positions.answered(0)
    assert told(positions) == ({0: 0}, [])


def test_what_was_dropped_before_it_was_told_is_never_told() -> None:
    positions = FetchPositions()
    positions.put(TopicIdPartition(TOPIC, 0), position(0))
    positions.drop(TopicIdPartition(TOPIC, 0))
    assert positions.is_empty
    assert told(positions) == ({}, [])
