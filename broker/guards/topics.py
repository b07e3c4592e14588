"""Guards of what is done with topics.

A topic that may not be used is answered with TOPIC_AUTHORIZATION_FAILED, whether it exists or not:
nobody learns from it which topics there are.
"""

from dataclasses import replace
from functools import partial
from typing import Any, Final

from broker.context import Call, Handler
from broker.guards.cluster import told_of_cluster
from broker.guards.guard import as_broker, may_topic, sorted_out
from wire.acls import Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopicResult,
)
from wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
)
from wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopicResult,
)
from wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from wire.messages.describe_producers import (
    DescribeProducersPartitionResponse,
    DescribeProducersRequest,
    DescribeProducersTopicResponse,
)
from wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from wire.messages.fetch import FetchRequest, replica_of
from wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopicResponse,
)
from wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from wire.primitives import ZERO_UUID

REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NULL_NAME_SINCE: Final = 12
"""Of Metadata: an answer by topic id may leave the name away."""


async def fetch(request: FetchRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Take a follower with CLUSTER_ACTION for a broker; of consumers the handler asks itself."""
    is_let = replica_of(request) >= 0 and call.rights.may_cluster(Operation.CLUSTER_ACTION)
    return await handle(request, as_broker(call) if is_let else call)


async def list_offsets(request: ListOffsetsRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Let those pass that may be described."""
    kept, refused = await sorted_out(
        request.topics, lambda topic: may_topic(call, Operation.DESCRIBE, topic.name)
    )
    answer = await handle(replace(request, topics=kept), call)
    own = tuple(
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=tuple(
                ListOffsetsPartitionResponse(
                    partition_index=one.partition_index, error_code=REFUSED
                )
                for one in topic.partitions
            ),
        )
        for topic in refused
    )
    return replace(answer, topics=answer.topics + own)


