"""EndTxn: a producer commits or aborts its transaction."""

from typing import Final

from broker.context import Call
from broker.transactions.decisions import Producer
from wire.errors import ErrorCode
from wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE: Final = 2


async def handle(request: EndTxnRequest, call: Call) -> EndTxnResponse:
    """Answer when the decision is safe; the markers are written afterwards."""
    error = await call.node.transactions.end(
        request.transactional_id,
        Producer(producer_id=request.producer_id, epoch=request.producer_epoch),
        is_commit=request.committed,
    )
    if error is ErrorCode.PRODUCER_FENCED and call.api_version < FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=error)
