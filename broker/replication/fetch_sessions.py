"""Fetch sessions (KIP-227): what a fetcher wants, remembered, so that it only says what changes.

A partition is *due* while it may have news: it was asked for anew, or its log has moved since it
was looked at. Only those are looked at, so an idle partition costs nothing.

Rules of Kafka's FetchSessionCache and FetchManager.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

from broker.replication.in_sync import Follower
from broker.replication.partition import Partition
from broker.replication.watching import Waiter
from wire.errors import ErrorCode
from wire.messages.fetch import FetchPartition

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1
CONSUMER: Final = -1
NEVER_SENT: Final = -2
MIN_EVICTION_MS: Final = 120_000
"""A session unused for so long makes room for any other (min.incremental.fetch.session...)."""
DEFAULT_SLOTS: Final = 1_000
"""max.incremental.fetch.session.cache.slots"""
MOST_PARTITIONS: Final = 500_000
"""Of all sessions together: one takes half a kilobyte, and a session may want very many."""

PartitionKey: TypeAlias = tuple[str | UUID, int]
"""A partition as the fetcher names it: by topic name before Fetch 13, by topic id since."""


class CachedPartition:
    """One partition that somebody fetches, with what that somebody was told last."""

    __slots__ = (
        "asked",
        "follower",
        "is_stirred",
        "key",
        "name",
        "partition",
        "sent_high_watermark",
        "sent_log_start",
        "session",
    )

    def __init__(self, session: "FetchSession", key: PartitionKey, asked: FetchPartition) -> None:
        self.session = session
        self.key = key
        self.asked = asked
        self.name: str | None = None
        """The topic's name, once it is known."""
        self.partition: Partition | None = None
        """The replica that is watched for it."""
        self.follower: Follower | None = None
        """What that replica, as the leader, knows of the fetcher; None for consumers."""
        self.is_stirred = False
        """Something has happened since it was looked at."""
        self.sent_high_watermark = NEVER_SENT
        self.sent_log_start = NEVER_SENT

    def attach(self, partition: Partition | None) -> None:
        """Watch this replica, and no other any more."""
        if partition is self.partition:
            return
        if self.partition is not None:
            self.partition.unwatch(self)
        self.partition = partition
        if partition is not None:
            partition.watch(self)

    def grown(self) -> None:
        """Note that the log has grown: news for followers."""
        session = self.session
        if session.is_follower:
            self.is_stirred = True
            session.due[self.key] = self
            session.wake()

    def committed(self) -> None:
        """Note a new high watermark: news for consumers, while a follower hears of it by and by."""
        session = self.session
        self.is_stirred = True
        session.due[self.key] = self
        if not session.is_follower or session.hears_commits_at_once:
            session.wake()

    def changed(self) -> None:
        """Note another leadership."""
        self.is_stirred = True
        self.session.due[self.key] = self
        self.session.wake()


@dataclass(slots=True, kw_only=True)
class FetchSession:
    """The partitions that one fetcher wants, in the order in which it is served.

    id      NO_SESSION for a request that stands alone
    epoch   that of the next request
    """

    replica_id: int
    by_id: bool
    hears_commits_at_once: bool = False
    id: int = NO_SESSION
    epoch: int = FIRST_EPOCH
    wanted: dict[PartitionKey, CachedPartition] = field(default_factory=dict)
    due: dict[PartitionKey, CachedPartition] = field(default_factory=dict)
    used_ms: int = 0
    created_ms: int = 0
    waiter: Waiter | None = None
    is_over: bool = False
    """It was ended, perhaps while a request of it waits."""

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0

    def wake(self) -> None:
        """Wake the request that waits, if one does."""
        if self.waiter is not None:
            self.waiter.wake()

    def want(self, key: PartitionKey, asked: FetchPartition) -> None:
        """Fetch this partition from there on."""
        known = self.wanted.get(key)
        if known is None:
            known = self.wanted[key] = CachedPartition(self, key, asked)
        known.asked = asked
        self.due[key] = known

    def forget(self, key: PartitionKey) -> None:
        """Fetch it no longer."""
        known = self.wanted.pop(key, None)
        if known is not None:
            known.attach(None)
            self.due.pop(key, None)

    def serve_later(self, one: CachedPartition) -> None:
        """Let the others go first next time: this one has been given something."""
        self.due.pop(one.key, None)
        self.due[one.key] = one

    def close(self) -> None:
        """Watch nothing any more."""
        self.is_over = True
        for one in self.wanted.values():
            one.attach(None)


class FetchSessions:
    """The sessions of one broker, at most `slots` of them. Times are of a monotonic clock.

    A fetcher that finds no room gets no session, and names all that it wants in each request.
    """

    def __init__(self, slots: int = DEFAULT_SLOTS, most_partitions: int = MOST_PARTITIONS) -> None:
        self.slots = slots
        self._most_partitions = most_partitions
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def resume(
        self, session_id: int, epoch: int, *, by_id: bool, now_ms: int
    ) -> FetchSession | ErrorCode:
        """Return the session that a request goes on in, or why it cannot."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        session.used_ms = now_ms
        # In order of use, so that the first one is the one that has rested longest.
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def end(self, session_id: int) -> None:
        """Forget a session: its fetcher begins anew, or leaves."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def keep(self, session: FetchSession, now_ms: int) -> bool:
        """Give the session an id and remember it, if there is room; return whether there was."""
        if not session.wanted or not self._make_room(session, now_ms):
            return False
        while session.id == NO_SESSION or session.id in self._sessions:
            session.id = random.randint(1, MAX_EPOCH)  # noqa: S311 - tells fetchers apart
        session.epoch = 1
        session.used_ms = session.created_ms = now_ms
        self._sessions[session.id] = session
        return True

    def is_too_much(self, more: int = 0) -> bool:
        """Say whether all sessions want more than can be remembered, with so many partitions."""
        wanted = sum(len(session.wanted) for session in self._sessions.values())
        return wanted + more > self._most_partitions

    def _make_room(self, coming: FetchSession, now_ms: int) -> bool:
        while len(self._sessions) >= self.slots or self.is_too_much(len(coming.wanted)):
            evicted = _choose_evicted(self._sessions.values(), coming, now_ms)
            if evicted is None:
                return False
            self.end(evicted.id)
        return True


def _choose_evicted(
    sessions: Collection[FetchSession], coming: FetchSession, now_ms: int
) -> FetchSession | None:
    """Return who makes room: the longest unused, else one that has had its time and is worth less.

    A follower's session is worth more than a consumer's, a larger one more than a smaller.
    """
    oldest = min(sessions, key=lambda session: session.used_ms, default=None)
    if oldest is None:
        return None
    if now_ms - oldest.used_ms > MIN_EVICTION_MS:
        return oldest
    settled = [s for s in sessions if now_ms - s.created_ms > MIN_EVICTION_MS]
    least = min(settled, key=_worth, default=None)
    return least if least is not None and _worth(least) < _worth(coming) else None


def _worth(session: FetchSession) -> tuple[bool, int]:
    return session.is_follower, len(session.wanted)
