"""CreateTopics: answered by the controller, when the partitions have leaders."""

from collections import Counter
from typing import Final

import trio

from broker.apis.mutations import EXCEEDED, mutation_quota
from broker.apis.timeouts import timeout_s
from broker.apis.topic_waits import wait_topic
from broker.context import Call, Node
from broker.controller.cluster import ApiError
from broker.controller.topics import TopicSpec
from broker.dynamic_config import Source
from broker.metadata_cache import TopicView
from broker.quotas.mutations import MutationQuota
from broker.zookeeper.tree import TopicAssignment
from wire.errors import ErrorCode
from wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

STRICT_SINCE: Final = 6
"""Clients know THROTTLING_QUOTA_EXCEEDED."""


async def handle(request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    """Create each topic by itself; one that is refused leaves the others alone."""
    node = call.node
    if not node.controller.is_active:
        return CreateTopicsResponse(
            topics=tuple(_error(topic, ErrorCode.NOT_CONTROLLER) for topic in request.topics)
        )
    named = Counter(topic.name for topic in request.topics)
    quota = mutation_quota(call, STRICT_SINCE)
    results = [
        _error(topic, ErrorCode.INVALID_REQUEST, "Create topics request contains it twice.")
        if named[topic.name] > 1
        else await _create(topic, request, call, quota)
        for topic in request.topics
    ]
    # Not before every live broker has been told: producers with acks=0 would lose records.
    if not request.validate_only:
        with trio.move_on_after(timeout_s(request.timeout_ms)):
            for result in results:
                if result.error_code == ErrorCode.NONE:
                    await wait_topic(node, result.name, _has_all_leaders)
    return CreateTopicsResponse(
        throttle_time_ms=quota.throttle_ms,
        topics=tuple(_timed_out(result, request, node) for result in results),
    )


async def _create(
    topic: CreatableTopic, request: CreateTopicsRequest, call: Call, quota: MutationQuota
) -> CreatableTopicResult:
    """Create a topic. One that cannot be costs nothing, as one that is only validated."""
    spec = TopicSpec(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment={entry.partition_index: entry.broker_ids for entry in topic.assignments},
        configs={config.name: config.value for config in topic.configs},
    )
    controller = call.node.controller
    created = await controller.create_topic(
        spec, validate_only=request.validate_only or quota.is_limited
    )
    if quota.is_limited and not request.validate_only and not isinstance(created, ApiError):
        if not quota.takes(len(created.replicas)):
            return _error(topic, ErrorCode.THROTTLING_QUOTA_EXCEEDED, EXCEEDED)
        created = await controller.create_topic(spec)
    if isinstance(created, ApiError):
        return _error(topic, created.error, created.message)
    return _result(topic, created, call.node)


def _result(topic: CreatableTopic, created: TopicAssignment, node: Node) -> CreatableTopicResult:
    own = {config.name: config.value or "" for config in topic.configs}
    values = node.dynamic.log_config(topic.name).applying(own).as_strings()
    return CreatableTopicResult(
        name=topic.name,
        topic_id=created.topic_id,
        error_code=ErrorCode.NONE,
        num_partitions=len(created.replicas),
        replication_factor=len(created.replicas[0]),
        configs=tuple(
            CreatableTopicConfigs(
                name=name,
                value=value,
                read_only=False,
                config_source=Source.TOPIC if name in own else Source.KAFKA_DEFAULT,
                is_sensitive=False,
            )
            for name, value in values.items()
        ),
    )


def _error(
    topic: CreatableTopic, error: ErrorCode, message: str | None = None
) -> CreatableTopicResult:
    return CreatableTopicResult(name=topic.name, error_code=error, error_message=message)


def _has_all_leaders(view: TopicView | None) -> bool:
    return view is not None and all(part.leader >= 0 for part in view.partitions.values())


def _timed_out(
    result: CreatableTopicResult, request: CreateTopicsRequest, node: Node
) -> CreatableTopicResult:
    """Say so when a created topic has no leaders in time; it exists all the same."""
    is_created = result.error_code == ErrorCode.NONE and not request.validate_only
    if not is_created or _has_all_leaders(node.metadata.topic(result.name)):
        return result
    return CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=ErrorCode.REQUEST_TIMED_OUT,
        error_message="The topic was created, but not all its partitions have a leader yet.",
    )
