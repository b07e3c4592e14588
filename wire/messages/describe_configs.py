"""DescribeConfigs, key 32, v0-4: settings of topics, brokers and others.

v1: request include_synonyms; response config_source, synonyms; response without is_default
    (KIP-226)
v2: throttled responses are answered before the pause (KIP-219)
v3: request include_documentation; response config_type, documentation (KIP-569)
v4: flexible
"""

from typing import ClassVar

from wire.schema import boolean, int8, int16, int32, message, nullable_string, since, string, until


@message
class DescribeConfigsSynonym:
    name: string
    value: nullable_string = None
    source: int8


@message
class DescribeConfigsResourceResult:
    name: string
    value: nullable_string = None
    read_only: boolean
    is_default: boolean = until(0, default=False)
    config_source: int8 = since(1, default=-1, ignorable=True)
    is_sensitive: boolean
    synonyms: tuple[DescribeConfigsSynonym, ...] = since(1, default=(), ignorable=True)
    config_type: int8 = since(3, default=0, ignorable=True)
    documentation: nullable_string = since(3, default=None, ignorable=True)


@message
class DescribeConfigsResult:
    error_code: int16
    error_message: nullable_string = None
    resource_type: int8
    resource_name: string
    configs: tuple[DescribeConfigsResourceResult, ...]


@message
class DescribeConfigsResponse:
    """Values and where they come from."""

    API_KEY: ClassVar[int] = 32
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 4

    throttle_time_ms: int32 = 0
    results: tuple[DescribeConfigsResult, ...]


@message
class DescribeConfigsResource:
    resource_type: int8
    resource_name: string
    configuration_keys: tuple[string, ...] | None = ()


@message
class DescribeConfigsRequest:
    """Resources, each with the keys wanted or null for all."""

    API_KEY: ClassVar[int] = 32
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 4
    RESPONSE: ClassVar[type[DescribeConfigsResponse]] = DescribeConfigsResponse

    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: boolean = since(1, default=False)
    include_documentation: boolean = since(3, default=False)
