"""DescribeTransactions: what the coordinator keeps of transactional ids (KIP-664)."""

from broker.context import Call
from wire.errors import ErrorCode
from wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsState,
    DescribeTransactionsTopicData,
)
from wire.transaction_state import by_topic


async def handle(request: DescribeTransactionsRequest, call: Call) -> DescribeTransactionsResponse:
    """Answer for each id; TRANSACTIONAL_ID_NOT_FOUND for one that is unknown here."""
    return DescribeTransactionsResponse(
        transaction_states=tuple([await _state(one, call) for one in request.transactional_ids])
    )


async def _state(transactional_id: str, call: Call) -> DescribeTransactionsState:
    found = await call.node.transactions.describe(transactional_id)
    if isinstance(found, ErrorCode):
        return DescribeTransactionsState(
            error_code=found,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )
    return DescribeTransactionsState(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state=found.status.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=tuple(
            DescribeTransactionsTopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(found.partitions).items()
        ),
    )
