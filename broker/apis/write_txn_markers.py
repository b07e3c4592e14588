"""WriteTxnMarkers: a transaction coordinator has ends of transactions written into partitions."""

from broker.apis.cluster_action import REFUSED
from broker.context import Call
from broker.replication.partition import Partition
from broker.transactions.marking import TransactionEnd, write_markers
from wire.errors import ErrorCode
from wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from wire.topic_partition import TopicPartition


async def handle(request: WriteTxnMarkersRequest, call: Call) -> WriteTxnMarkersResponse:
    """Answer for each marker and partition once it is committed, or why it is not."""
    return WriteTxnMarkersResponse(
        markers=tuple([await _write(marker, call) for marker in request.markers])
    )


async def _write(marker: WritableTxnMarker, call: Call) -> WritableTxnMarkerResult:
    names = [
        TopicPartition(topic.name, index)
        for topic in marker.topics
        for index in topic.partition_indexes
    ]
    ended = TransactionEnd(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
    )
    let = [name for name in names if call.is_broker or _is_abort_as_described(ended, name, call)]
    outcomes: dict[TopicPartition, ErrorCode] = dict.fromkeys(names, REFUSED)
    outcomes |= await write_markers(call.node, ended, let)
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=tuple(
                    WritableTxnMarkerPartitionResult(
                        partition_index=index,
                        error_code=outcomes[TopicPartition(topic.name, index)],
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in marker.topics
        ),
    )


def _is_abort_as_described(ended: TransactionEnd, name: TopicPartition, call: Call) -> bool:
    """Say whether it aborts an open transaction just as DescribeProducers tells of it (KIP-664).

    Without an authorizer everybody is an administrator. But a coordinator's epoch of a stranger's
    choice would keep the coordinator itself from ending what the producer writes later.
    """
    led = call.node.led(*name)
    if call.rights.are_limited or ended.is_commit or not isinstance(led, Partition):
        return False
    entry = led.log.producer(ended.producer_id)
    return (
        entry is not None
        and entry.transaction_first_offset >= 0
        and ended.producer_epoch == entry.epoch
        and ended.coordinator_epoch == max(0, entry.coordinator_epoch)
    )
