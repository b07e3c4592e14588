"""Requests that only brokers of this cluster may make (Kafka's CLUSTER_ACTION)."""

import logging
from typing import Final, Protocol

from broker.context import Call
from broker.zookeeper.tree import MalformedNode
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode

_LOG = logging.getLogger(__name__)

REFUSED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class ControllersWord(Protocol):
    """What LeaderAndIsr, StopReplica and UpdateMetadata have in common."""

    @property
    def controller_id(self) -> int: ...
    @property
    def controller_epoch(self) -> int: ...
    @property
    def broker_epoch(self) -> int: ...


async def refusal(request: ControllersWord, call: Call) -> ErrorCode:
    """Return why the controller's word is not taken, NONE if it is to be obeyed.

    CLUSTER_AUTHORIZATION_FAILED for a stranger. STALE_BROKER_EPOCH for what was meant for an
    earlier life of this broker (KIP-380). INVALID_REQUEST for an epoch that ZooKeeper has given to
    nobody: obeyed, it would depose every controller to come. STALE_CONTROLLER_EPOCH for one that is
    deposed.
    """
    if not call.is_broker:
        return REFUSED
    if not await call.node.is_registered_as(request.broker_epoch):
        return ErrorCode.STALE_BROKER_EPOCH
    try:
        is_elected = await call.node.has_elected(request.controller_epoch)
    except (ZooKeeperFault, MalformedNode) as fault:
        _LOG.warning("the controller's epoch cannot be held against ZooKeeper's: %s", fault)
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if not is_elected:
        _LOG.warning(
            "broker %s claims controller epoch %s, which ZooKeeper has given to nobody",
            request.controller_id,
            request.controller_epoch,
        )
        return ErrorCode.INVALID_REQUEST
    if not call.node.partitions.obeys(request.controller_epoch):
        return ErrorCode.STALE_CONTROLLER_EPOCH
    return ErrorCode.NONE
