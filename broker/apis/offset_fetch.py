"""OffsetFetch: how far groups have read.

Every answer waits until what it tells is safe. `require_stable` asks for more: that no open
transaction is about to change it (KIP-447).
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from broker.context import Call
from broker.fairness import Turns
from broker.groups.consumer.checks import fetch_error
from broker.groups.shard import Shard
from broker.groups.write_operation import WriteOperation
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
Who: TypeAlias = tuple[str | None, int]
"""The member that asks and its epoch (KIP-848)."""
NOBODY: Who = (None, -1)
Found: TypeAlias = tuple[int, OffsetValue, ErrorCode]
"""A partition, its position, and why that is not told."""


async def handle(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
    """Answer with the committed offsets; -1 where there is none."""
    turns = Turns()
    if call.api_version >= SEVERAL_GROUPS_SINCE:
        groups: list[OffsetFetchResponseGroup] = []
        for group in request.groups:
            groups.append(await _answer_group(group, request, call, turns))
            await turns.pass_on()
        return OffsetFetchResponse(groups=tuple(groups))
    committed = await _committed(request.group_id, request, call)
    if isinstance(committed, ErrorCode):
        return _refused(request, committed, call.api_version)
    topics: list[OffsetFetchResponseTopic] = []
    for topic, indexes in _wanted(request.topics, committed):
        values = _values(topic, indexes, committed)
        partitions = await turns.each(values, _partition)
        topics.append(OffsetFetchResponseTopic(name=topic, partitions=partitions))
    return OffsetFetchResponse(topics=tuple(topics))


async def _committed(
    group_id: str, request: OffsetFetchRequest, call: Call, who: Who = NOBODY
) -> Mapping[TopicPartition, OffsetValue | ErrorCode] | ErrorCode:
    """Return the offsets; UNSTABLE_OFFSET_COMMIT where one may change and must not be told."""

    def told(
        shard: Shard, _: WriteOperation
    ) -> ErrorCode | Mapping[TopicPartition, OffsetValue | ErrorCode]:
        error = fetch_error(shard.consumer.groups.get(group_id), *who)
        return _stable(shard, group_id, request) if error is ErrorCode.NONE else error

    return await call.node.groups.ask(group_id, told)


def _stable(
    shard: Shard, group_id: str, request: OffsetFetchRequest
) -> dict[TopicPartition, OffsetValue | ErrorCode]:
    told: dict[TopicPartition, OffsetValue | ErrorCode] = dict(shard.committed(group_id))
    if request.require_stable:
        told |= dict.fromkeys(shard.unstable(group_id), ErrorCode.UNSTABLE_OFFSET_COMMIT)
    return told


def _wanted(
    topics: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
    committed: Mapping[TopicPartition, OffsetValue | ErrorCode],
) -> list[tuple[str, list[int]]]:
    """Return the partitions asked for, by topic; null asks for all that are committed."""
    if topics is not None:
        return [(topic.name, list(topic.partition_indexes)) for topic in topics]
    by_topic: dict[str, list[int]] = {}
    for topic, index in committed:
        by_topic.setdefault(topic, []).append(index)
    return [(topic, sorted(indexes)) for topic, indexes in by_topic.items()]


def _values(
    topic: str,
    indexes: Iterable[int],
    committed: Mapping[TopicPartition, OffsetValue | ErrorCode],
) -> list[Found]:
    found: list[Found] = []
    for index in indexes:
        told = committed.get(TopicPartition(topic, index), NOTHING_COMMITTED)
        error, value = ErrorCode.NONE, told
        if isinstance(told, ErrorCode):
            error, value = told, NOTHING_COMMITTED
        assert isinstance(value, OffsetValue)
        found.append((index, value, error))
    return found


def _partition(found: Found) -> OffsetFetchResponsePartition:
    index, value, error = found
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        error_code=error,
    )


def _partition_of_group(found: Found) -> OffsetFetchResponsePartitions:
    index, value, error = found
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        error_code=error,
    )


async def _answer_group(
    group: OffsetFetchRequestGroup, request: OffsetFetchRequest, call: Call, turns: Turns
) -> OffsetFetchResponseGroup:
    who = group.member_id, group.member_epoch
    committed = await _committed(group.group_id, request, call, who)
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
