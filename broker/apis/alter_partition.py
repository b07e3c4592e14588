"""AlterPartition: a leader wants other in-sync replicas; the controller alone decides (KIP-497)."""

from collections.abc import Mapping

from broker.apis.cluster_action import REFUSED
from broker.context import Call
from broker.controller.cluster import (
    UNKNOWN_BROKER_EPOCH,
    Cluster,
    Decision,
    IsrChange,
    IsrProposed,
)
from wire.errors import ErrorCode
from wire.messages.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    AlterPartitionTopicResult,
)
from wire.topic_partition import TopicPartition


async def handle(request: AlterPartitionRequest, call: Call) -> AlterPartitionResponse:
    """Answer with the states as they are now; a leader takes them over from there."""
    if not call.is_broker:
        return AlterPartitionResponse(error_code=REFUSED)
    controller = call.node.controller
    cluster = controller.cluster
    if cluster is None:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    broker = cluster.live.get(request.broker_id)
    if broker is None or request.broker_epoch not in {UNKNOWN_BROKER_EPOCH, broker.epoch}:
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    decision = await controller.ask(lambda now: proposal(request, now), is_told=False)
    if decision is None:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return answer(request, decision)


def proposal(request: AlterPartitionRequest, cluster: Cluster) -> IsrProposed:
    """Return what is asked, without topics that do not exist."""
    names = _names(request, cluster)
    return IsrProposed(
        broker_id=request.broker_id,
        changes={
            TopicPartition(name, partition.partition_index): _change(partition)
            for topic in request.topics
            if (name := names.get(topic.topic_id)) is not None
            for partition in topic.partitions
        },
    )


def answer(request: AlterPartitionRequest, decision: Decision) -> AlterPartitionResponse:
    """Return each partition's state, or why it was not changed."""
    names = _names(request, decision.cluster)
    return AlterPartitionResponse(
        error_code=ErrorCode.NONE,
        topics=tuple(
            AlterPartitionTopicResult(
                topic_id=topic.topic_id,
                partitions=_results(topic, names.get(topic.topic_id), decision),
            )
            for topic in request.topics
        ),
    )


def _names(request: AlterPartitionRequest, cluster: Cluster) -> Mapping[object, str]:
    asked = {topic.topic_id for topic in request.topics}
    return {
        topic.topic_id: name for name, topic in cluster.topics.items() if topic.topic_id in asked
    }


def _change(partition: AlterPartitionPartition) -> IsrChange:
    isr = {member.broker_id: member.broker_epoch for member in partition.new_isr_with_epochs}
    return IsrChange(
        isr=isr or dict.fromkeys(partition.new_isr, UNKNOWN_BROKER_EPOCH),
        leader_epoch=partition.leader_epoch,
        version=partition.partition_epoch,
        recovery=partition.leader_recovery_state,
    )


def _results(
    topic: AlterPartitionTopic, name: str | None, decision: Decision
) -> tuple[AlterPartitionPartitionResult, ...]:
    return tuple(
        AlterPartitionPartitionResult(
            partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_ID
        )
        if name is None
        else _result(TopicPartition(name, partition.partition_index), decision)
        for partition in topic.partitions
    )


def _result(partition: TopicPartition, decision: Decision) -> AlterPartitionPartitionResult:
    outcome = decision.outcomes.get(partition)
    state = decision.cluster.states.get(partition)
    if outcome is None or state is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return AlterPartitionPartitionResult(partition_index=partition.partition, error_code=error)
    if outcome.error is not ErrorCode.NONE:
        return AlterPartitionPartitionResult(
            partition_index=partition.partition, error_code=outcome.error
        )
    return AlterPartitionPartitionResult(
        partition_index=partition.partition,
        error_code=ErrorCode.NONE,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        leader_recovery_state=state.recovery,
        partition_epoch=state.version,
    )
