"""The controller's decisions: first by example, then against any order of events."""

from collections.abc import Mapping
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.controller.announcements import announce
from broker.controller.cluster import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    BrokersChanged,
    Cluster,
    Decision,
    DeletionRequested,
    Event,
    Replica,
    ReplicasDeleted,
    TopicFound,
    TopicPartition,
)
from broker.controller.decisions import decide
from broker.zookeeper.tree import BrokerRegistration, PartitionState, TopicAssignment
from wire.messages.leader_and_isr import LeaderAndIsrRequest
from wire.messages.stop_replica import StopReplicaRequest
from wire.messages.update_metadata import UpdateMetadataRequest

CONTROLLER = 0


def broker(broker_id: int, epoch: int = 1) -> BrokerRegistration:
    return BrokerRegistration(broker_id=broker_id, host="h", port=9000 + broker_id, epoch=epoch)


def alive(*brokers: int) -> BrokersChanged:
    return BrokersChanged(live={id_: broker(id_) for id_ in brokers})


def topic(name: str, *replicas: tuple[int, ...]) -> TopicFound:
    return TopicFound(
        name=name,
        assignment=TopicAssignment(
            topic_id=UUID(int=len(name)), replicas=dict(enumerate(replicas))
        ),
    )


def play(*events: Event) -> Decision:
    decision = Decision(cluster=Cluster(controller_epoch=1))
    for event in events:
        decision = decide(decision.cluster, event)
    return decision


def leaders(cluster: Cluster) -> Mapping[tuple[str, int], int]:
    return {(name.topic, name.partition): state.leader for name, state in cluster.states.items()}


def test_a_new_topic_is_led_by_its_first_live_replica() -> None:
    decision = play(alive(0, 1), topic("t", (0, 1), (2, 1), (2,)))
    assert decision.writes == {
        TopicPartition("t", 0): PartitionState(
            leader=0, leader_epoch=0, isr=(0,), controller_epoch=1, version=0
        ),
        TopicPartition("t", 1): PartitionState(
            leader=1, leader_epoch=0, isr=(1,), controller_epoch=1, version=0
        ),
    }
    assert decision.announced == {TopicPartition("t", index) for index in range(3)}


def test_a_partition_without_a_live_replica_waits_for_one() -> None:
    decision = play(alive(0), topic("t", (2,)), alive(0, 2))
    assert leaders(decision.cluster) == {("t", 0): 2}
    assert decision.introduced == {2}


def test_a_dead_leader_that_was_alone_in_sync_leaves_the_partition_without_one() -> None:
    """The other replica is alive but holds nothing: electing it would lose every record."""
    decision = play(alive(0, 1), topic("t", (0, 1)), alive(1))
    state = decision.cluster.states[TopicPartition("t", 0)]
    assert state == PartitionState(
        leader=NO_LEADER, leader_epoch=1, isr=(0,), controller_epoch=1, version=1
    )
    back = decide(decision.cluster, alive(0, 1)).cluster.states[TopicPartition("t", 0)]
    assert (back.leader, back.leader_epoch, back.isr) == (0, 2, (0,))


def in_sync(isr: tuple[int, ...], leader: int, live: tuple[int, ...]) -> Cluster:
    """Return a cluster in which replicas have caught up, as a leader will report one day."""
    found = play(alive(*live), topic("t", (0, 1, 2)))
    return Cluster(
        controller_epoch=1,
        live=found.cluster.live,
        topics=found.cluster.topics,
        states={
            TopicPartition("t", 0): PartitionState(
                leader=leader, leader_epoch=5, isr=isr, controller_epoch=1, version=8
            )
        },
    )


def test_the_next_in_sync_replica_takes_over() -> None:
    decision = decide(in_sync((0, 1, 2), 0, (0, 1, 2)), alive(1, 2))
    assert decision.writes == {
        TopicPartition("t", 0): PartitionState(
            leader=1, leader_epoch=6, isr=(1, 2), controller_epoch=1, version=9
        )
    }


