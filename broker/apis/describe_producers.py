"""DescribeProducers: who writes to a partition, and whose transaction is open there (KIP-664)."""

from broker.context import Call
from broker.fairness import Turns
from broker.log.producer_state import ProducerEntry
from broker.replication.partition import Partition
from wire.errors import ErrorCode
from wire.messages.describe_producers import (
    DescribeProducersPartitionResponse,
    DescribeProducersProducerState,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
)


async def handle(request: DescribeProducersRequest, call: Call) -> DescribeProducersResponse:
    """Answer for each partition that is led here."""
    turns = Turns()
    topics: list[DescribeProducersTopicResponse] = []
    for topic in request.topics:
        partitions: list[DescribeProducersPartitionResponse] = []
        for index in topic.partition_indexes:
            partitions.append(await _partition(topic.name, index, call, turns))
            await turns.pass_on()
        topics.append(DescribeProducersTopicResponse(name=topic.name, partitions=tuple(partitions)))
    return DescribeProducersResponse(topics=tuple(topics))


async def _partition(
    topic: str, index: int, call: Call, turns: Turns
) -> DescribeProducersPartitionResponse:
    led = call.node.led(topic, index)
    if not isinstance(led, Partition):
        return DescribeProducersPartitionResponse(
            partition_index=index, error_code=led, active_producers=()
        )
    return DescribeProducersPartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=await turns.each(led.log.producers(), _state),
    )


def _state(entry: ProducerEntry) -> DescribeProducersProducerState:
    return DescribeProducersProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.batches[-1].last_sequence if entry.batches else -1,
        last_timestamp=entry.last_timestamp_ms,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.transaction_first_offset,
    )
