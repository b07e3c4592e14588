"""DescribeTopicPartitions: topics in the order of their names, so many partitions at a time.

A page ends within a topic where its limit is reached; the cursor says where the next one begins.
"""

from collections.abc import Sequence
from typing import Final

from broker.apis.metadata import ALL_TOPIC_OPERATIONS, described_partition
from broker.context import Call
from broker.controller.topics import INTERNAL_TOPICS
from broker.fairness import Turns
from broker.metadata_cache import PartitionView, TopicView
from wire.errors import ErrorCode
from wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

MOST_PARTITIONS: Final = 2_000
"""Kafka's default of max.request.partition.size.limit."""


async def handle(
    request: DescribeTopicPartitionsRequest, call: Call
) -> DescribeTopicPartitionsResponse:
    """Answer with one page, from what the controller last announced."""
    await call.node.wait_metadata()
    cursor = request.cursor or Cursor(topic_name="", partition_index=0)
    names = names_of(request, call, cursor)
    if cursor.partition_index < 0:
        wrong = tuple(unknown(name, ErrorCode.INVALID_REQUEST) for name in names)
        return DescribeTopicPartitionsResponse(topics=wrong)
    left = max(1, min(MOST_PARTITIONS, request.response_partition_limit))
    told: list[DescribeTopicPartitionsResponseTopic] = []
    turns = Turns()
    for name in names:
        first = cursor.partition_index if name == cursor.topic_name else 0
        if left == 0:
            return _page(told, Cursor(topic_name=name, partition_index=first))
        view = call.node.metadata.topic(name)
        if view is None:
            told.append(unknown(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        views = [view.partitions[index] for index in sorted(view.partitions) if index >= first]
        told.append(_known(view, views[:left], call))
        if len(views) > left:
            return _page(told, Cursor(topic_name=name, partition_index=views[left].index))
        left -= len(views)
        await turns.pass_on()
    return _page(told, None)


def names_of(request: DescribeTopicPartitionsRequest, call: Call, cursor: Cursor) -> list[str]:
    """Return the topics that are still to be told, in order."""
    named = {topic.name for topic in request.topics} or set(call.node.metadata.topics())
    return sorted(name for name in named if name >= cursor.topic_name)


def _page(
    told: Sequence[DescribeTopicPartitionsResponseTopic], cursor: Cursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=tuple(told), next_cursor=cursor)


def unknown(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    """Return what is told of a topic of which nothing else is."""
    return DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, is_internal=name in INTERNAL_TOPICS, partitions=()
    )


def _known(
    view: TopicView, partitions: Sequence[PartitionView], call: Call
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=view.name,
        topic_id=view.topic_id,
        is_internal=view.name in INTERNAL_TOPICS,
        partitions=tuple(_partition(call, one) for one in partitions),
        topic_authorized_operations=ALL_TOPIC_OPERATIONS,
    )


def _partition(call: Call, view: PartitionView) -> DescribeTopicPartitionsResponsePartition:
    told = described_partition(call, view)
    return DescribeTopicPartitionsResponsePartition(
        error_code=told.error_code,
        partition_index=told.partition_index,
        leader_id=told.leader_id,
        leader_epoch=told.leader_epoch,
        replica_nodes=told.replica_nodes,
        isr_nodes=told.isr_nodes,
        eligible_leader_replicas=(),
        last_known_elr=(),
        offline_replicas=told.offline_replicas,
    )
