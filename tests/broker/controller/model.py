"""A cluster in memory around the pure controller: ZooKeeper, and brokers with disks.

The model knows nothing of the controller's rules. It writes what a decision says, one node after
the other, and a controller may die before any of them; brokers hear announcements in order; a
record counts as acknowledged when everybody has it whom its leader believes to be in sync.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from broker.controller.announcements import announce
from broker.controller.cluster import (
    NO_LEADER,
    BrokersChanged,
    Cluster,
    Decision,
    Event,
    IsrChange,
    IsrProposed,
    PartitionAndReplica,
    ReplicasDeleted,
)
from broker.controller.decisions import decide
from broker.zookeeper.tree import BrokerRegistration, LeaderAndIsr, TopicAssignment
from wire.messages.leader_and_isr import LeaderAndIsrRequest
from wire.messages.stop_replica import StopReplicaRequest
from wire.messages.update_metadata import UpdateMetadataRequest
from wire.topic_partition import TopicPartition

CONTROLLER = 0


@dataclass(frozen=True, slots=True)
class View:
    """What a broker was told of a partition, or learned as its leader."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    version: int
    replicas: tuple[int, ...]


@dataclass(slots=True)
class Tree:
    """ZooKeeper: what is durable."""

    topics: dict[str, TopicAssignment] = field(default_factory=dict)
    states: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    deleting: set[str] = field(default_factory=set)

    def write_state(self, partition: TopicPartition, state: LeaderAndIsr) -> None:
        """Refuse, by failing the test, what ZooKeeper would refuse or what goes back in time."""
        old = self.states.get(partition)
        assert state.version == (0 if old is None else old.version + 1)
        if old is not None:
            assert state.leader_epoch >= old.leader_epoch
            assert state.leader_epoch > old.leader_epoch or state.leader == old.leader
        self.states[partition] = state

    def assign(self, name: str, assignment: TopicAssignment) -> None:
        self.topics[name] = assignment

    def remove_topic(self, name: str) -> None:
        self.topics.pop(name, None)
        self.states = {part: state for part, state in self.states.items() if part.topic != name}
        self.deleting.discard(name)


@dataclass(slots=True)
class Broker:
    """A broker: `views` are its memory, `ends` its disk."""

    registration: BrokerRegistration
    is_alive: bool = True
    is_deaf: bool = False
    unheard: list[LeaderAndIsrRequest | StopReplicaRequest] = field(default_factory=list)
    views: dict[TopicPartition, View] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)


