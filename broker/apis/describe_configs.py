"""DescribeConfigs: the settings of topics and of this broker, each with where it comes from."""

from functools import partial
from typing import Final

from broker.context import Call
from broker.dynamic_config import Described, Source, may_be_secret
from broker.fairness import Turns
from broker.log.config import TOPIC_CONFIGS, ConfigType
from broker.setting_descriptions import explained
from wire.errors import ErrorCode
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

TOPIC: Final = 2
BROKER: Final = 4
ALL_BROKERS: Final = ""
"""The resource name that stands for the settings of all brokers."""


async def handle(request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResponse:
    """Answer for each resource by itself."""
    return DescribeConfigsResponse(
        results=await Turns().each(request.resources, partial(_describe, request, call))
    )


def _describe(
    request: DescribeConfigsRequest, call: Call, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    described = _settings(resource, call)
    if isinstance(described, tuple):
        error, reason = described
        return DescribeConfigsResult(
            error_code=error,
            error_message=reason,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(),
        )
    wanted = resource.configuration_keys
    is_broker = resource.resource_type == BROKER
    # Null asks for all; Kafka 2.x clients mean the same by an empty list.
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            _entry(entry, request, call.api_version, is_broker=is_broker)
            for entry in described
            if not wanted or entry.name in wanted
        ),
    )


def _settings(
    resource: DescribeConfigsResource, call: Call
) -> list[Described] | tuple[ErrorCode, str]:
    node = call.node
    if resource.resource_type == TOPIC:
        if node.metadata.topic(resource.resource_name) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {resource.resource_name!r}"
        return node.dynamic.describe_topic(resource.resource_name)
    if resource.resource_type != BROKER:
        return ErrorCode.INVALID_REQUEST, f"resource type {resource.resource_type} has no settings"
    if resource.resource_name == ALL_BROKERS:
        return node.dynamic.describe_default_broker()
    if resource.resource_name != str(node.broker_id):
        return (
            ErrorCode.INVALID_REQUEST,
            f"asked broker {node.broker_id} for the settings of {resource.resource_name!r}",
        )
    return node.dynamic.describe_broker(node.config)


def _entry(
    entry: Described, request: DescribeConfigsRequest, api_version: int, *, is_broker: bool
) -> DescribeConfigsResourceResult:
    is_secret = is_broker and may_be_secret(entry.name)
    kind, meaning = _explained(entry.name, is_broker=is_broker)
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=None if is_secret else entry.value,
        read_only=entry.read_only,
        is_default=api_version == 0 and entry.source is Source.KAFKA_DEFAULT,
        config_source=entry.source,
        is_sensitive=is_secret,
        synonyms=tuple(
            DescribeConfigsSynonym(name=name, value=None if is_secret else value, source=source)
            for name, value, source in entry.synonyms
            if request.include_synonyms
        ),
        config_type=kind.value,
        documentation=meaning if request.include_documentation else None,
    )


def _explained(name: str, *, is_broker: bool) -> tuple[ConfigType, str | None]:
    """Return how a setting's value is written, and what it does."""
    if is_broker:
        return explained(name)
    known = TOPIC_CONFIGS.get(name)
    return (ConfigType.STRING, None) if known is None else (known.type, known.doc)