def test_a_dead_follower_leaves_the_in_sync_set_and_the_leader_stays() -> None:
    decision = decide(in_sync((0, 1, 2), 0, (0, 1, 2)), alive(0, 1))
    state = decision.cluster.states[TopicPartition("t", 0)]
    assert (state.leader, state.isr, state.leader_epoch, state.version) == (0, (0, 1), 6, 9)


def test_a_broker_reborn_between_two_looks_is_dead_and_new_in_one_step() -> None:
    before = play(alive(0), topic("t", (0,)))
    decision = decide(before.cluster, BrokersChanged(live={0: broker(0, epoch=2)}))
    state = decision.cluster.states[TopicPartition("t", 0)]
    assert (state.leader, state.leader_epoch, state.version) == (0, 2, 1)
    assert decision.introduced == {0}


def test_a_reign_begins_by_electing_where_the_old_leader_died_meanwhile() -> None:
    inherited = in_sync((0, 1), 0, ())
    decision = decide(inherited, alive(1, 2))
    state = decision.cluster.states[TopicPartition("t", 0)]
    assert (state.leader, state.isr) == (1, (1,))
    assert decision.introduced == {1, 2}


def test_deletion_waits_for_a_copy_on_a_dead_broker() -> None:
    asked = play(alive(0, 1), topic("t", (0,), (1,)), alive(0), DeletionRequested(name="t"))
    assert asked.doomed == {Replica("t", 0, 0)}
    gone_here = decide(asked.cluster, ReplicasDeleted(replicas=frozenset({Replica("t", 0, 0)})))
    assert not gone_here.removed
    back = decide(gone_here.cluster, alive(0, 1))
    assert back.doomed == {Replica("t", 1, 1)}
    done = decide(back.cluster, ReplicasDeleted(replicas=frozenset({Replica("t", 1, 1)})))
    assert done.removed == {"t"}
    assert (dict(done.cluster.topics), dict(done.cluster.states)) == ({}, {})


def test_every_broker_hears_who_is_alive_when_one_dies_that_held_nothing() -> None:
    decision = play(alive(0, 1), alive(0))
    (told,) = announce(decision, CONTROLLER)
    assert isinstance(told.request, UpdateMetadataRequest)
    assert [live.id for live in told.request.live_brokers] == [0]


def test_a_newcomer_is_told_everything_and_the_others_what_changed() -> None:
    decision = play(alive(0), topic("t", (0,), (1,)), topic("uu", (0,)), alive(0, 1))
    told = announce(decision, CONTROLLER)
    kinds = [(one.broker_id, type(one.request).__name__) for one in told]
    assert kinds == [
        (0, "UpdateMetadataRequest"),
        (1, "LeaderAndIsrRequest"),
        (1, "UpdateMetadataRequest"),
    ]
    first, lead, everything = (one.request for one in told)
    assert isinstance(first, UpdateMetadataRequest)
    assert [state.topic_name for state in first.topic_states] == ["t"]
    assert isinstance(lead, LeaderAndIsrRequest)
    assert (lead.type, [state.topic_name for state in lead.topic_states]) == (2, ["t"])
    assert isinstance(everything, UpdateMetadataRequest)
    assert [state.topic_name for state in everything.topic_states] == ["t", "uu"]


def test_deletion_is_announced_as_kafka_does() -> None:
    decision = play(alive(0), topic("t", (0,)), DeletionRequested(name="t"))
    metadata, stop = (
        one.request
        for one in announce(decision, CONTROLLER)
        if not isinstance(one.request, LeaderAndIsrRequest)
    )
    assert isinstance(metadata, UpdateMetadataRequest)
    (state,) = metadata.topic_states[0].partition_states
    assert state.leader == LEADER_DURING_DELETE
    assert isinstance(stop, StopReplicaRequest)
    assert stop.topic_states[0].partition_states[0].delete_partition


BROKERS = range(4)


