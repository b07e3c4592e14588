"""A follower's side of a fetch session (KIP-227): what to say in the next Fetch. Pure.

The leader remembers what it was told, so only positions that have changed since are said again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
MAX_EPOCH: Final = 2**31 - 1


class TopicIdPartition(NamedTuple):
    """A partition as Fetch 13+ names it."""

    topic_id: UUID
    partition: int


@dataclass(slots=True)
class FetchPositions:
    """The partitions that are fetched from one leader, and what that leader knows of them."""

    session_id: int = NO_SESSION
    session_epoch: int = FIRST_EPOCH
    told: dict[TopicIdPartition, FetchPartition] = field(default_factory=dict)
    _changed: dict[TopicIdPartition, FetchPartition | None] = field(default_factory=dict)

    def put(self, name: TopicIdPartition, position: FetchPartition) -> None:
        """Fetch from here on."""
        self._changed[name] = position

    def drop(self, name: TopicIdPartition) -> None:
        """Fetch this partition no longer."""
        if name in self.told:
            self._changed[name] = None
        else:
            self._changed.pop(name, None)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to fetch."""
        left = len(self.told)
        for name, position in self._changed.items():
            left += (position is not None) - (name in self.told)
        return left == 0

    def next_request(self) -> tuple[tuple[FetchTopic, ...], tuple[ForgottenTopic, ...]]:
        """Return what to say now; it counts as told from here on."""
        changed, self._changed = self._changed, {}
        forgotten = [name for name, position in changed.items() if position is None]
        news = {
            name: position
            for name, position in changed.items()
            if position is not None and self.told.get(name) != position
        }
        for name in forgotten:
            del self.told[name]
        self.told.update(news)
        if self.session_id == NO_SESSION:
            return _topics(self.told.items()), ()
        return _topics(news.items()), _forgotten(forgotten)

    def answered(self, session_id: int) -> None:
        """Go on in the session that the leader keeps, or without one."""
        self.session_id = session_id
        self.session_epoch = FIRST_EPOCH
        if session_id != NO_SESSION:
            self.session_epoch = 1

    def continued(self) -> None:
        """Count the requests of a session; the count goes round past 0."""
        self.session_epoch = 1 if self.session_epoch == MAX_EPOCH else self.session_epoch + 1

    def lost(self) -> None:
        """Tell everything anew: the leader knows nothing, or we do not know what it knows."""
        self.session_id = NO_SESSION
        self.session_epoch = FIRST_EPOCH


def _topics(positions: Iterable[tuple[TopicIdPartition, FetchPartition]]) -> tuple[FetchTopic, ...]:
    by_topic: dict[UUID, list[FetchPartition]] = {}
    for name, position in positions:
        by_topic.setdefault(name.topic_id, []).append(position)
    return tuple(
        FetchTopic(topic_id=topic_id, partitions=tuple(partitions))
        for topic_id, partitions in by_topic.items()
    )


def _forgotten(names: Iterable[TopicIdPartition]) -> tuple[ForgottenTopic, ...]:
    by_topic: dict[UUID, list[int]] = {}
    for name in names:
        by_topic.setdefault(name.topic_id, []).append(name.partition)
    return tuple(
        ForgottenTopic(topic_id=topic_id, partitions=tuple(indexes))
        for topic_id, indexes in by_topic.items()
    )
