"""Partitions move to other brokers: every step of KIP-455, and every way back."""

from dataclasses import replace

import pytest

from broker.controller.announcements import announce
from broker.controller.cluster import (
    ApiError,
    BrokersChanged,
    Cluster,
    Decision,
    IsrChange,
    IsrProposed,
    MoveRequested,
    PartitionAndReplica,
)
from broker.controller.decisions import decide
from broker.controller.topics import plan_growth
from tests.broker.controller.clusters import T0, cluster, registered, state
from wire.errors import ErrorCode
from wire.messages.leader_and_isr import LeaderAndIsrRequest
from wire.messages.stop_replica import StopReplicaRequest

BEFORE = cluster({0: state(0, (0, 1))}, (0, 1))


def move(before: Cluster, target: tuple[int, ...] | None) -> Decision:
    return decide(before, MoveRequested(targets={T0: target}))


def in_sync(before: Cluster, *isr: int) -> Decision:
    known = before.states[T0]
    change = IsrChange(dict.fromkeys(isr, -1), known.leader_epoch, known.version)
    return decide(before, IsrProposed(broker_id=known.leader, changes={T0: change}))


def test_a_move_begins_with_both_sets_of_replicas() -> None:
    decision = move(BEFORE, (2, 3))
    topic = decision.begun["t"]
    assert (topic.replicas[0], topic.adding[0], topic.removing[0]) == (
        (2, 3, 0, 1),
        (2, 3),
        (0, 1),
    )
    assert (topic.origin(0), topic.target(0)) == ((0, 1), (2, 3))
    written = decision.writes[T0]
    assert (written.leader, written.isr, written.leader_epoch) == (0, (0, 1), 6)
    assert not decision.finished
    assert not decision.doomed


def test_the_new_replicas_are_told_that_they_are_new() -> None:
    told = {
        one.broker_id: one.request.topic_states[0].partition_states[0]
        for one in announce(move(BEFORE, (1, 2)), 9)
        if isinstance(one.request, LeaderAndIsrRequest)
    }
    assert {broker: known.is_new for broker, known in told.items()} == {
        0: False,
        1: False,
        2: True,
    }
    assert (told[0].adding_replicas, told[0].removing_replicas) == ((2,), (0,))


def test_a_move_is_finished_when_the_last_new_replica_is_in_sync() -> None:
    half = in_sync(move(BEFORE, (2, 3)).cluster, 0, 1, 2)
    assert not half.finished
    done = in_sync(half.cluster, 0, 1, 2, 3)
    topic = done.finished["t"]
    assert (topic.replicas[0], dict(topic.adding), dict(topic.removing)) == ((2, 3), {}, {})
    written = done.writes[T0]
    assert (written.leader, written.isr) == (2, (2, 3))
    assert written.version == half.cluster.states[T0].version + 1
    assert done.doomed == {PartitionAndReplica("t", 0, 0), PartitionAndReplica("t", 0, 1)}


def test_who_no_longer_holds_a_moved_partition_deletes_it_in_the_new_epoch() -> None:
    done = in_sync(move(BEFORE, (2, 1)).cluster, 0, 1, 2)
    (stop,) = [one for one in announce(done, 9) if isinstance(one.request, StopReplicaRequest)]
    assert stop.broker_id == 0
    assert isinstance(stop.request, StopReplicaRequest)
    (stopped,) = stop.request.topic_states[0].partition_states
    assert stopped.delete_partition
    assert stopped.leader_epoch == done.writes[T0].leader_epoch


def test_the_leader_stays_when_it_may() -> None:
    done = in_sync(move(BEFORE, (2, 0)).cluster, 0, 1, 2)
    assert (done.writes[T0].leader, done.writes[T0].isr) == (0, (0, 2))


def test_fewer_replicas_or_another_order_need_no_catching_up() -> None:
    fewer = move(BEFORE, (1,))
    assert fewer.finished["t"].replicas[0] == (1,)
    assert (fewer.writes[T0].leader, fewer.writes[T0].isr) == (1, (1,))
    assert fewer.doomed == {PartitionAndReplica("t", 0, 0)}
    turned = move(BEFORE, (1, 0))
    assert turned.cluster.topics["t"].replicas[0] == (1, 0)
    assert (turned.writes[T0].leader, turned.writes[T0].leader_epoch) == (0, 6)
    assert not turned.doomed


def test_a_cancelled_move_leaves_nothing_behind() -> None:
    half = in_sync(move(BEFORE, (2, 3)).cluster, 0, 1, 2)
    back = move(half.cluster, None)
    topic = back.cluster.topics["t"]
    assert (topic.replicas[0], dict(topic.adding), dict(topic.removing)) == ((0, 1), {}, {})
    assert (back.writes[T0].leader, back.writes[T0].isr) == (0, (0, 1))
    assert back.doomed == {PartitionAndReplica("t", 0, 2), PartitionAndReplica("t", 0, 3)}
    assert move(back.cluster, None).outcomes[T0].error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_another_target_takes_the_place_of_a_move_under_way() -> None:
    first = move(BEFORE, (2, 1))
    second = move(first.cluster, (3, 1))
    topic = second.begun["t"]
    assert (topic.replicas[0], topic.adding[0], topic.removing[0]) == ((3, 1, 0), (3,), (0,))
    assert second.doomed == {PartitionAndReplica("t", 0, 2)}


def test_a_move_is_not_given_up_when_only_the_new_replica_has_the_records() -> None:
    half = in_sync(move(BEFORE, (2,)).cluster, 0)
    alone = replace(half.cluster, states={T0: state(2, (2,))})
    assert move(alone, None).outcomes[T0].error is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("target", [(), (1, 1), (1, -1), (1, 8)])
def test_impossible_targets_are_refused(target: tuple[int, ...]) -> None:
    decision = move(BEFORE, target)
    assert decision.outcomes[T0].error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert decision.cluster == BEFORE
    assert not decision.begun


def test_a_partition_that_is_not_there_cannot_move() -> None:
    gone = replace(BEFORE, deleting=frozenset("t"))
    assert move(gone, (1,)).outcomes[T0].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_new_controller_goes_on_with_what_the_old_one_began() -> None:
    begun = replace(move(BEFORE, (2, 3)).cluster, live={})
    resumed = decide(begun, BrokersChanged(live=registered(0, 1, 2, 3)))
    assert resumed.writes[T0].leader_epoch == begun.states[T0].leader_epoch + 1
    assert resumed.cluster.topics["t"].moving() == {0}


def test_a_new_controller_finishes_what_the_old_one_had_only_to_note() -> None:
    """It died after the state and before the assignment was written."""
    begun = move(BEFORE, (2, 3)).cluster
    died = replace(begun, live={}, states={T0: state(2, (2, 3))})
    resumed = decide(died, BrokersChanged(live=registered(0, 1, 2, 3)))
    assert resumed.finished["t"].replicas[0] == (2, 3)
    assert resumed.doomed == {PartitionAndReplica("t", 0, 0), PartitionAndReplica("t", 0, 1)}


def test_a_topic_on_the_move_does_not_grow() -> None:
    refused = plan_growth(move(BEFORE, (2, 3)).cluster, "t", 3, None)
    assert isinstance(refused, ApiError)
    assert refused.error is ErrorCode.REASSIGNMENT_IN_PROGRESS
