"""CreatePartitions: answered by the controller, when the new partitions have leaders."""

import trio

from broker.apis.timeouts import timeout_s
from broker.apis.topic_waits import wait_topic
from broker.context import Call
from broker.controller.cluster import ApiError
from wire.errors import ErrorCode
from wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(request: CreatePartitionsRequest, call: Call) -> CreatePartitionsResponse:
    """Grow each topic by itself; one that is refused leaves the others alone."""
    return CreatePartitionsResponse(
        results=tuple([await _grow(topic, request, call) for topic in request.topics])
    )


async def _grow(
    topic: CreatePartitionsTopic, request: CreatePartitionsRequest, call: Call
) -> CreatePartitionsTopicResult:
    given = None
    if topic.assignments is not None:
        given = [assignment.broker_ids for assignment in topic.assignments]
    grown = await call.node.controller.grow_topic(
        topic.name, topic.count, given, validate_only=request.validate_only
    )
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
