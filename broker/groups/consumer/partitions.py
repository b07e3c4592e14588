"""Partitions by topic id, as groups of the new protocol name them."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol, TypeAlias
from uuid import UUID


class TopicIdPartition(NamedTuple):
    """One partition of the topic with this id."""

    topic_id: UUID
    partition: int


Partitions: TypeAlias = frozenset[TopicIdPartition]
NONE: Final[Partitions] = frozenset()


class ByTopic(Protocol):
    """The partitions of one topic, as a request or a record has them."""

    @property
    def topic_id(self) -> UUID: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


def gathered(listed: Iterable[ByTopic]) -> Partitions:
    """Return the partitions that are listed by topic."""
    return frozenset(
        TopicIdPartition(topic.topic_id, index) for topic in listed for index in topic.partitions
    )


def by_topic(partitions: Partitions) -> dict[UUID, tuple[int, ...]]:
    """Return the numbers of partitions by topic id, all in order."""
    found: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        found.setdefault(topic_id, []).append(index)
    return {topic_id: tuple(indexes) for topic_id, indexes in found.items()}
