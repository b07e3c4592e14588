"""IncrementalAlterConfigs, key 44, v0-1: change some settings and leave the others.

v1: flexible
"""

from typing import ClassVar

from wire.schema import boolean, int8, int16, int32, message, nullable_string, string


@message
class IncrementalAlterConfigsResourceResponse:
    error_code: int16
    error_message: nullable_string = None
    resource_type: int8
    resource_name: string


@message
class IncrementalAlterConfigsResponse:
    """The outcome for each resource."""

    API_KEY: ClassVar[int] = 44
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 1

    throttle_time_ms: int32 = 0
    responses: tuple[IncrementalAlterConfigsResourceResponse, ...]


@message
class IncrementalAlterConfigsAlterableConfig:
    name: string
    config_operation: int8
    value: nullable_string = None


@message
class IncrementalAlterConfigsResource:
    resource_type: int8
    resource_name: string
    configs: tuple[IncrementalAlterConfigsAlterableConfig, ...]


@message
class IncrementalAlterConfigsRequest:
    """Operations on settings: 0 set, 1 delete, 2 append, 3 subtract (KIP-339)."""

    API_KEY: ClassVar[int] = 44
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 1
    RESPONSE: ClassVar[type[IncrementalAlterConfigsResponse]] = IncrementalAlterConfigsResponse

    resources: tuple[IncrementalAlterConfigsResource, ...]
    validate_only: boolean
