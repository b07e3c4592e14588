"""The controller's values: the cluster that it knows, the events, and the decisions on them."""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from broker.zookeeper.tree import BrokerRegistration, LeaderAndIsr, TopicAssignment
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition
from wire.values import frozen

NO_LEADER: Final = -1
UNKNOWN_BROKER_EPOCH: Final = -1
RECOVERED: Final = 0
RECOVERING: Final = 1
"""`LeaderAndIsr.recovery` (KIP-704)."""
LEADER_DURING_DELETE: Final = -2
"""Kafka's sign in UpdateMetadata that a partition is going away: brokers forget it."""


class PartitionAndReplica(NamedTuple):
    """One broker's copy of one partition."""

    topic: str
    partition: int
    broker_id: int


@frozen
class Cluster:
    """The whole cluster as the controller last knew it; `states` is what ZooKeeper holds.

    live              registered brokers, those included that are about to leave
    leaving           brokers that asked to shut down: they get no leadership and join no ISR
    failed            replicas whose broker is alive and whose disk is not
    unclean           topics that rather lose records than wait (unclean.leader.election.enable)
    deleting          topics on their way out
    deleted_replicas  their copies that are confirmed to be gone
    """

    controller_epoch: int
    live: Mapping[int, BrokerRegistration] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, TopicAssignment] = field(default_factory=lambda: MappingProxyType({}))
    states: Mapping[TopicPartition, LeaderAndIsr] = field(
        default_factory=lambda: MappingProxyType({})
    )
    leaving: frozenset[int] = frozenset()
    failed: frozenset[PartitionAndReplica] = frozenset()
    unclean: frozenset[str] = frozenset()
    deleting: frozenset[str] = frozenset()
    deleted_replicas: frozenset[PartitionAndReplica] = frozenset()

    def partitions(self) -> list[TopicPartition]:
        """Return every partition of every topic."""
        return [
            TopicPartition(name, index)
            for name, topic in self.topics.items()
            for index in topic.replicas
        ]

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """Return who holds a partition, the preferred leader first."""
        return self.topics[partition.topic].replicas[partition.partition]

    def exists(self, partition: TopicPartition) -> bool:
        """Return whether there is such a partition that is not being deleted."""
        topic = self.topics.get(partition.topic)
        return (
            topic is not None
            and partition.partition in topic.replicas
            and partition.topic not in self.deleting
        )

    def can_lead(self, broker: int, partition: TopicPartition) -> bool:
        """Return whether a replica may be given the lead, or be taken into the ISR."""
        return broker not in self.leaving and self.is_online(broker, partition)

    def is_online(self, broker: int, partition: TopicPartition) -> bool:
        """Return whether a replica's broker lives and the replica's disk works."""
        return broker in self.live and PartitionAndReplica(*partition, broker) not in self.failed


class Election(Enum):
    """Whom to elect; the numbers of ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


class IsrChange(NamedTuple):
    """The in-sync replicas that a leader wants, and by which state it judges.

    `isr` holds the epoch of each broker as the leader knows it, UNKNOWN_BROKER_EPOCH where not.
    """

    isr: Mapping[int, int]
    leader_epoch: int
    version: int
    recovery: int = RECOVERED


@frozen
class BrokersChanged:
    """These brokers are registered now; another epoch of the same id is another life of it."""

    live: Mapping[int, BrokerRegistration]


@frozen
class TopicFound:
    """A topic was created, has grown, or a new controller has read it."""

    name: str
    assignment: TopicAssignment


@frozen
class DeletionRequested:
    """Somebody wants the topic gone."""

    name: str


@frozen
class ReplicasDeleted:
    """A broker has deleted these copies."""

    replicas: frozenset[PartitionAndReplica]


@frozen
class ReplicasFailed:
    """A broker has answered for replicas that it was told of: the disks of some have failed."""

    told: frozenset[PartitionAndReplica]
    failed: frozenset[PartitionAndReplica]


@frozen
class DiskFailed:
    """Brokers lost a log folder: told of all their replicas, they answer which they still have."""

    brokers: frozenset[int]


@frozen
class IsrProposed:
    """A broker wants to change the in-sync replicas of partitions that it leads."""

    broker_id: int
    changes: Mapping[TopicPartition, IsrChange]


@frozen
class ShutdownRequested:
    """A broker is about to leave and wants to lead nothing any more."""

    broker_id: int


@frozen
class ElectionRequested:
    """Somebody, or the timer, wants an election."""

    election: Election
    partitions: frozenset[TopicPartition]


@frozen
class MoveRequested:
    """Partitions are to be held by these brokers; None cancels a move that is under way."""

    targets: Mapping[TopicPartition, tuple[int, ...] | None]


@frozen
class UncleanAllowed:
    """These topics, and no others, may be led by a replica that was not in sync."""

    topics: frozenset[str]


Event: TypeAlias = (
    BrokersChanged
    | TopicFound
    | DeletionRequested
    | ReplicasDeleted
    | ReplicasFailed
    | DiskFailed
    | IsrProposed
    | ShutdownRequested
    | ElectionRequested
    | MoveRequested
    | UncleanAllowed
)


class ApiError(NamedTuple):
    """The answer to a client for one topic or partition that it named; as Kafka's ApiError."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@frozen
class Decision:
    """The cluster as it will be, and what makes it so, to be done in this order.

    begun       assignments that begin a move: written before the states
    writes      states to be written; each carries the version it will have, so the write is checked
                against the one before it
    finished    assignments of which a move is complete: written after the states
    introduced  brokers that know nothing yet: they are told everything; with `brokers_changed` the
                others are told who is alive
    announced   partitions whose leader or replicas changed: their replicas and all caches are told
    published   partitions of which only the in-sync replicas changed: only the caches are told
    stopped     copies that their brokers are to stop, and to keep
    doomed      copies that their brokers are to delete
    removed     topics whose last copy is gone: their nodes are deleted
    outcomes    what to answer, by partition
    """

    cluster: Cluster
    begun: Mapping[str, TopicAssignment] = field(default_factory=lambda: MappingProxyType({}))
    writes: Mapping[TopicPartition, LeaderAndIsr] = field(
        default_factory=lambda: MappingProxyType({})
    )
    finished: Mapping[str, TopicAssignment] = field(default_factory=lambda: MappingProxyType({}))
    introduced: frozenset[int] = frozenset()
    brokers_changed: bool = False
    announced: frozenset[TopicPartition] = frozenset()
    published: frozenset[TopicPartition] = frozenset()
    stopped: frozenset[PartitionAndReplica] = frozenset()
    doomed: frozenset[PartitionAndReplica] = frozenset()
    removed: frozenset[str] = frozenset()
    outcomes: Mapping[TopicPartition, ApiError] = field(
        default_factory=lambda: MappingProxyType({})
    )
