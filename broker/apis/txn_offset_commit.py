"""TxnOffsetCommit: positions of a group that count once a producer's transaction commits."""

from collections.abc import Mapping
from typing import Final

from broker.apis.positions import sorted_out
from broker.context import Call
from broker.groups.offsets import CommittingInTransaction, OffsetToCommit
from broker.led_partition import CONSUMER_OFFSETS
from broker.replication.partition import Partition
from broker.transactions.decisions import Producer
from broker.transactions.verification import ASK_AGAIN
from wire.consumer_offsets import partition_for
from wire.errors import ErrorCode
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from wire.topic_partition import TopicPartition

ADDS_SINCE: Final = 5


async def handle(request: TxnOffsetCommitRequest, call: Call) -> TxnOffsetCommitResponse:
    """Answer once the positions are safe. They hold nothing until the transaction commits."""
    positions, missing = sorted_out(request, call)
    outcome = await _commit(request, positions, call) if positions else ErrorCode.NONE
    if isinstance(outcome, ErrorCode):
        outcome = dict.fromkeys((TopicPartition(p.topic, p.partition) for p in positions), outcome)
    return _response(request, {**missing, **outcome})


async def _commit(
    request: TxnOffsetCommitRequest, positions: tuple[OffsetToCommit, ...], call: Call
) -> ErrorCode | Mapping[TopicPartition, ErrorCode]:
    count = call.node.metadata.partition_count(CONSUMER_OFFSETS)
    if not count:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    led = call.node.led(CONSUMER_OFFSETS, partition_for(request.group_id, count))
    if not isinstance(led, Partition):
        return ErrorCode.NOT_COORDINATOR
    producer = Producer(producer_id=request.producer_id, epoch=request.producer_epoch)
    error = await call.node.verifier.verify(
        led, request.transactional_id, producer, adds=call.api_version >= ADDS_SINCE
    )
    if error in ASK_AGAIN:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # of whichever coordinator; ask again
    if error is not ErrorCode.NONE:
        is_fenced = error is ErrorCode.PRODUCER_FENCED
        return ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced else error
    committing = CommittingInTransaction(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        positions=positions,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
    )
    return await call.node.groups.ask(
        request.group_id,
        lambda shard, operation: shard.commit_in_transaction(committing, operation),
    )


def _response(
    request: TxnOffsetCommitRequest, outcomes: Mapping[TopicPartition, ErrorCode]
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=outcomes[TopicPartition(topic.name, partition.partition_index)],
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
