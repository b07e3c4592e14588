"""Calls of our client that interop tests share."""

from collections.abc import Mapping
from typing import Final

import trio

from wire.errors import ErrorCode
from wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from wire.net import Cluster
from wire.net.operations import list_offsets, read_partition
from wire.record_batch import Record, iterate_records
from wire.topic_partition import TopicPartition

PAUSE_S: Final = 0.1
STARTING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)
"""What a broker says of a new topic, or of producer ids, before it has caught up."""


async def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = 1,
    settings: Mapping[str, str] | None = None,
    replication_factor: int = 1,
) -> int:
    """Create a topic and return Kafka's error code; a topic that was made has leaders.

    It keeps records of any age, unless `settings` say otherwise: tests choose odd timestamps.
    """
    configs = {"retention.ms": "-1"} | dict(settings or {})
    answer = await cluster.request_controller(
        CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=replication_factor,
                    assignments=(),
                    configs=tuple(
                        CreatableTopicConfig(name=key, value=value)
                        for key, value in configs.items()
                    ),
                ),
            ),
            timeout_ms=10_000,
        )
    )
    code = answer.topics[0].error_code
    if code == ErrorCode.NONE:
        await wait_leaders(cluster, name, partitions)
    return code


async def wait_leaders(cluster: Cluster, topic: str, partitions: int) -> None:
    """Return once every leader answers for its partition; the caller owns the timeout."""
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    while True:
        ends = await list_offsets(cluster, places)
        if not any(isinstance(end, ErrorCode) for end in ends.values()):
            return
        await trio.sleep(PAUSE_S)


async def allocate_producer(cluster: Cluster) -> InitProducerIdResponse:
    """Return a fresh producer id; asks again while the broker waits for its block of ids."""
    while True:
        given = await cluster.request(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        )
        if given.error_code not in STARTING:
            return given
        await trio.sleep(PAUSE_S)


async def read_records(cluster: Cluster, topic: str, partition: int, stop: int) -> list[Record]:
    """Return all records of a partition before `stop`, control records left out."""
    records: list[Record] = []
    async for header, batch in read_partition(cluster, topic, partition, 0, stop):
        if not header.is_control:
            records += iterate_records(batch)
    return records
