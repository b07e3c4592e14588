"""DeleteTopics: answered by the controller, when no broker serves the topic any more."""

from typing import Final

import trio

from broker.apis.mutations import EXCEEDED, mutation_quota, partitions_of
from broker.apis.timeouts import timeout_s
from broker.apis.topic_waits import wait_topic
from broker.context import Call
from broker.quotas.mutations import MutationQuota
from wire.errors import ErrorCode
from wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from wire.primitives import ZERO_UUID

STRICT_SINCE: Final = 5
"""Clients know THROTTLING_QUOTA_EXCEEDED."""


async def handle(request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse:
    """Delete each topic by itself. A copy on a dead broker goes when that is back."""
    asked = request.topics or tuple(
        DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names
    )
    quota = mutation_quota(call, STRICT_SINCE)
    deleted = tuple([await _delete(topic, request.timeout_ms, call, quota) for topic in asked])
    return DeleteTopicsResponse(throttle_time_ms=quota.throttle_ms, responses=deleted)


async def _delete(
    topic: DeleteTopicState, timeout_ms: int, call: Call, quota: MutationQuota
) -> DeletableTopicResult:
    node = call.node
    name = topic.name
    if topic.topic_id != ZERO_UUID:
        view = node.metadata.topic_by_id(topic.topic_id)
        if view is None:
            return _result(topic, None, ErrorCode.UNKNOWN_TOPIC_ID)
        name = view.name
    if not node.config.delete_topic_enable:
        return _result(topic, name, ErrorCode.TOPIC_DELETION_DISABLED)
    partitions = partitions_of(call, name or "")
    if partitions and not quota.takes(partitions):
        return _result(topic, name, ErrorCode.THROTTLING_QUOTA_EXCEEDED, EXCEEDED)
    error = await node.controller.delete_topic(name or "")
    if error is ErrorCode.NONE:
        error = ErrorCode.REQUEST_TIMED_OUT
        with trio.move_on_after(timeout_s(timeout_ms)):
            await node.controller.wait_deleted(name or "")
            await wait_topic(node, name or "", lambda view: view is None)
            error = ErrorCode.NONE
    return _result(topic, name, error)


def _result(
    topic: DeleteTopicState, name: str | None, error: ErrorCode, message: str | None = None
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic.topic_id, error_code=error, error_message=message
    )
