"""ApiVersions, key 18, v0-4: which versions of which APIs a broker speaks.

v1: response throttle_time_ms
v3: request client_software_name, client_software_version; response supported_features,
    finalized_features_epoch, finalized_features, zk_migration_ready; flexible (KIP-511 and
    KIP-584)
v4: supported features may start at version 0
"""

from typing import ClassVar

from wire.schema import boolean, int16, int32, int64, message, since, string, tagged


@message
class ApiVersion:
    api_key: int16
    min_version: int16
    max_version: int16


@message
class SupportedFeatureKey:
    name: string
    min_version: int16
    max_version: int16


@message
class FinalizedFeatureKey:
    name: string
    max_version_level: int16
    min_version_level: int16


@message
class ApiVersionsResponse:
    """Every API served, by key. Its header has no tagged fields in any version (KIP-511)."""

    API_KEY: ClassVar[int] = 18
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    error_code: int16
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: int32 = since(1, default=0, ignorable=True)
    supported_features: tuple[SupportedFeatureKey, ...] = tagged(
        0, since=3, default=(), ignorable=True
    )
    finalized_features_epoch: int64 = tagged(1, since=3, default=-1, ignorable=True)
    finalized_features: tuple[FinalizedFeatureKey, ...] = tagged(
        2, since=3, default=(), ignorable=True
    )
    zk_migration_ready: boolean = tagged(3, since=3, default=False, ignorable=True)


@message
class ApiVersionsRequest:
    """Asked first on a connection; also tells who the client is."""

    API_KEY: ClassVar[int] = 18
    VERSIONS: ClassVar[range] = range(5)
    FLEXIBLE_SINCE: ClassVar[int] = 3
    RESPONSE: ClassVar[type[ApiVersionsResponse]] = ApiVersionsResponse

    client_software_name: string = since(3, default="", ignorable=True)
    client_software_version: string = since(3, default="", ignorable=True)
