"""The whole cluster as the controller told it to this broker, never older than told."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from uuid import UUID

import trio

from wire.errors import ErrorCode
from wire.values import frozen

NO_LEADER = -1


@frozen
class BrokerEndpoint:
    """Where one live broker is reached: by other brokers at host and port, by clients `at` them.

    `endpoints` holds host and port by listener; none where one address is for all.
    """

    broker_id: int
    host: str
    port: int
    rack: str | None = None
    endpoints: Mapping[str, tuple[str, int]] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, listener: str) -> tuple[str, int] | None:
        """Return where clients of a listener reach it, None where it has no such listener."""
        return self.endpoints.get(listener) if self.endpoints else (self.host, self.port)


@frozen
class PartitionView:
    """One partition as the controller last announced it; `leader` is NO_LEADER when offline."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    """Replicas whose broker or log folder was down when the controller announced this."""


@frozen
class TopicView:
    """One topic and its partitions by index."""

    name: str
    topic_id: UUID
    partitions: Mapping[int, PartitionView]


class MetadataCache:
    """The cluster as one broker sees it. Replaced piece by piece, read without locks."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.controller_id = -1
        self.brokers: Mapping[int, BrokerEndpoint] = MappingProxyType({})
        self._topics: dict[str, TopicView] = {}
        self._names: dict[UUID, str] = {}
        self._changes = 0
        self._changed = trio.Event()

    @property
    def changes(self) -> int:
        """How often a topic or a partition has come or gone; a move of leaders is none."""
        return self._changes

    def topic(self, name: str) -> TopicView | None:
        """Return what is known of one topic."""
        return self._topics.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicView | None:
        """Return the topic of that id (Fetch 13+ names topics by id only)."""
        name = self._names.get(topic_id)
        return None if name is None else self._topics.get(name)

    def topics(self) -> Mapping[str, TopicView]:
        """Return a read-only view of all topics by name."""
        return MappingProxyType(self._topics)

    def partition_count(self, topic: str) -> int | None:
        """Return how many partitions a topic has, None when there is no such topic."""
        view = self._topics.get(topic)
        return None if view is None else len(view.partitions)

    def leader_of(self, topic: str, index: int) -> BrokerEndpoint | None:
        """Return the live broker that leads a partition, None while there is none."""
        view = self._topics.get(topic)
        partition = None if view is None else view.partitions.get(index)
        return None if partition is None else self.brokers.get(partition.leader)

    def why_not_led(self, topic: str, index: int) -> ErrorCode:
        """Return what a client hears that asks for a partition which is not led here.

        Before its controller has spoken a broker knows of no topic, and cannot say that there is
        none: others may have named it as the leader already.
        """
        view = self._topics.get(topic)
        is_known = view is not None and index in view.partitions
        if is_known or not self.brokers:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def set_brokers(self, controller_id: int, brokers: Iterable[BrokerEndpoint]) -> None:
        """Replace the live brokers: every announcement names all of them, and ends with this."""
        self.controller_id = controller_id
        self.brokers = MappingProxyType({broker.broker_id: broker for broker in brokers})
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def wait_changed(self) -> None:
        """Wait until the controller has announced something."""
        await self._changed.wait()

    def put_partitions(
        self, name: str, topic_id: UUID, partitions: Iterable[PartitionView]
    ) -> None:
        """Add or replace partitions; another id means another topic of that name: start anew."""
        known = self._topics.get(name)
        kept = known.partitions if known is not None and known.topic_id == topic_id else {}
        merged = {**kept, **{partition.index: partition for partition in partitions}}
        if known is not None:
            self._names.pop(known.topic_id, None)
        if known is None or known.topic_id != topic_id or len(merged) != len(kept):
            self._changes += 1
        self._topics[name] = TopicView(name=name, topic_id=topic_id, partitions=merged)
        self._names[topic_id] = name

    def remove_topic(self, name: str) -> None:
        """Forget a deleted topic."""
        known = self._topics.pop(name, None)
        if known is not None:
            self._names.pop(known.topic_id, None)
            self._changes += 1
