"""AddOffsetsToTxn: a group whose positions are going to be committed in a transaction."""

from typing import Final

from broker.context import Call
from broker.led_partition import CONSUMER_OFFSETS
from broker.transactions.decisions import Producer
from wire.consumer_offsets import partition_for
from wire.errors import ErrorCode
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from wire.topic_partition import TopicPartition

FENCED_SINCE: Final = 2


async def handle(request: AddOffsetsToTxnRequest, call: Call) -> AddOffsetsToTxnResponse:
    """Make the group's partition of `__consumer_offsets` part of the transaction."""
    count = call.node.metadata.partition_count(CONSUMER_OFFSETS)
    if not count:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    error = await call.node.transactions.add_partitions(
        request.transactional_id,
        Producer(producer_id=request.producer_id, epoch=request.producer_epoch),
        frozenset({TopicPartition(CONSUMER_OFFSETS, partition_for(request.group_id, count))}),
    )
    if error is ErrorCode.PRODUCER_FENCED and call.api_version < FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=error)
