"""AlterConfigs, key 33, v0-2: replace all settings of a resource.

v1: throttled responses are answered before the pause (KIP-219)
v2: flexible
"""

from typing import ClassVar

from wire.schema import boolean, int8, int16, int32, message, nullable_string, string


@message
class AlterConfigsResourceResponse:
    error_code: int16
    error_message: nullable_string = None
    resource_type: int8
    resource_name: string


@message
class AlterConfigsResponse:
    """The outcome for each resource."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...]


@message
class AlterConfigsAlterableConfig:
    name: string
    value: nullable_string = None


@message
class AlterConfigsResource:
    resource_type: int8
    resource_name: string
    configs: tuple[AlterConfigsAlterableConfig, ...]


@message
class AlterConfigsRequest:
    """All settings a resource shall have; what is left out falls back to its default."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[AlterConfigsResponse]] = AlterConfigsResponse

    resources: tuple[AlterConfigsResource, ...]
    validate_only: boolean
