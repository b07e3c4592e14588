"""AlterConfigs: give topics, or all brokers, exactly these settings."""

from broker.apis.altering import Alteration, alter
from broker.context import Call
from broker.log.config import InvalidConfig
from wire.errors import ErrorCode
from wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:
    """Change each resource by itself; one that is refused leaves the others alone."""
    return AlterConfigsResponse(
        responses=tuple(
            [
                await _alter(resource, call, validate_only=request.validate_only)
                for resource in request.resources
            ]
        )
    )


async def _alter(
    resource: AlterConfigsResource, call: Call, *, validate_only: bool
) -> AlterConfigsResourceResponse:
    alteration = Alteration(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        change=lambda _: _given(resource),
        validate_only=validate_only,
    )
    error, reason = await alter(alteration, call)
    return AlterConfigsResourceResponse(
        error_code=error,
        error_message=None if error is ErrorCode.NONE else reason,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _given(resource: AlterConfigsResource) -> dict[str, str]:
    for config in resource.configs:
        if config.value is None:
            raise InvalidConfig(config.name, None, "null value not supported")
    return {config.name: config.value for config in resource.configs if config.value is not None}
