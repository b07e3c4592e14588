"""What a broker of the fake cluster answers, one small function for each API."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from tests.doubles.fake_groups import (
    describe_groups,
    find_coordinator,
    list_groups,
    offset_commit,
    offset_fetch,
)
from wire.errors import ErrorCode
from wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.record_batch import assign_offsets, parse_header

if TYPE_CHECKING:
    from tests.doubles.fake_cluster import FakeBroker, FakePartition

Answer: TypeAlias = Callable[["FakeBroker", int, Any], Any]


def metadata(broker: "FakeBroker", _: int, request: MetadataRequest) -> MetadataResponse:
    cluster = broker.cluster
    if request.topics is None:
        names = [name for name in broker.topics_heard_of if name not in cluster.hidden]
    else:
        names = [topic.name or "" for topic in request.topics]
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=peer.node_id, host=peer.address[0], port=peer.address[1])
            for peer in cluster.brokers.values()
        ),
        cluster_id="fake",
        controller_id=cluster.controller,
        topics=tuple(_metadata_topic(broker, name) for name in names),
    )


def _metadata_topic(broker: "FakeBroker", name: str) -> MetadataResponseTopic:
    topic = broker.topics_heard_of.get(name)
    if name in broker.cluster.hidden:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return MetadataResponseTopic(error_code=code, name=name, partitions=())
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponseTopic(error_code=code, name=name, partitions=())
    return MetadataResponseTopic(
        error_code=0,
        name=name,
        topic_id=topic.topic_id,
        partitions=tuple(
            MetadataResponsePartition(
                error_code=0 if held.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=held.leader,
                leader_epoch=held.leader_epoch,
                replica_nodes=(held.leader,),
                isr_nodes=(held.leader,),
            )
            for index, held in topic.partitions.items()
        ),
    )


def produce(broker: "FakeBroker", _: int, request: ProduceRequest) -> ProduceResponse | None:
    answer = ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                partition_responses=tuple(
                    _append(broker, topic.name, data) for data in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )
    return answer if request.acks else None


def _append(
    broker: "FakeBroker", topic: str, data: PartitionProduceData
) -> PartitionProduceResponse:
    held = _partition(broker, topic, data.index)
    if isinstance(held, ErrorCode):
        return PartitionProduceResponse(index=data.index, error_code=held, base_offset=-1)
    assert isinstance(data.records, memoryview)
    batch = bytearray(data.records)
    base_offset = held.end
    assign_offsets(batch, base_offset, 0)
    held.batches.append(bytes(batch))
    held.end = parse_header(batch).next_offset
    return PartitionProduceResponse(index=data.index, error_code=0, base_offset=base_offset)


def fetch(broker: "FakeBroker", version: int, request: FetchRequest) -> FetchResponse:
    """Answer at once, data or not: the client's long poll then is a short one."""
    names = {topic.topic_id: name for name, topic in broker.cluster.topics.items()}
    return FetchResponse(
        responses=tuple(
            FetchableTopicResponse(
                topic=topic.topic if version < 13 else "",
                topic_id=topic.topic_id if version >= 13 else UUID(int=0),
                partitions=tuple(
                    _read(
                        broker,
                        names.get(topic.topic_id, "") if version >= 13 else topic.topic,
                        wanted,
                    )
                    for wanted in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _read(broker: "FakeBroker", topic: str, wanted: FetchPartition) -> FetchPartitionData:
    held = _partition(broker, topic, wanted.partition)
    code = held if isinstance(held, ErrorCode) else _epoch_fault(held, wanted.current_leader_epoch)
    if isinstance(held, ErrorCode) or code or not held.start <= wanted.fetch_offset <= held.end:
        return FetchPartitionData(
            partition_index=wanted.partition,
            error_code=code or ErrorCode.OFFSET_OUT_OF_RANGE,
            high_watermark=-1,
            records=b"",
        )
    batches = [b for b in held.batches if parse_header(b).next_offset > wanted.fetch_offset]
    data = batches[0] if batches else b""
    for batch in batches[1:]:
        if len(data) + len(batch) > wanted.partition_max_bytes:
            break
        data += batch
    return FetchPartitionData(
        partition_index=wanted.partition,
        error_code=0,
        high_watermark=held.end,
        last_stable_offset=held.end,
        log_start_offset=held.start,
        records=data,
    )


def _epoch_fault(held: "FakePartition", claimed: int) -> ErrorCode:
    """As a broker does by KIP-320."""
    if claimed in {-1, held.leader_epoch}:
        return ErrorCode.NONE
    is_older = claimed < held.leader_epoch
    return ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.UNKNOWN_LEADER_EPOCH


def list_offsets(broker: "FakeBroker", _: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(_end(broker, topic.name, asked) for asked in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _end(
    broker: "FakeBroker", topic: str, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    held = _partition(broker, topic, asked.partition_index)
    if isinstance(held, ErrorCode):
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=held)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=0,
        offset=_offset_at(held, asked.timestamp),
    )


def _offset_at(held: "FakePartition", timestamp: int) -> int:
    if timestamp == -2:
        return held.start
    return max(held.start, held.tiered) if timestamp == -4 else held.end - held.uncommitted


def offset_for_leader_epoch(
    broker: "FakeBroker", _: int, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    _end_of_epoch(broker, topic.topic, asked) for asked in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _end_of_epoch(
    broker: "FakeBroker", topic: str, asked: OffsetForLeaderPartition
) -> OffsetForLeaderEpochEpochEndOffset:
    held = _partition(broker, topic, asked.partition)
    if isinstance(held, ErrorCode):
        return OffsetForLeaderEpochEpochEndOffset(error_code=held, partition=asked.partition)
    return OffsetForLeaderEpochEpochEndOffset(
        error_code=0,
        partition=asked.partition,
        leader_epoch=asked.leader_epoch,
        end_offset=held.end,
    )


def _partition(broker: "FakeBroker", topic: str, partition: int) -> "FakePartition | ErrorCode":
    found = broker.cluster.topics.get(topic)
    if found is None or partition not in found.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    held = found.partitions[partition]
    return held if held.leader == broker.node_id else ErrorCode.NOT_LEADER_OR_FOLLOWER


def init_producer_id(
    broker: "FakeBroker", _: int, __: InitProducerIdRequest
) -> InitProducerIdResponse:
    broker.cluster.last_producer_id += 1
    return InitProducerIdResponse(
        error_code=0, producer_id=broker.cluster.last_producer_id, producer_epoch=0
    )


ANSWERS: Final[Mapping[int, Answer]] = {
    0: produce,
    1: fetch,
    2: list_offsets,
    3: metadata,
    8: offset_commit,
    9: offset_fetch,
    10: find_coordinator,
    15: describe_groups,
    16: list_groups,
    22: init_producer_id,
    23: offset_for_leader_epoch,
}
