"""ApiVersions: what this broker serves, straight from the table of what it serves."""

from collections.abc import Callable, Iterable
from typing import Final

from broker.apis.api import Api
from broker.context import Call, Handler
from wire.errors import ErrorCode
from wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

GROUP_VERSION: Final = "group.version"
"""The feature that Kafka 4 has at 1 where the new group protocol is served (KIP-848)."""
SUPPORTED: Final = (SupportedFeatureKey(name=GROUP_VERSION, min_version=0, max_version=1),)
FINALIZED: Final = (
    FinalizedFeatureKey(name=GROUP_VERSION, max_version_level=1, min_version_level=1),
)
FROM_ZERO_SINCE: Final = 4
"""Clients of older versions give up at a feature that begins at 0."""


def handler(served: Callable[[], Iterable[Api]]) -> Handler:
    """Return the handler for a table that will hold this very handler too."""

    async def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:  # noqa: ARG001
        return ApiVersionsResponse(
            error_code=ErrorCode.NONE,
            api_keys=tuple(api.listed for api in served()),
            supported_features=SUPPORTED if call.api_version >= FROM_ZERO_SINCE else (),
            finalized_features_epoch=0,
            finalized_features=(
                FINALIZED
                if "consumer" in call.node.config.group_coordinator_rebalance_protocols
                else ()
            ),
        )

    return handle