class ControllerMachine(RuleBasedStateMachine):
    """Brokers come, die and are reborn; topics come, grow and go; the rules always hold."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(controller_epoch=1)
        self.epochs = dict.fromkeys(BROKERS, 1)
        self.before = self.cluster
        self.made = 0

    def apply(self, event: Event) -> Decision:
        self.before = self.cluster
        decision = decide(self.cluster, event)
        assert announce(decision, CONTROLLER) == announce(decision, CONTROLLER)
        self.check_writes(decision)
        self.cluster = decision.cluster
        return decision

    def check_writes(self, decision: Decision) -> None:
        for name, state in decision.writes.items():
            old = self.before.states.get(name)
            assert state == decision.cluster.states[name]
            assert state.version == (0 if old is None else old.version + 1)
            assert old is None or state.leader_epoch > old.leader_epoch

    @rule(live=st.sets(st.sampled_from(BROKERS)), reborn=st.sets(st.sampled_from(BROKERS)))
    def brokers_change(self, live: set[int], reborn: set[int]) -> None:
        for id_ in reborn:
            self.epochs[id_] += 1
        registrations = {id_: broker(id_, self.epochs[id_]) for id_ in live}
        decision = self.apply(BrokersChanged(live=registrations))
        assert decision.introduced == {
            id_
            for id_ in live
            if id_ not in self.before.live or self.before.live[id_] != registrations[id_]
        }

    @rule(
        replicas=st.lists(
            st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True).map(tuple),
            min_size=1,
            max_size=4,
        )
    )
    def create_topic(self, replicas: list[tuple[int, ...]]) -> None:
        self.made += 1
        self.apply(topic(f"t{self.made}", *replicas))

    @precondition(lambda self: self.cluster.topics)
    @rule(data=st.data())
    def grow_topic(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.topics)))
        present = self.cluster.topics[name]
        added = data.draw(st.sampled_from(BROKERS))
        replicas = {**present.replicas, len(present.replicas): (added,)}
        grown = TopicAssignment(topic_id=present.topic_id, replicas=replicas)
        if name not in self.cluster.deleting:
            self.apply(TopicFound(name=name, assignment=grown))

    @precondition(lambda self: self.cluster.topics)
    @rule(data=st.data())
    def delete_topic(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.topics)))
        self.apply(DeletionRequested(name=name))

    @precondition(lambda self: self.cluster.deleting)
    @rule()
    def live_brokers_delete_their_copies(self) -> None:
        copies = {
            Replica(name, index, id_)
            for name in self.cluster.deleting
            for index, brokers in self.cluster.topics[name].replicas.items()
            for id_ in brokers
            if id_ in self.cluster.live
        }
        self.apply(ReplicasDeleted(replicas=frozenset(copies)))

    @invariant()
    def a_leader_is_alive_in_sync_and_a_replica(self) -> None:
        for name, state in self.cluster.states.items():
            if name.topic in self.cluster.deleting:
                continue
            assert state.isr
            assert set(state.isr) <= set(self.cluster.topics[name.topic].replicas[name.partition])
            if state.leader != NO_LEADER:
                assert state.leader in self.cluster.live
                assert state.leader in state.isr

    @invariant()
    def nobody_leads_only_where_nobody_can(self) -> None:
        for name in self.cluster.partitions():
            if name.topic in self.cluster.deleting:
                continue
            state = self.cluster.states.get(name)
            replicas = self.cluster.topics[name.topic].replicas[name.partition]
            if state is None:
                assert not self.cluster.live.keys() & set(replicas)
            elif state.leader == NO_LEADER:
                assert not self.cluster.live.keys() & set(state.isr)

    @invariant()
    def what_is_removed_is_gone_everywhere(self) -> None:
        assert self.cluster.deleting <= self.cluster.topics.keys()
        assert {name.topic for name in self.cluster.states} <= self.cluster.topics.keys()
        assert {one.topic for one in self.cluster.deleted_replicas} <= self.cluster.deleting


TestControllerMachine = ControllerMachine.TestCase
TestControllerMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