class Model:
    """The whole cluster and its present controller."""

    def __init__(self, brokers: Iterable[int]) -> None:
        self.tree = Tree()
        self.epoch = 0
        self.zxid = 0
        self.brokers = {id_: Broker(self.registration(id_)) for id_ in brokers}
        self.acknowledged: dict[TopicPartition, int] = {}
        self.unclean: frozenset[str] = frozenset()
        self.cluster = Cluster(controller_epoch=0)
        self.deleted: set[PartitionAndReplica] = set()
        self.begin_controller()

    def registration(self, id_: int) -> BrokerRegistration:
        self.zxid += 1
        return BrokerRegistration(broker_id=id_, host="h", port=9_000 + id_, epoch=self.zxid)

    def live(self) -> dict[int, BrokerRegistration]:
        return {id_: one.registration for id_, one in self.brokers.items() if one.is_alive}

    def reloaded(self) -> Cluster:
        """Return what a new controller reads."""
        return Cluster(
            controller_epoch=self.epoch,
            topics=dict(self.tree.topics),
            states=dict(self.tree.states),
            unclean=self.unclean,
            deleting=frozenset(self.tree.deleting) & self.tree.topics.keys(),
        )

    def begin_controller(self) -> None:
        self.epoch += 1
        self.deleted = set()
        for broker in self.brokers.values():
            broker.unheard = []  # the old controller's words die with it
        self.cluster = self.reloaded()
        self.happen(BrokersChanged(live=self.live()))

    def happen(self, event: Event, dies_after: int | None = None) -> Decision | None:
        """Decide and do; a controller that dies after so many writes is followed by another."""
        decision = decide(self.cluster, event)
        writes = self._writes(decision)
        for write in writes if dies_after is None else writes[:dies_after]:
            write()
        if dies_after is not None and dies_after < len(writes):
            self.begin_controller()
            return None
        self.cluster = decision.cluster
        for told in announce(decision, CONTROLLER):
            if not isinstance(told.request, UpdateMetadataRequest):
                self.brokers[told.broker_id].unheard.append(told.request)
        for id_, broker in self.brokers.items():
            if not broker.is_deaf:
                self.hear_all(id_)
        return decision

    def hear_all(self, id_: int) -> None:
        """Let a broker take what this controller has told it in this life of its."""
        broker = self.brokers[id_]
        broker.is_deaf = False
        unheard, broker.unheard = broker.unheard, []
        for request in unheard:
            if broker.is_alive and request.broker_epoch == broker.registration.epoch:
                self._hear(id_, request)

    def _writes(self, decision: Decision) -> list[Callable[[], None]]:
        """Return the writes in their order, each one by itself."""
        tree = self.tree
        return [
            *(partial(tree.assign, *assigned) for assigned in decision.begun.items()),
            *(partial(tree.write_state, *written) for written in decision.writes.items()),
            *(partial(tree.assign, *assigned) for assigned in decision.finished.items()),
            *(partial(tree.remove_topic, name) for name in decision.removed),
        ]

    def _hear(self, id_: int, request: object) -> None:
        broker = self.brokers[id_]
        if isinstance(request, LeaderAndIsrRequest):
            for topic in request.topic_states:
                for state in topic.partition_states:
                    partition = TopicPartition(topic.topic_name, state.partition_index)
                    self._take(
                        broker,
                        partition,
                        View(
                            state.leader,
                            state.leader_epoch,
                            state.isr,
                            state.partition_epoch,
                            state.replicas,
                        ),
                    )
        elif isinstance(request, StopReplicaRequest):
            for stopped in request.topic_states:
                for one in stopped.partition_states:
                    partition = TopicPartition(stopped.topic_name, one.partition_index)
                    broker.views.pop(partition, None)
                    if one.delete_partition:
                        broker.ends.pop(partition, None)
                        self.deleted.add(PartitionAndReplica(*partition, id_))

    def _take(self, broker: Broker, partition: TopicPartition, view: View) -> None:
        known = broker.views.get(partition)
        assert known is None or view.leader_epoch >= known.leader_epoch
        broker.views[partition] = view
        broker.ends.setdefault(partition, 0)
        if view.leader == broker.registration.broker_id and partition.topic not in self.unclean:
            # The promise: whoever is made leader has every acknowledged record.
            assert broker.ends[partition] >= self.acknowledged.get(partition, 0)

    def follow(self, id_: int, partition: TopicPartition) -> bool:
        """Let a follower fetch up to its leader's end; False when there is nobody to fetch from."""
        view = self.brokers[id_].views.get(partition)
        if view is None or view.leader in {NO_LEADER, id_}:
            return False
        leader = self.brokers[view.leader]
        known = leader.views.get(partition)
        if not leader.is_alive or known is None or known.leader_epoch != view.leader_epoch:
            return False
        self.brokers[id_].ends[partition] = leader.ends[partition]
        return True

    def produce(self, id_: int, partition: TopicPartition) -> None:
        """Append at a leader, whatever it believes; acknowledge when all in sync have it."""
        leader = self.brokers[id_]
        view = leader.views[partition]
        leader.ends[partition] += 1
        others = [other for other in view.isr if other != id_]
        if all(self.brokers[other].is_alive and self.follow(other, partition) for other in others):
            end = leader.ends[partition]
            self.acknowledged[partition] = max(self.acknowledged.get(partition, 0), end)

    def propose(
        self, id_: int, partition: TopicPartition, isr: Iterable[int], dies_after: int | None = None
    ) -> None:
        """Let a leader ask for another ISR, and take over the answer."""
        view = self.brokers[id_].views[partition]
        members = {other: self.brokers[other].registration.epoch for other in isr}
        change = IsrChange(members, view.leader_epoch, view.version)
        event = IsrProposed(broker_id=id_, changes={partition: change})
        decision = self.happen(event, dies_after)
        known = self.brokers[id_].views.get(partition)
        if decision is None or known is None:
            return
        state = decision.cluster.states.get(partition)
        is_taken = state is not None and not decision.outcomes[partition].error
        if is_taken and state is not None and state.leader_epoch == known.leader_epoch:
            self.brokers[id_].views[partition] = replace(
                known, isr=state.isr, version=state.version
            )

    def confirm_deletions(self, dies_after: int | None = None) -> None:
        """Let the brokers' answers to StopReplica arrive."""
        confirmed, self.deleted = frozenset(self.deleted), set()
        if confirmed:
            self.happen(ReplicasDeleted(replicas=confirmed), dies_after)

    def leaders(self) -> list[tuple[int, TopicPartition]]:
        """Return who believes to lead what."""
        return [
            (id_, partition)
            for id_, broker in self.brokers.items()
            if broker.is_alive
            for partition, view in broker.views.items()
            if view.leader == id_
        ]
