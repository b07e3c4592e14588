"""ListTransactions: the transactional ids that this broker coordinates (KIP-664)."""

from typing import Final

from broker.context import Call
from wire.errors import ErrorCode
from wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsState,
)
from wire.transaction_state import TransactionMetadata, TransactionStatus

STATES: Final = frozenset(
    {*(status.label for status in TransactionStatus), "Dead", "PrepareEpochFence"}
)
"""Kafka's; nothing is ever in the last two here."""


async def handle(request: ListTransactionsRequest, call: Call) -> ListTransactionsResponse:
    """Answer with those that all filters admit, and with the states that do not exist."""
    found = await call.node.transactions.list_all()
    if isinstance(found, ErrorCode):
        return ListTransactionsResponse(error_code=found)
    age_ms = call.node.clock.age_ms()
    return ListTransactionsResponse(
        error_code=ErrorCode.NONE,
        unknown_state_filters=tuple(
            state for state in request.state_filters if state not in STATES
        ),
        transaction_states=tuple(
            ListTransactionsState(
                transactional_id=transactional_id,
                producer_id=kept.producer_id,
                transaction_state=kept.status.label,
            )
            for transactional_id, kept in found.items()
            if admits(request, kept, age_ms)
        ),
    )


def admits(request: ListTransactionsRequest, kept: TransactionMetadata, age_ms: int) -> bool:
    """Say whether a transactional id is to be listed. A duration is counted from the start."""
    if request.producer_id_filters and kept.producer_id not in request.producer_id_filters:
        return False
    if request.state_filters and kept.status.label not in request.state_filters:
        return False
    return request.duration_filter < 0 or (
        kept.started_ms >= 0 and age_ms - kept.started_ms > request.duration_filter
    )
