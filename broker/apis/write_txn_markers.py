"""WriteTxnMarkers: a transaction coordinator has ends of transactions written into partitions."""

from broker.apis.cluster_action import REFUSED
from broker.context import Call
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
    outcomes: dict[TopicPartition, ErrorCode] = dict.fromkeys(names, REFUSED)
    if call.is_broker:
        ended = TransactionEnd(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            is_commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
        )
        outcomes = await write_markers(call.node, ended, names)
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
