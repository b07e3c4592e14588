"""Batches for a partition that has none, and a broker that answers the first as told."""

from collections import deque

from mirror.state.batches import Forward
from offset_translation.runs import Place
from tests.doubles.fake_answers import ANSWERS
from tests.doubles.fake_cluster import FakeCluster
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.record_batch import Record, build_batch


def forward(place: int) -> Forward:
    """A batch of one record for this target offset."""
    record = Record(offset=0, timestamp_ms=0, key=b"k", value=b"v", headers=())
    batch = build_batch([record], producer_id=1, producer_epoch=0, base_sequence=place)
    return Forward(Place(place), 1, place + 1, 0, len(batch), (batch,))


def answer_first_with(fake: FakeCluster, *codes: ErrorCode) -> list[int]:
    """Let the only broker refuse the first requests; return how many batches each brought."""
    seen: list[int] = []
    left = deque(codes)

    async def produce(header: RequestHeader, request: ProduceRequest) -> ProduceResponse:
        [topic] = request.topic_data
        seen.append(len(topic.partition_data))
        if not left:
            answer: ProduceResponse = ANSWERS[header.api_key](
                fake.brokers[0], header.api_version, request
            )
            return answer
        refused = PartitionProduceResponse(index=0, error_code=left.popleft(), base_offset=-1)
        return ProduceResponse(
            responses=(TopicProduceResponse(name=topic.name, partition_responses=(refused,)),)
        )

    fake.brokers[0].scripts[ProduceRequest.API_KEY] = produce
    return seen
