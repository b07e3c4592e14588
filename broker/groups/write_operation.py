"""One write operation of a coordinator: its time, the records it decides on, and the answers.

Kafka's CoordinatorRuntime has the same word: the records are appended and replayed at once, and the
answers are given when the records are committed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from broker.groups.settings import GroupSettings
from broker.metadata_cache import TopicView
from wire import consumer_group_records
from wire.consumer_offsets import GroupMetadataKey, GroupMetadataValue, OffsetKey, OffsetValue
from wire.values import frozen

Ticket: TypeAlias = int
"""Stands for one request that waits for its answer, perhaps over many operations."""

GroupRecord: TypeAlias = (
    tuple[OffsetKey, OffsetValue | None]
    | tuple[GroupMetadataKey, GroupMetadataValue | None]
    | tuple[consumer_group_records.Key, consumer_group_records.Value | None]
)
"""A record of `__consumer_offsets`; None is a tombstone."""


class Topics(Protocol):
    """The topics of the cluster, as the broker has been told of them."""

    @property
    def changes(self) -> int:
        """How often a topic or a partition has come or gone."""

    def topic(self, name: str) -> TopicView | None: ...
    def topic_by_id(self, topic_id: UUID) -> TopicView | None: ...
    def topics(self) -> Mapping[str, TopicView]: ...


@frozen
class DeferredAnswer:
    """The response to one waiting request; given only when the operation's records are safe."""

    ticket: Ticket
    response: Any


@dataclass(slots=True, kw_only=True)
class WriteOperation:
    """Collects the outcome of one decision.

    `now_ms` is on the clock of deadlines, which never goes back; `wall_ms` is the time of day that
    records carry.
    """

    settings: GroupSettings
    now_ms: int
    wall_ms: int
    topics: Topics
    records: list[GroupRecord] = field(default_factory=list)
    producer: tuple[int, int] | None = None
    """Id and epoch of the producer in whose transaction the records are written."""
    answers: list[DeferredAnswer] = field(default_factory=list)

    def answer(self, ticket: Ticket, response: object) -> None:
        """Give `response` to the request behind `ticket`."""
        self.answers.append(DeferredAnswer(ticket=ticket, response=response))
