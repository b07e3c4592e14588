"""InitProducerId: an id for an idempotent producer, or the next epoch for a transactional one."""

from typing import Final

from broker.context import Call
from broker.transactions.coordinator import InitProducer
from broker.transactions.decisions import Producer
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FENCED_SINCE: Final = 4
NO_ID: Final = -1


async def handle(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    """Give an id that nobody has, or that of the transactional id; fence who had it before.

    COORDINATOR_LOAD_IN_PROGRESS, to be asked again, while no id can be had of ZooKeeper.
    """
    try:
        given = await _given(request, call)
    except ZooKeeperFault:
        given = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if isinstance(given, Producer):
        return InitProducerIdResponse(
            error_code=ErrorCode.NONE, producer_id=given.producer_id, producer_epoch=given.epoch
        )
    if given is ErrorCode.PRODUCER_FENCED and call.api_version < FENCED_SINCE:
        given = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=given, producer_epoch=-1)


async def _given(request: InitProducerIdRequest, call: Call) -> Producer | ErrorCode:
    if (request.producer_id == NO_ID) is not (request.producer_epoch == NO_ID):
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return Producer(producer_id=await call.node.next_producer_id(), epoch=0)
    expected = Producer(producer_id=request.producer_id, epoch=request.producer_epoch)
    return await call.node.transactions.init_producer(
        InitProducer(
            transactional_id=request.transactional_id,
            timeout_ms=request.transaction_timeout_ms,
            expected=None if request.producer_id == NO_ID else expected,
        )
    )
