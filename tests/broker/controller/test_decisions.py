"""The controller's decisions by example: brokers, topics, deletions."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from broker.controller.announcements import announce
from broker.controller.cluster import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    BrokersChanged,
    Cluster,
    Decision,
    DeletionRequested,
    DiskFailed,
    Event,
    PartitionAndReplica,
    ReplicasDeleted,
    ReplicasFailed,
    TopicFound,
    UncleanAllowed,
)
from broker.controller.decisions import decide
from broker.zookeeper.tree import BrokerRegistration, LeaderAndIsr, TopicAssignment
from wire.messages.leader_and_isr import LeaderAndIsrRequest
from wire.messages.stop_replica import StopReplicaRequest
from wire.messages.update_metadata import UpdateMetadataRequest
from wire.topic_partition import TopicPartition

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
        TopicPartition("t", 0): LeaderAndIsr(
            leader=0, leader_epoch=0, isr=(0, 1), controller_epoch=1, version=0
        ),
        TopicPartition("t", 1): LeaderAndIsr(
            leader=1, leader_epoch=0, isr=(1,), controller_epoch=1, version=0
        ),
    }
    assert decision.announced == {TopicPartition("t", index) for index in range(3)}


def test_a_partition_without_a_live_replica_waits_for_one() -> None:
    decision = play(alive(0), topic("t", (2,)), alive(0, 2))
    assert leaders(decision.cluster) == {("t", 0): 2}
    assert decision.introduced == {2}


def test_a_dead_leader_that_was_alone_in_sync_leaves_the_partition_without_one() -> None:
    """The other replicas are alive but lack records: electing one would lose them."""
    decision = decide(in_sync((0,), 0, (0, 1, 2)), alive(1, 2))
    state = decision.cluster.states[TopicPartition("t", 0)]
    assert state == LeaderAndIsr(
        leader=NO_LEADER, leader_epoch=6, isr=(0,), controller_epoch=1, version=9
    )
    back = decide(decision.cluster, alive(0, 1)).cluster.states[TopicPartition("t", 0)]
    assert (back.leader, back.leader_epoch, back.isr) == (0, 7, (0,))


def test_all_brokers_hear_of_one_that_is_reached_elsewhere_in_the_same_life() -> None:
    before = in_sync((0, 1), 0, (0, 1))
    moved = {**before.live, 1: replace(before.live[1], host="elsewhere")}
    decision = decide(before, BrokersChanged(live=moved))
    assert decision.cluster == replace(before, live=moved)
    assert not decision.writes
    assert not decision.introduced
    told = [one for one in announce(decision, 0) if isinstance(one.request, UpdateMetadataRequest)]
    assert [one.broker_id for one in told] == [0, 1]
    assert not decide(decision.cluster, BrokersChanged(live=moved)).brokers_changed


def test_when_all_in_sync_die_at_once_the_first_to_return_leads() -> None:
    """Each of them has every acknowledged record; a replica that was not in sync has to wait."""
    dead = decide(in_sync((0, 1), 0, (0, 1, 2)), alive(2))
    state = dead.cluster.states[TopicPartition("t", 0)]
    assert (state.leader, state.isr) == (NO_LEADER, (0, 1))
    back = decide(dead.cluster, alive(1, 2)).cluster.states[TopicPartition("t", 0)]
    assert (back.leader, back.isr) == (1, (1,))


def test_where_it_is_allowed_a_replica_that_lacks_records_leads() -> None:
    before = replace(in_sync((0,), 0, (0, 1, 2)), unclean=frozenset({"t"}))
    state = decide(before, alive(1, 2)).cluster.states[TopicPartition("t", 0)]
    assert (state.leader, state.isr, state.recovery) == (1, (1,), 1)


def test_allowing_it_later_elects_at_once() -> None:
    dead = decide(in_sync((0,), 0, (0, 1, 2)), alive(1, 2))
    decision = decide(dead.cluster, UncleanAllowed(topics=frozenset({"t"})))
    state = decision.writes[TopicPartition("t", 0)]
    assert (state.leader, state.isr, state.recovery) == (1, (1,), 1)


def test_a_replica_whose_disk_failed_is_as_one_whose_broker_died() -> None:
    copy = frozenset({PartitionAndReplica("t", 0, 0)})
    decision = decide(in_sync((0, 1, 2), 0, (0, 1, 2)), ReplicasFailed(told=copy, failed=copy))
    state = decision.writes[TopicPartition("t", 0)]
    assert (state.leader, state.isr) == (1, (1, 2))
    again = decide(decision.cluster, ReplicasFailed(told=copy, failed=copy))
    assert again == Decision(cluster=decision.cluster)
    reborn = decide(
        decision.cluster,
        BrokersChanged(live={**decision.cluster.live, 0: broker(0, epoch=9)}),
    )
    assert not reborn.cluster.failed


def in_sync(
    isr: tuple[int, ...], leader: int, live: tuple[int, ...], *, written_zxid: int = -1
) -> Cluster:
    """Return a cluster in which replicas have caught up, as a leader will report one day."""
    found = play(alive(*live), topic("t", (0, 1, 2)))
    return Cluster(
        controller_epoch=1,
        live=found.cluster.live,
        topics=found.cluster.topics,
        states={
            TopicPartition("t", 0): LeaderAndIsr(
                leader=leader,
                leader_epoch=5,
                isr=isr,
                controller_epoch=1,
                version=8,
                written_zxid=written_zxid,
            )
        },
    )


def test_the_next_in_sync_replica_takes_over() -> None:
    decision = decide(in_sync((0, 1, 2), 0, (0, 1, 2)), alive(1, 2))
    assert decision.writes == {
        TopicPartition("t", 0): LeaderAndIsr(
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
    assert (state.leader, state.leader_epoch, state.version) == (0, 1, 1)
    assert decision.introduced == {0}


def test_a_controller_begins_by_electing_where_the_old_leader_died_meanwhile() -> None:
    inherited = in_sync((0, 1), 0, ())
    decision = decide(inherited, alive(1, 2))
    state = decision.cluster.states[TopicPartition("t", 0)]
    assert (state.leader, state.isr) == (1, (1,))
    assert decision.introduced == {1, 2}


def test_a_controller_begins_without_a_leader_that_came_back_while_nobody_looked() -> None:
    """Broker 0, leader and controller, may have another disk now."""
    inherited = in_sync((0, 1, 2), 0, (), written_zxid=7)
    live = {0: broker(0, epoch=9), 1: broker(1, epoch=8), 2: broker(2, epoch=3)}
    decision = decide(inherited, BrokersChanged(live=live))
    state = decision.cluster.states[TopicPartition("t", 0)]
    assert (state.leader, state.leader_epoch, state.isr) == (2, 6, (0, 1, 2))
    assert decision.writes == {TopicPartition("t", 0): state}


def test_who_seemed_to_have_stayed_does_not_cost_those_who_came_back_the_lead() -> None:
    """All were killed. The registrations of two still stand, and one of these comes never back."""
    inherited = in_sync((0, 1, 2), 0, (), written_zxid=7)
    live = {0: broker(0, epoch=9), 1: broker(1, epoch=3), 2: broker(2, epoch=3)}
    begun = decide(inherited, BrokersChanged(live=live))
    reborn = decide(begun.cluster, BrokersChanged(live={**live, 1: broker(1, epoch=10)}))
    del live[2]
    left = decide(reborn.cluster, BrokersChanged(live={**live, 1: broker(1, epoch=10)}))
    state = left.cluster.states[TopicPartition("t", 0)]
    assert (state.leader, state.isr) == (0, (0,))


def test_where_all_came_back_while_nobody_looked_all_is_as_it_was() -> None:
    inherited = in_sync((0, 1), 0, (), written_zxid=7)
    live = {0: broker(0, epoch=9), 1: broker(1, epoch=8)}
    decision = decide(inherited, BrokersChanged(live=live))
    assert decision.cluster.states == inherited.states
    assert not decision.writes


def test_deletion_waits_for_a_copy_on_a_dead_broker() -> None:
    asked = play(alive(0, 1), topic("t", (0,), (1,)), alive(0), DeletionRequested(name="t"))
    assert asked.doomed == {PartitionAndReplica("t", 0, 0)}
    gone_here = decide(
        asked.cluster, ReplicasDeleted(replicas=frozenset({PartitionAndReplica("t", 0, 0)}))
    )
    assert not gone_here.removed
    back = decide(gone_here.cluster, alive(0, 1))
    assert back.doomed == {PartitionAndReplica("t", 1, 1)}
    done = decide(
        back.cluster, ReplicasDeleted(replicas=frozenset({PartitionAndReplica("t", 1, 1)}))
    )
    assert done.removed == {"t"}
    assert (dict(done.cluster.topics), dict(done.cluster.states)) == ({}, {})


def test_a_broker_that_lost_a_folder_is_told_of_all_its_replicas_again() -> None:
    decision = decide(in_sync((0, 1), 0, (0, 1)), DiskFailed(brokers=frozenset({1, 7})))
    kinds = [(one.broker_id, type(one.request)) for one in announce(decision, CONTROLLER)]
    assert kinds == [(1, LeaderAndIsrRequest), (1, UpdateMetadataRequest)]
    assert not decision.writes


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


def test_a_newcomer_deletes_before_it_is_told_all_that_it_should_hold() -> None:
    before = play(alive(0, 1), topic("t", (0, 1)), alive(0), DeletionRequested(name="t"))
    back = decide(before.cluster, alive(0, 1))
    told = [type(one.request) for one in announce(back, CONTROLLER) if one.broker_id == 1]
    assert told == [StopReplicaRequest, LeaderAndIsrRequest, UpdateMetadataRequest]


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
