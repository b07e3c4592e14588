"""EndTxn: a producer commits or aborts its transaction."""

from typing import Final

from broker.context import Call
from broker.transactions.decisions import Producer
from broker.transactions.ending import EndAsked
from runtime.coordination.zookeeper import ZooKeeperFault
from wire.errors import ErrorCode
from wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE: Final = 2
BUMPS_EPOCH_SINCE: Final = 5


async def handle(request: EndTxnRequest, call: Call) -> EndTxnResponse:
    """Answer when the decision is safe; the markers are written afterwards.

    COORDINATOR_LOAD_IN_PROGRESS, to be asked again, while ZooKeeper gives no id to a producer whose
    epochs are used up.
    """
    asked = EndAsked(
        producer=Producer(producer_id=request.producer_id, epoch=request.producer_epoch),
        is_commit=request.committed,
        bumps_epoch=call.api_version >= BUMPS_EPOCH_SINCE,
    )
    try:
        ended = await call.node.transactions.end(request.transactional_id, asked)
    except ZooKeeperFault:
        ended = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if isinstance(ended, Producer):
        return EndTxnResponse(
            error_code=ErrorCode.NONE, producer_id=ended.producer_id, producer_epoch=ended.epoch
        )
    if ended is ErrorCode.PRODUCER_FENCED and call.api_version < FENCED_SINCE:
        ended = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=ended)
