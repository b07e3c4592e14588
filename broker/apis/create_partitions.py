"""CreatePartitions: answered by the controller, when the new partitions have leaders."""

from typing import Final

import trio

from broker.apis.mutations import EXCEEDED, mutation_quota, partitions_of
from broker.apis.timeouts import timeout_s
from broker.apis.topic_waits import wait_topic
from broker.context import Call
from broker.controller.cluster import ApiError
from broker.quotas.mutations import MutationQuota
from wire.errors import ErrorCode
from wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_SINCE: Final = 3
"""Clients know THROTTLING_QUOTA_EXCEEDED."""


async def handle(request: CreatePartitionsRequest, call: Call) -> CreatePartitionsResponse:
    """Grow each topic by itself; one that is refused leaves the others alone."""
    quota = mutation_quota(call, STRICT_SINCE)
    grown = tuple([await _grow(topic, request, call, quota) for topic in request.topics])
    return CreatePartitionsResponse(throttle_time_ms=quota.throttle_ms, results=grown)


async def _grow(
    topic: CreatePartitionsTopic,
    request: CreatePartitionsRequest,
    call: Call,
    quota: MutationQuota,
) -> CreatePartitionsTopicResult:
    given = None
    if topic.assignments is not None:
        given = [assignment.broker_ids for assignment in topic.assignments]
    controller = call.node.controller
    present = partitions_of(call, topic.name)
    grown = await controller.grow_topic(
        topic.name, topic.count, given, validate_only=request.validate_only or quota.is_limited
    )
    if quota.is_limited and not request.validate_only and not isinstance(grown, ApiError):
        if not quota.takes(topic.count - present):
            return CreatePartitionsTopicResult(
                name=topic.name,
                error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                error_message=EXCEEDED,
            )
        grown = await controller.grow_topic(topic.name, topic.count, given)
    if isinstance(grown, ApiError):
        return CreatePartitionsTopicResult(
            name=topic.name, error_code=grown.error, error_message=grown.message
        )
    error = ErrorCode.NONE
    if not request.validate_only:
        error = ErrorCode.REQUEST_TIMED_OUT
        with trio.move_on_after(timeout_s(request.timeout_ms)):
            await wait_topic(
                call.node,
                topic.name,
                lambda view: (
                    view is not None
                    and len(view.partitions) >= topic.count
                    and all(part.leader >= 0 for part in view.partitions.values())
                ),
            )
            error = ErrorCode.NONE
    return CreatePartitionsTopicResult(name=topic.name, error_code=error)
