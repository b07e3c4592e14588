"""The controller's requests, from message to message, over a controller without ZooKeeper."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import UUID

import pytest

from broker.apis import (
    alter_partition,
    alter_partition_reassignments,
    controlled_shutdown,
    elect_leaders,
    list_partition_reassignments,
)
from broker.context import Call, Node
from broker.controller.cluster import Cluster, Decision, Event
from broker.controller.decisions import decide
from broker.metadata_cache import MetadataCache
from tests.broker.controller.clusters import T0, cluster, state
from wire.errors import ErrorCode
from wire.messages.alter_partition import (
    AlterPartitionBrokerState,
    AlterPartitionPartition,
    AlterPartitionRequest,
    AlterPartitionTopic,
)
from wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.messages.controlled_shutdown import ControlledShutdownRequest
from wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopicPartitions
from wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


class Deciding:
    """A controller that decides and does nothing; without a cluster it is not the controller."""

    def __init__(self, found: Cluster | None) -> None:
        self.cluster = found

    async def ask(
        self, ask: Callable[[Cluster], Event], *, is_told: bool = True
    ) -> Decision | None:
        assert isinstance(is_told, bool)
        if self.cluster is None:
            return None
        decision = decide(self.cluster, ask(self.cluster))
        self.cluster = decision.cluster
        return decision


@dataclass
class FakeNode:
    """What these handlers see of a broker."""

    controller: Deciding
    metadata: MetadataCache


def call(found: Cluster | None) -> Call:
    node = FakeNode(Deciding(found), MetadataCache("c"))
    return Call(
        node=cast("Node", node),
        api_version=3,
        client_id=None,
        client_host="h",
        is_broker=True,
    )


def alteration(
    isr: tuple[int, ...], *, broker_epoch: int = 100, topic_id: int = 1
) -> AlterPartitionRequest:
    partition = AlterPartitionPartition(
        partition_index=0,
        leader_epoch=5,
        partition_epoch=8,
        new_isr_with_epochs=tuple(AlterPartitionBrokerState(broker_id=id_) for id_ in isr),
    )
    topic = AlterPartitionTopic(topic_id=UUID(int=topic_id), partitions=(partition,))
    return AlterPartitionRequest(broker_id=0, broker_epoch=broker_epoch, topics=(topic,))


async def test_an_altered_partition_is_answered_with_its_state() -> None:
    request = alteration((0, 1))
    answer = await alter_partition.handle(request, call(cluster({0: state(0, (0, 1, 2))})))
    (topic,) = answer.topics
    (result,) = topic.partitions
    assert (answer.error_code, result.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert (result.leader_id, result.leader_epoch, result.isr, result.partition_epoch) == (
        0,
        5,
        (0, 1),
        9,
    )


async def test_before_v3_the_isr_comes_without_epochs() -> None:
    request = alteration(())
    (topic,) = request.topics
    (partition,) = topic.partitions
    older = replace(
        request, topics=(replace(topic, partitions=(replace(partition, new_isr=(0, 2)),)),)
    )
    answer = await alter_partition.handle(older, call(cluster({0: state(0, (0, 1, 2))})))
    assert answer.topics[0].partitions[0].isr == (0, 2)


@pytest.mark.parametrize(
    ("request_", "found", "expected"),
    [
        (alteration((0,)), None, ErrorCode.NOT_CONTROLLER),
        (alteration((0,)), cluster({0: state(0, (0,))}, live=(1, 2)), ErrorCode.STALE_BROKER_EPOCH),
        (
            alteration((0,), broker_epoch=99),
            cluster({0: state(0, (0,))}),
            ErrorCode.STALE_BROKER_EPOCH,
        ),
    ],
)
async def test_an_alteration_is_refused_as_a_whole(
    request_: AlterPartitionRequest, found: Cluster | None, expected: ErrorCode
) -> None:
    answer = await alter_partition.handle(request_, call(found))
    assert answer.error_code == expected
    assert not answer.topics


async def test_a_refused_partition_says_why_and_an_unknown_topic_too() -> None:
    found = cluster({0: state(0, (0, 1))}, live=(0, 1))
    answer = await alter_partition.handle(alteration((0, 1, 2)), call(found))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INELIGIBLE_REPLICA
    answer = await alter_partition.handle(alteration((0,), topic_id=9), call(found))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_leaving_broker_hears_what_nobody_else_can_lead() -> None:
    found = cluster({0: state(0, (0, 1)), 1: state(0, (0,))})
    request = ControlledShutdownRequest(broker_id=0, broker_epoch=100)
    answer = await controlled_shutdown.handle(request, call(found))
    assert answer.error_code == ErrorCode.NONE
    (left,) = answer.remaining_partitions
    assert (left.topic_name, left.partition_index) == ("t", 1)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (ControlledShutdownRequest(broker_id=8), ErrorCode.BROKER_NOT_AVAILABLE),
        (ControlledShutdownRequest(broker_id=0, broker_epoch=5), ErrorCode.STALE_BROKER_EPOCH),
    ],
)
async def test_who_is_not_here_cannot_leave(
    request_: ControlledShutdownRequest, expected: ErrorCode
) -> None:
    answer = await controlled_shutdown.handle(request_, call(cluster({0: state(0, (0, 1))})))
    assert answer.error_code == expected


def election(*partitions: int, kind: int = 0) -> ElectLeadersRequest:
    asked = (ElectLeadersTopicPartitions(topic="t", partitions=partitions),)
    return ElectLeadersRequest(
        election_type=kind, topic_partitions=asked if partitions else None, timeout_ms=0
    )


def outcomes(answer: Any) -> dict[int, int]:
    return {
        result.partition_id: result.error_code
        for topic in answer.replica_election_results
        for result in topic.partition_result
    }


async def test_an_election_answers_for_each_partition_asked_for() -> None:
    found = cluster({0: state(1, (1, 0)), 1: state(0, (0, 1)), 2: state(1, (1,))})
    answer = await elect_leaders.handle(election(0, 1, 2), call(found))
    assert answer.error_code == ErrorCode.NONE
    assert outcomes(answer) == {
        0: ErrorCode.NONE,
        1: ErrorCode.ELECTION_NOT_NEEDED,
        2: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }


async def test_an_election_everywhere_is_silent_where_none_was_needed() -> None:
    found = cluster({0: state(1, (1, 0)), 1: state(0, (0, 1))})
    assert outcomes(await elect_leaders.handle(election(), call(found))) == {0: ErrorCode.NONE}


async def test_an_election_is_refused_by_who_is_not_the_controller_and_of_an_unknown_kind() -> None:
    refused = await elect_leaders.handle(election(0), call(None))
    assert refused.error_code == ErrorCode.NOT_CONTROLLER
    assert outcomes(refused) == {0: ErrorCode.NOT_CONTROLLER}
    odd = await elect_leaders.handle(election(0, kind=7), call(cluster({0: state(0, (0,))})))
    assert odd.error_code == ErrorCode.INVALID_REQUEST


def reassignment(**targets: tuple[int, ...] | None) -> AlterPartitionReassignmentsRequest:
    partitions = tuple(
        ReassignablePartition(partition_index=int(name[1:]), replicas=replicas)
        for name, replicas in targets.items()
    )
    return AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name="t", partitions=partitions),)
    )


async def test_moves_are_begun_listed_and_cancelled() -> None:
    asked = call(cluster({0: state(0, (0, 1)), 1: state(0, (0, 1))}, (0, 1)))
    answer = await alter_partition_reassignments.handle(reassignment(p0=(3, 1), p1=(1, 1)), asked)
    (topic,) = answer.responses
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [
        (0, ErrorCode.NONE),
        (1, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ]
    listed = await list_partition_reassignments.handle(ListPartitionReassignmentsRequest(), asked)
    (ongoing,) = listed.topics
    (one,) = ongoing.partitions
    assert (one.replicas, one.adding_replicas, one.removing_replicas) == ((3, 1, 0), (3,), (0,))
    await alter_partition_reassignments.handle(reassignment(p0=None), asked)
    listed = await list_partition_reassignments.handle(ListPartitionReassignmentsRequest(), asked)
    assert listed.topics == ()


async def test_only_the_moves_asked_for_are_listed() -> None:
    asked = call(cluster({0: state(0, (0, 1))}, (0, 1)))
    await alter_partition_reassignments.handle(reassignment(p0=(3, 1)), asked)
    for name, indexes, count in (("t", (0,), 1), ("t", (5,), 0), ("u", (0,), 0)):
        topic = ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
        request = ListPartitionReassignmentsRequest(topics=(topic,))
        listed = await list_partition_reassignments.handle(request, asked)
        assert len(listed.topics) == count
    assert T0 in cast("Cluster", asked.node.controller.cluster).states


async def test_moves_are_the_controllers_business() -> None:
    nobody = call(None)
    moved = await alter_partition_reassignments.handle(reassignment(p0=(1,)), nobody)
    listed = await list_partition_reassignments.handle(ListPartitionReassignmentsRequest(), nobody)
    assert moved.error_code == listed.error_code == ErrorCode.NOT_CONTROLLER
