"""IncrementalAlterConfigs: change settings of topics, or of all brokers at once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType

from broker.apis.altering import Alteration, alter
from broker.apis.describe_configs import TOPIC
from broker.context import Call
from broker.dynamic_config import LIST_SETTINGS
from broker.log.config import InvalidConfig
from wire.errors import ErrorCode
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)


class OpType(IntEnum):
    """The way in which one setting changes (KIP-339); as Kafka's AlterConfigOp.OpType."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


async def handle(
    request: IncrementalAlterConfigsRequest, call: Call
) -> IncrementalAlterConfigsResponse:
    """Change each resource by itself; one that is refused leaves the others alone."""
    return IncrementalAlterConfigsResponse(
        responses=tuple(
            [
                await _alter(resource, call, validate_only=request.validate_only)
                for resource in request.resources
            ]
        )
    )


async def _alter(
    resource: IncrementalAlterConfigsResource, call: Call, *, validate_only: bool
) -> IncrementalAlterConfigsResourceResponse:
    is_topic = resource.resource_type == TOPIC
    defaults = call.node.dynamic.log_config(resource.resource_name).as_strings() if is_topic else {}
    alteration = Alteration(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        change=lambda present: apply_operations(present, resource.configs, defaults),
        validate_only=validate_only,
    )
    error, reason = await alter(alteration, call)
    return IncrementalAlterConfigsResourceResponse(
        error_code=error,
        error_message=None if error is ErrorCode.NONE else reason,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def apply_operations(
    present: Mapping[str, str],
    operations: Sequence[IncrementalAlterConfigsAlterableConfig],
    defaults: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the settings after the operations. Raises InvalidConfig.

    A list that is not set begins as its default, as in ConfigurationControlManager.
    """
    changed = dict(present)
    for name, times in Counter(operation.name for operation in operations).items():
        if times > 1:
            raise InvalidConfig(name, None, "named twice in one request")
    for operation in operations:
        if operation.config_operation == OpType.DELETE:
            changed.pop(operation.name, None)
        elif operation.value is None:
            raise InvalidConfig(operation.name, None, "null value not supported")
        elif operation.config_operation == OpType.SET:
            changed[operation.name] = operation.value
        elif operation.name not in LIST_SETTINGS:
            raise InvalidConfig(operation.name, operation.value, "is no list")
        else:
            changed[operation.name] = _with_items(
                changed.get(operation.name, defaults.get(operation.name, "")),
                operation.value,
                operation.config_operation,
            )
    return changed


def _with_items(present: str, value: str, operation: int) -> str:
    items = [item for item in present.split(",") if item]
    named = [item for item in value.split(",") if item]
    kept = [item for item in items if item not in named]
    return ",".join(kept if operation == OpType.SUBTRACT else [*kept, *named])
