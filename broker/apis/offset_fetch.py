"""OffsetFetch: how far groups have read.

Every answer waits until what it tells is safe, so nothing unstable is ever told: `require_stable`
asks for what is always so. (Offsets of open transactions are not stored yet.)
"""

from collections.abc import Iterable, Mapping

from broker.context import Call
from broker.fairness import Turns
from wire.consumer_offsets import OffsetValue
from wire.errors import ErrorCode
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from wire.topic_partition import TopicPartition

SEVERAL_GROUPS_SINCE = 8
TOP_LEVEL_ERROR_SINCE = 2
NOTHING_COMMITTED = OffsetValue(offset=-1, commit_timestamp_ms=-1)


async def handle(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
    """Answer with the committed offsets; -1 where there is none."""
    turns = Turns()
    if call.api_version >= SEVERAL_GROUPS_SINCE:
        groups: list[OffsetFetchResponseGroup] = []
        for group in request.groups:
            groups.append(await _answer_group(group, call, turns))
            await turns.pass_on()
        return OffsetFetchResponse(groups=tuple(groups))
    committed = await _committed(request.group_id, call)
    if isinstance(committed, ErrorCode):
        return _refused(request, committed, call.api_version)
    topics: list[OffsetFetchResponseTopic] = []
    for topic, indexes in _wanted(request.topics, committed):
        values = _values(topic, indexes, committed)
        partitions = await turns.each(values, _partition)
        topics.append(OffsetFetchResponseTopic(name=topic, partitions=partitions))
    return OffsetFetchResponse(topics=tuple(topics))


async def _committed(group_id: str, call: Call) -> Mapping[TopicPartition, OffsetValue] | ErrorCode:
    return await call.node.groups.ask(
        group_id, lambda shard, _operation: dict(shard.committed(group_id))
    )


def _wanted(
    topics: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
    committed: Mapping[TopicPartition, OffsetValue],
) -> list[tuple[str, list[int]]]:
    """Return the partitions asked for, by topic; null asks for all that are committed."""
    if topics is not None:
        return [(topic.name, list(topic.partition_indexes)) for topic in topics]
    by_topic: dict[str, list[int]] = {}
    for topic, index in committed:
        by_topic.setdefault(topic, []).append(index)
    return [(topic, sorted(indexes)) for topic, indexes in by_topic.items()]


def _values(
    topic: str, indexes: Iterable[int], committed: Mapping[TopicPartition, OffsetValue]
) -> list[tuple[int, OffsetValue]]:
    return [
        (index, committed.get(TopicPartition(topic, index), NOTHING_COMMITTED)) for index in indexes
    ]


def _partition(found: tuple[int, OffsetValue]) -> OffsetFetchResponsePartition:
    index, value = found
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        error_code=ErrorCode.NONE,
    )


def _partition_of_group(found: tuple[int, OffsetValue]) -> OffsetFetchResponsePartitions:
    index, value = found
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        error_code=ErrorCode.NONE,
    )


async def _answer_group(
    group: OffsetFetchRequestGroup, call: Call, turns: Turns
) -> OffsetFetchResponseGroup:
    committed = await _committed(group.group_id, call)
    if isinstance(committed, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=committed)
    topics = []
    for topic, indexes in _wanted(group.topics, committed):
        values = _values(topic, indexes, committed)
        partitions = await turns.each(values, _partition_of_group)
        topics.append(OffsetFetchResponseTopics(name=topic, partitions=partitions))
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=tuple(topics))


def _refused(
    request: OffsetFetchRequest, error: ErrorCode, api_version: int
) -> OffsetFetchResponse:
    """Refuse the whole request; before version 2 only partitions can carry an error."""
    if api_version >= TOP_LEVEL_ERROR_SINCE:
        return OffsetFetchResponse(error_code=error)
    return OffsetFetchResponse(
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=NOTHING_COMMITTED.offset,
                        metadata="",
                        error_code=error,
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        )
    )
