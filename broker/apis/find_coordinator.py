"""FindCoordinator: which broker coordinates a group, or a transactional id.

The first question of either kind creates `__consumer_offsets` or `__transaction_state`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import trio

from broker.context import Call
from broker.fairness import Turns
from broker.led_partition import CONSUMER_OFFSETS, TRANSACTION_STATE
from broker.metadata_cache import BrokerEndpoint, MetadataCache
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
CREATION_WAIT_S: Final = 1.0
"""Nobody could use "ask again" meanwhile, and clients wait for a while before they do."""

TOPICS: Final[Mapping[int, str]] = MappingProxyType(
    {GROUP: CONSUMER_OFFSETS, TRANSACTION: TRANSACTION_STATE}
)
_NO_ID: Final = "an empty transactional id"
_NO_SUCH_KIND: Final = "unknown kind of coordinator"


async def handle(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    """Answer for each key; COORDINATOR_NOT_AVAILABLE, to be asked again, until there is one."""
    if call.api_version >= SEVERAL_KEYS_SINCE:
        turns = Turns()
        found_all: list[Coordinator] = []
        for key in request.coordinator_keys:
            found_all.append(await _find(request.key_type, key, call))
            await turns.pass_on()
        return FindCoordinatorResponse(coordinators=tuple(found_all))
    found = await _find(request.key_type, request.key, call)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _find(key_type: int, key: str, call: Call) -> Coordinator:
    topic = TOPICS.get(key_type)
    if topic is None:
        return _none(key, ErrorCode.INVALID_REQUEST, _NO_SUCH_KIND)
    if key_type == TRANSACTION and not key:
        return _none(key, ErrorCode.INVALID_REQUEST, _NO_ID)
    await call.node.wait_metadata()  # else a broker that has just started would create it again
    metadata = call.node.metadata
    if not metadata.partition_count(topic):
        error = await call.node.ensure_internal_topic(topic)
        if error is not ErrorCode.NONE:
            message = f"{topic} cannot be created: {error.name}"
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
        with trio.move_on_after(CREATION_WAIT_S):
            while _leader(topic, key, metadata) is None:
                await metadata.wait_changed()
    leader = _leader(topic, key, metadata)
    at = None if leader is None else leader.at(call.listener)
    if leader is None or at is None:
        message = f"no broker leads the partition of {topic} that holds {key}"
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    return Coordinator(
        key=key,
        node_id=leader.broker_id,
        host=at[0],
        port=at[1],
        error_code=ErrorCode.NONE,
    )


def _leader(topic: str, key: str, metadata: MetadataCache) -> BrokerEndpoint | None:
    partition_count = metadata.partition_count(topic)
    if not partition_count:
        return None
    return metadata.leader_of(topic, partition_for(key, partition_count))


def _none(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(
        key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=error, error_message=message
    )
