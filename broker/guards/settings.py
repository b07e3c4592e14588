"""Guards of settings: those of a topic by the topic, all others by the cluster."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

from broker.context import Call, Handler
from broker.guards.guard import may_topic, sorted_out
from wire.acls import Operation
from wire.errors import ErrorCode
from wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResourceResponse
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResult
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
)

TOPIC: Final = 2
"""ConfigResource.Type"""


class Resource(Protocol):
    """What has settings."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


R = TypeVar("R", bound=Resource)


async def _parted(
    resources: Sequence[R], operation: Operation, call: Call
) -> tuple[tuple[R, ...], tuple[R, ...]]:
    def is_allowed(resource: R) -> bool:
        if resource.resource_type == TOPIC:
            return may_topic(call, operation, resource.resource_name)
        return call.rights.may_cluster(operation)

    return await sorted_out(resources, is_allowed)


def _error(resource: Resource) -> ErrorCode:
    if resource.resource_type == TOPIC:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def describe_configs(request: DescribeConfigsRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Describe the settings that may be described."""
    kept, refused = await _parted(request.resources, Operation.DESCRIBE_CONFIGS, call)
    answer = await handle(replace(request, resources=kept), call)
    own = tuple(
        DescribeConfigsResult(
            error_code=_error(one),
            resource_type=one.resource_type,
            resource_name=one.resource_name,
            configs=(),
        )
        for one in refused
    )
    return replace(answer, results=answer.results + own)


async def alter_configs(request: AlterConfigsRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Change the settings that may be altered."""
    kept, refused = await _parted(request.resources, Operation.ALTER_CONFIGS, call)
    answer = await handle(replace(request, resources=kept), call)
    own = tuple(
        AlterConfigsResourceResponse(
            error_code=_error(one),
            resource_type=one.resource_type,
            resource_name=one.resource_name,
        )
        for one in refused
    )
    return replace(answer, responses=answer.responses + own)


async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, call: Call, handle: Handler
) -> Any:  # noqa: ANN401 - the handler's
    """Change the settings that may be altered."""
    kept, refused = await _parted(request.resources, Operation.ALTER_CONFIGS, call)
    answer = await handle(replace(request, resources=kept), call)
    own = tuple(
        IncrementalAlterConfigsResourceResponse(
            error_code=_error(one),
            resource_type=one.resource_type,
            resource_name=one.resource_name,
        )
        for one in refused
    )
    return replace(answer, responses=answer.responses + own)
