"""Try whether partitions take writes, without writing anything.

A batch with a wrong checksum is refused by every broker, and the reason tells what stands before
the checksum: nothing (CORRUPT_MESSAGE), a fence (NOT_ENOUGH_REPLICAS), a right that is missing
(TOPIC_AUTHORIZATION_FAILED). It is sent with acks=1, because with acks=all a partition that is
short of replicas would answer like a fenced one while it still took writes with acks=1.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from wire.errors import ErrorCode
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.net import Cluster, NetworkFault
from wire.net.retries import code_of
from wire.net.side_by_side import ask_each
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

PROBE_TIMEOUT_MS: Final = 3_000
LEADERS_AT_ONCE: Final = 16
"""Nobody may write meanwhile, and from afar each takes a round trip."""
CRC_AT: Final = 17


async def probe(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Return how each partition answers a write that cannot be appended. Raises NetworkFault."""
    wanted = sorted(set(partitions))
    topics = sorted({topic for topic, _ in wanted})
    view = await cluster.metadata(topics)
    by_leader: dict[int, list[TopicPartition]] = {}
    answers: dict[TopicPartition, ErrorCode] = {}
    for topic, partition in wanted:
        found = view.topics[topic].partitions.get(partition) if topic in view.topics else None
        if found is None or found.leader < 0:
            answers[TopicPartition(topic, partition)] = ErrorCode.LEADER_NOT_AVAILABLE
        else:
            by_leader.setdefault(found.leader, []).append(TopicPartition(topic, partition))

    async def ask(leader: int) -> dict[TopicPartition, ErrorCode]:
        return await _probe_broker(cluster, leader, by_leader[leader])

    for answered in (await ask_each(by_leader, ask, at_once=LEADERS_AT_ONCE)).values():
        answers |= answered
    for (topic, _), answer in answers.items():
        if answer in {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE}:
            cluster.forget(topic)
    return answers


async def _probe_broker(
    cluster: Cluster, leader: int, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    batch = unappendable_batch()
    topics: dict[str, list[PartitionProduceData]] = {}
    for topic, partition in partitions:
        data = PartitionProduceData(index=partition, records=batch)
        topics.setdefault(topic, []).append(data)
    request = ProduceRequest(
        acks=1,
        timeout_ms=PROBE_TIMEOUT_MS,
        topic_data=tuple(
            TopicProduceData(name=topic, partition_data=tuple(asked))
            for topic, asked in topics.items()
        ),
    )
    try:
        response = await cluster.request(request, node=leader)
    except NetworkFault:
        for topic in topics:
            cluster.forget(topic)
        raise
    return {
        TopicPartition(topic.name, partition.index): code_of(partition.error_code)
        for topic in response.responses
        for partition in topic.partition_responses
    }


def unappendable_batch() -> bytes:
    """Return a batch whose checksum is wrong, so that no broker ever appends it."""
    batch = bytearray(
        build_batch([Record(offset=0, timestamp_ms=0, key=None, value=b"probe", headers=())])
    )
    batch[CRC_AT] ^= 0xFF
    return bytes(batch)
