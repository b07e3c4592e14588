"""FindCoordinator: which broker coordinates a group.

Its first question about any group creates `__consumer_offsets`.
"""

from typing import Final

from broker.context import CONSUMER_OFFSETS, Call
from wire.consumer_offsets import partition_for
from wire.errors import ErrorCode
from wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

SEVERAL_KEYS_SINCE = 4
GROUP: Final = 0
TRANSACTION: Final = 1
NO_NODE: Final = -1

_NO_TRANSACTIONS: Final = "this broker does not coordinate transactions"
_NO_SUCH_KIND: Final = "unknown kind of coordinator"


async def handle(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    """Answer for each key; COORDINATOR_NOT_AVAILABLE, to be asked again, until there is one."""
    if call.api_version >= SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(
            coordinators=tuple(
                [await _find(request.key_type, key, call) for key in request.coordinator_keys]
            )
        )
    found = await _find(request.key_type, request.key, call)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _find(key_type: int, key: str, call: Call) -> Coordinator:
    if key_type == TRANSACTION:
        # Not "not available": that would be asked again for ever.
        return _none(key, ErrorCode.UNSUPPORTED_VERSION, _NO_TRANSACTIONS)
    if key_type != GROUP:
        return _none(key, ErrorCode.INVALID_REQUEST, _NO_SUCH_KIND)
    await call.node.wait_metadata()  # else a broker that has just started would create it again
    partition_count = call.node.metadata.partition_count(CONSUMER_OFFSETS)
    if not partition_count:
        error = await call.node.ensure_internal_topic(CONSUMER_OFFSETS)
        reason = "" if error is ErrorCode.NONE else f": {error.name}"
        message = f"{CONSUMER_OFFSETS} is being created{reason}"
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    partition = partition_for(key, partition_count)
    leader = call.node.metadata.leader_of(CONSUMER_OFFSETS, partition)
    if leader is None:
        message = f"{CONSUMER_OFFSETS}-{partition} has no leader"
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    return Coordinator(
        key=key,
        node_id=leader.broker_id,
        host=leader.host,
        port=leader.port,
        error_code=ErrorCode.NONE,
    )


def _none(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(
        key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=error, error_message=message
    )
