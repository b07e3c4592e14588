"""ControlledShutdown: a broker that is about to leave gives away what it leads."""

from broker.apis.cluster_action import REFUSED
from broker.context import Call
from broker.controller.cluster import UNKNOWN_BROKER_EPOCH, ShutdownRequested
from broker.controller.requests import still_led
from wire.errors import ErrorCode
from wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)


async def handle(request: ControlledShutdownRequest, call: Call) -> ControlledShutdownResponse:
    """Answer when the brokers that answer know their new leaders."""
    if not call.is_broker:
        return _refused(REFUSED)
    controller = call.node.controller
    cluster = controller.cluster
    if cluster is None:
        return _refused(ErrorCode.NOT_CONTROLLER)
    broker = cluster.live.get(request.broker_id)
    if broker is None:
        return _refused(ErrorCode.BROKER_NOT_AVAILABLE)
    if request.broker_epoch != UNKNOWN_BROKER_EPOCH and request.broker_epoch < broker.epoch:
        return _refused(ErrorCode.STALE_BROKER_EPOCH)
    decision = await controller.ask(lambda _: ShutdownRequested(broker_id=request.broker_id))
    if decision is None:
        return _refused(ErrorCode.NOT_CONTROLLER)
    return ControlledShutdownResponse(
        error_code=ErrorCode.NONE,
        remaining_partitions=tuple(
            RemainingPartition(topic_name=name.topic, partition_index=name.partition)
            for name in still_led(decision.cluster, request.broker_id)
        ),
    )


def _refused(error: ErrorCode) -> ControlledShutdownResponse:
    return ControlledShutdownResponse(error_code=error, remaining_partitions=())