async def delete_records(request: DeleteRecordsRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Let those pass that may be deleted."""
    kept, refused = await sorted_out(
        request.topics, lambda topic: may_topic(call, Operation.DELETE, topic.name)
    )
    answer = await handle(replace(request, topics=kept), call)
    own = tuple(
        DeleteRecordsTopicResult(
            name=topic.name,
            partitions=tuple(
                DeleteRecordsPartitionResult(
                    partition_index=one.partition_index, low_watermark=-1, error_code=REFUSED
                )
                for one in topic.partitions
            ),
        )
        for topic in refused
    )
    return replace(answer, topics=answer.topics + own)


async def describe_producers(request: DescribeProducersRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Let those pass that may be read."""
    kept, refused = await sorted_out(
        request.topics, lambda topic: may_topic(call, Operation.READ, topic.name)
    )
    answer = await handle(replace(request, topics=kept), call)
    own = tuple(
        DescribeProducersTopicResponse(
            name=topic.name,
            partitions=tuple(
                DescribeProducersPartitionResponse(
                    partition_index=index, error_code=REFUSED, active_producers=()
                )
                for index in topic.partition_indexes
            ),
        )
        for topic in refused
    )
    return replace(answer, topics=answer.topics + own)


async def create_partitions(request: CreatePartitionsRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Let those pass that may be altered."""
    kept, refused = await sorted_out(
        request.topics, lambda topic: may_topic(call, Operation.ALTER, topic.name)
    )
    answer = await handle(replace(request, topics=kept), call)
    own = tuple(
        CreatePartitionsTopicResult(name=topic.name, error_code=REFUSED) for topic in refused
    )
    return replace(answer, results=answer.results + own)


async def create_topics(request: CreateTopicsRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Let those pass that may be created; the settings are told to who may describe those."""
    kept, refused = await sorted_out(request.topics, lambda topic: _may_create(call, topic.name))
    answer = await handle(replace(request, topics=kept), call)
    own = tuple(
        CreatableTopicResult(
            name=topic.name, error_code=REFUSED, error_message="Authorization failed."
        )
        for topic in refused
    )
    return replace(
        answer, topics=tuple(_without_settings(one, call) for one in answer.topics) + own
    )


def _may_create(call: Call, name: str) -> bool:
    return call.rights.may_cluster(Operation.CREATE) or may_topic(call, Operation.CREATE, name)


def _without_settings(created: CreatableTopicResult, call: Call) -> CreatableTopicResult:
    if created.error_code or may_topic(call, Operation.DESCRIBE_CONFIGS, created.name):
        return created
    return replace(
        created,
        topic_config_error_code=REFUSED,
        num_partitions=-1,
        replication_factor=-1,
        configs=(),
    )


async def delete_topics(request: DeleteTopicsRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Let those pass that may be deleted. Who names an id learns its name by DESCRIBE only."""
    asked = request.topics or tuple(
        DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names
    )
    kept, refused = await sorted_out(asked, lambda topic: _may_delete(topic, call))
    answer = await handle(
        replace(
            request,
            topics=kept if request.topics else (),
            topic_names=tuple(topic.name or "" for topic in kept) if not request.topics else (),
        ),
        call,
    )
    own = tuple(
        DeletableTopicResult(
            name=_name_told(topic, call), topic_id=topic.topic_id, error_code=REFUSED
        )
        for topic in refused
    )
    return replace(answer, responses=answer.responses + own)


def _name_of(topic: DeleteTopicState | MetadataRequestTopic, call: Call) -> str | None:
    """Return the name of a topic that is named by either; None for an id that nobody has."""
    if topic.topic_id == ZERO_UUID:
        return topic.name or ""
    view = call.node.metadata.topic_by_id(topic.topic_id)
    return None if view is None else view.name


def _may_delete(topic: DeleteTopicState, call: Call) -> bool:
    name = _name_of(topic, call)
    if name is None:
        return True  # the handler says that there is no such id, which tells nothing
    if topic.topic_id != ZERO_UUID and not may_topic(call, Operation.DESCRIBE, name):
        return False
    return may_topic(call, Operation.DELETE, name)


def _name_told(topic: DeleteTopicState, call: Call) -> str | None:
    name = _name_of(topic, call)
    is_by_id = topic.topic_id != ZERO_UUID
    may_know = name is not None and may_topic(call, Operation.DESCRIBE, name)
    return name if not is_by_id or may_know else None


async def metadata(request: MetadataRequest, call: Call, handle: Handler) -> MetadataResponse:
    """Tell of topics that may be described; of all topics the others are left out silently."""
    await call.node.wait_metadata()
    may_describe = partial(may_topic, call, Operation.DESCRIBE)
    if request.topics is None or (call.api_version == 0 and not request.topics):
        answer: MetadataResponse = await handle(request, call)
        topics, _ = await sorted_out(answer.topics, lambda topic: may_describe(topic.name or ""))
        return _with_operations(replace(answer, topics=topics), request, call)

    def is_told(topic: MetadataRequestTopic) -> bool:
        name = _name_of(topic, call)
        return name is None or (may_describe(name) and not _is_uncreatable(name, request, call))

    kept, refused = await sorted_out(request.topics, is_told)
    # Without any topic, version 0 would mean all of them.
    answer = await handle(replace(request, topics=kept), call)
    told = answer.topics if kept else ()
    own = tuple(_hidden(topic, call) for topic in refused)
    return _with_operations(replace(answer, topics=told + own), request, call)


async def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, call: Call, handle: Handler
) -> DescribeTopicPartitionsResponse:
    """Tell of topics that may be described; where none is named, the others are left out."""
    named = request.topics
    if not named:
        await call.node.wait_metadata()
        named = tuple(TopicRequest(name=name) for name in call.node.metadata.topics())
    kept, refused = await sorted_out(
        named, lambda topic: may_topic(call, Operation.DESCRIBE, topic.name)
    )
    answer = DescribeTopicPartitionsResponse(topics=())
    if kept:  # without any topic, all of them would be meant
        answer = await handle(replace(request, topics=kept), call)
    told = tuple(
        topic
        if topic.error_code
        else replace(
            topic,
            topic_authorized_operations=call.rights.told(ResourceType.TOPIC, topic.name or ""),
        )
        for topic in answer.topics
        if request.topics or topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    first = request.cursor.topic_name if request.cursor else ""
    own = tuple(
        DescribeTopicPartitionsResponseTopic(error_code=REFUSED, name=topic.name, partitions=())
        for topic in refused
        if request.topics and topic.name >= first
    )
    return replace(answer, topics=told + own)


def _is_uncreatable(name: str, request: MetadataRequest, call: Call) -> bool:
    """Say whether the topic would have to be created for an asker who may not."""
    node = call.node
    return (
        node.metadata.topic(name) is None
        and request.allow_auto_topic_creation
        and node.config.auto_create_topics_enable
        and not _may_create(call, name)
    )


def _hidden(topic: MetadataRequestTopic, call: Call) -> MetadataResponseTopic:
    is_by_id = topic.topic_id != ZERO_UUID
    nothing = None if call.api_version >= NULL_NAME_SINCE else ""
    return MetadataResponseTopic(
        error_code=REFUSED,
        name=nothing if is_by_id else topic.name,
        topic_id=topic.topic_id,
        partitions=(),
    )


def _with_operations(
    answer: MetadataResponse, request: MetadataRequest, call: Call
) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        answer = replace(
            answer,
            topics=tuple(
                topic
                if topic.error_code
                else replace(
                    topic,
                    topic_authorized_operations=call.rights.told(
                        ResourceType.TOPIC, topic.name or ""
                    ),
                )
                for topic in answer.topics
            ),
        )
    if request.include_cluster_authorized_operations:
        answer = replace(answer, cluster_authorized_operations=told_of_cluster(call))
    return answer
