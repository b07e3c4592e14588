"""ApiVersions: what this broker serves, straight from the table of what it serves."""

from collections.abc import Callable, Iterable
from typing import Final

from broker.apis.api import Api
from broker.config import BrokerConfig
from broker.context import Call, Handler
from wire.errors import ErrorCode
from wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from wire.transaction_state import BUMPS_EPOCH

GROUP_VERSION: Final = "group.version"
"""The feature that Kafka 4 has at 1 where the new group protocol is served (KIP-848)."""
TRANSACTION_VERSION: Final = "transaction.version"
"""The feature at which Kafka's clients use what Produce, TxnOffsetCommit and EndTxn do since their
newest versions (KIP-890)."""
SUPPORTED: Final = (
    SupportedFeatureKey(name=GROUP_VERSION, min_version=0, max_version=1),
    SupportedFeatureKey(name=TRANSACTION_VERSION, min_version=0, max_version=BUMPS_EPOCH),
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
            finalized_features=_finalized(call.node.config),
        )

    return handle


def _finalized(config: BrokerConfig) -> tuple[FinalizedFeatureKey, ...]:
    levels = {TRANSACTION_VERSION: BUMPS_EPOCH}
    if "consumer" in config.group_coordinator_rebalance_protocols:
        levels[GROUP_VERSION] = 1
    return tuple(
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in sorted(levels.items())
    )
