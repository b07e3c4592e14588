"""What the controller knows, what can happen to it, and what it then decides to do. Only values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from broker.zookeeper.tree import BrokerRegistration, PartitionState, TopicAssignment

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
"""Kafka's sign in UpdateMetadata that a partition is going away: brokers forget it."""


class TopicPartition(NamedTuple):
    """A partition's name."""

    topic: str
    partition: int


class Replica(NamedTuple):
    """One broker's copy of one partition."""

    topic: str
    partition: int
    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The whole cluster as the controller last knew it; `states` is what ZooKeeper holds."""

    controller_epoch: int
    live: Mapping[int, BrokerRegistration] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, TopicAssignment] = field(default_factory=lambda: MappingProxyType({}))
    states: Mapping[TopicPartition, PartitionState] = field(
        default_factory=lambda: MappingProxyType({})
    )
    deleting: frozenset[str] = frozenset()
    deleted_replicas: frozenset[Replica] = frozenset()
    """Copies of topics in `deleting` that their brokers have confirmed to be gone."""

    def partitions(self) -> list[TopicPartition]:
        """Return every partition of every topic."""
        return [
            TopicPartition(name, index)
            for name, topic in self.topics.items()
            for index in topic.replicas
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersChanged:
    """These brokers are registered now; another epoch of the same id is another life of it."""

    live: Mapping[int, BrokerRegistration]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFound:
    """A topic was created, has grown, or was read at the start of a reign."""

    name: str
    assignment: TopicAssignment


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFound:
    """ZooKeeper holds another state than we thought, or it was read at the start of a reign."""

    partition: TopicPartition
    state: PartitionState


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionRequested:
    """Somebody wants the topic gone."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicasDeleted:
    """A broker has deleted these copies."""

    replicas: frozenset[Replica]


Event: TypeAlias = BrokersChanged | TopicFound | StateFound | DeletionRequested | ReplicasDeleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The cluster as it will be, and what makes it so, to be done in this order.

    writes      states to be written; each carries the version it will have, so the write is checked
                against the one before it
    introduced  brokers that know nothing yet: they are told everything; with `brokers_changed` the
                others are told who is alive
    announced   partitions whose leader or replicas changed: their replicas and all caches are told
    doomed      copies that their brokers are to delete
    removed     topics whose last copy is gone: their nodes are deleted
    """

    cluster: Cluster
    writes: Mapping[TopicPartition, PartitionState] = field(
        default_factory=lambda: MappingProxyType({})
    )
    introduced: frozenset[int] = frozenset()
    brokers_changed: bool = False
    announced: frozenset[TopicPartition] = frozenset()
    doomed: frozenset[Replica] = frozenset()
    removed: frozenset[str] = frozenset()
