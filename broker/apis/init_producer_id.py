"""InitProducerId: an id for an idempotent producer, never given twice in this cluster."""

from broker.context import Call
from runtime.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def handle(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    """Give the next id of this broker's block; transactional ids have no coordinator here."""
    if request.transactional_id is not None:
        # Not "not available": that would be asked again for ever.
        return InitProducerIdResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, producer_epoch=-1)
    try:
        producer_id = await call.node.next_producer_id()
    except ZooKeeperFault:
        return InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=-1
        )
    return InitProducerIdResponse(
        error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0
    )
