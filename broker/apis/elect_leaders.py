"""ElectLeaders: preferred leaders back, or any replica at all where none is in sync (KIP-460)."""

from collections import defaultdict
from collections.abc import Mapping

import trio

from broker.apis.timeouts import timeout_s
from broker.apis.topic_waits import wait_topic
from broker.context import Call
from broker.controller.cluster import ApiError, Decision, Election, ElectionRequested
from wire.errors import ErrorCode
from wire.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)
from wire.topic_partition import TopicPartition


async def handle(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    """Answer when this broker knows the new leaders, or the client's time is over."""
    if request.election_type not in {election.value for election in Election}:
        return _refused(request, ErrorCode.INVALID_REQUEST)
    controller = call.node.controller
    cluster = controller.cluster
    if cluster is None:
        return _refused(request, ErrorCode.NOT_CONTROLLER)
    asked = _asked(request)
    wanted = frozenset(cluster.partitions()) if asked is None else asked
    event = ElectionRequested(election=Election(request.election_type), partitions=wanted)
    decision = await controller.ask(lambda _: event)
    if decision is None:
        return _refused(request, ErrorCode.NOT_CONTROLLER)
    with trio.move_on_after(timeout_s(request.timeout_ms)):
        await _wait_elected(decision, call)
    outcomes = {
        name: outcome
        for name, outcome in decision.outcomes.items()
        if asked is not None or outcome.error is not ErrorCode.ELECTION_NOT_NEEDED
    }
    return ElectLeadersResponse(
        error_code=ErrorCode.NONE, replica_election_results=_grouped(outcomes)
    )


def _asked(request: ElectLeadersRequest) -> frozenset[TopicPartition] | None:
    if request.topic_partitions is None:
        return None
    return frozenset(
        TopicPartition(topic.topic, index)
        for topic in request.topic_partitions
        for index in topic.partitions
    )


async def _wait_elected(decision: Decision, call: Call) -> None:
    for name, state in decision.writes.items():
        await wait_topic(
            call.node,
            name.topic,
            lambda view, name=name, epoch=state.leader_epoch: (  # type: ignore[misc]
                view is None
                or name.partition not in view.partitions
                or view.partitions[name.partition].leader_epoch >= epoch
            ),
        )


def _refused(request: ElectLeadersRequest, error: ErrorCode) -> ElectLeadersResponse:
    """Say so on top, and for each partition: before v1 there is no other place."""
    asked = _asked(request) or frozenset()
    return ElectLeadersResponse(
        error_code=error,
        replica_election_results=_grouped({name: ApiError(error) for name in asked}),
    )


def _grouped(outcomes: Mapping[TopicPartition, ApiError]) -> tuple[ReplicaElectionResult, ...]:
    by_topic: dict[str, list[ElectLeadersPartitionResult]] = defaultdict(list)
    for name, outcome in sorted(outcomes.items()):
        by_topic[name.topic].append(
            ElectLeadersPartitionResult(
                partition_id=name.partition,
                error_code=outcome.error,
                error_message=outcome.message,
            )
        )
    return tuple(
        ReplicaElectionResult(topic=topic, partition_result=tuple(results))
        for topic, results in by_topic.items()
    )
