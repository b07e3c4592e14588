"""Guards of what is done with transactional ids, and of ids for producers."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from broker.context import Call, Handler
from broker.guards.guard import Stand, as_broker, may_group, may_topic, may_transact, sorted_out
from wire.acls import Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsState,
)
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

REFUSED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
OF_BROKERS_SINCE: Final = 4
"""Of AddPartitionsToTxn (KIP-890)."""


def needing(operation: Operation, refuse: Callable[[Any], Any]) -> Stand:
    """Return a guard that lets a request about one transactional id pass whole, or none of it."""

    async def stand(request: Any, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - one per API
        if may_transact(call, operation, request.transactional_id):
            return await handle(request, call)
        return refuse(request)

    return stand


async def init_producer_id(request: InitProducerIdRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Give an id to who may write in this id's name, or write anywhere at all (KIP-679)."""
    if request.transactional_id is not None:
        if may_transact(call, Operation.WRITE, request.transactional_id):
            return await handle(request, call)
        return InitProducerIdResponse(error_code=REFUSED, producer_epoch=-1)
    if call.rights.may_cluster(Operation.IDEMPOTENT_WRITE) or call.rights.may_somewhere(
        Operation.WRITE, ResourceType.TOPIC
    ):
        return await handle(request, call)
    return InitProducerIdResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, producer_epoch=-1
    )


async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, call: Call, handle: Handler
) -> Any:  # noqa: ANN401 - the handler's
    """Add partitions that may be written to, or none. Brokers ask in the versions since 4."""
    if call.api_version >= OF_BROKERS_SINCE:
        is_let = call.rights.may_cluster(Operation.CLUSTER_ACTION)
        return await handle(request, as_broker(call) if is_let else call)
    topics = request.v3_and_below_topics
    error = REFUSED
    refused = {topic.name for topic in topics}
    if may_transact(call, Operation.WRITE, request.v3_and_below_transactional_id):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        _, unwritable = await sorted_out(
            topics, lambda topic: may_topic(call, Operation.WRITE, topic.name)
        )
        refused = {topic.name for topic in unwritable}
        if not refused:
            return await handle(request, call)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index,
                        partition_error_code=error
                        if topic.name in refused
                        else ErrorCode.OPERATION_NOT_ATTEMPTED,
                    )
                    for index in topic.partitions
                ),
            )
            for topic in topics
        )
    )


async def add_offsets_to_txn(request: AddOffsetsToTxnRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Let who may write in this id's name add a group that may be read."""
    if not may_transact(call, Operation.WRITE, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=REFUSED)
    if not may_group(call, Operation.READ, request.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return await handle(request, call)


async def txn_offset_commit(
    request: TxnOffsetCommitRequest, call: Call, handle: Handler
) -> TxnOffsetCommitResponse:
    """Take positions of a group that may be read, in topics that may be read."""
    if not may_transact(call, Operation.WRITE, request.transactional_id):
        return TxnOffsetCommitResponse(topics=_uncommitted(request.topics, REFUSED))
    if not may_group(call, Operation.READ, request.group_id):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return TxnOffsetCommitResponse(topics=_uncommitted(request.topics, error))
    kept, refused = await sorted_out(
        request.topics, lambda topic: may_topic(call, Operation.READ, topic.name)
    )
    answer: TxnOffsetCommitResponse = await handle(replace(request, topics=kept), call)
    own = _uncommitted(refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return replace(answer, topics=answer.topics + own)


def _uncommitted(
    topics: Iterable[TxnOffsetCommitRequestTopic], error: ErrorCode
) -> tuple[TxnOffsetCommitResponseTopic, ...]:
    return tuple(
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=tuple(
                TxnOffsetCommitResponsePartition(
                    partition_index=one.partition_index, error_code=error
                )
                for one in topic.partitions
            ),
        )
        for topic in topics
    )


async def describe_transactions(
    request: DescribeTransactionsRequest, call: Call, handle: Handler
) -> Any:  # noqa: ANN401 - the handler's
    """Describe the ids that may be described, with the topics that may be."""
    kept, refused = await sorted_out(
        request.transactional_ids, lambda one: may_transact(call, Operation.DESCRIBE, one)
    )
    answer = await handle(replace(request, transactional_ids=kept), call)
    told = tuple(
        replace(
            state,
            topics=tuple(
                topic for topic in state.topics if may_topic(call, Operation.DESCRIBE, topic.topic)
            ),
        )
        for state in answer.transaction_states
    )
    own = tuple(
        DescribeTransactionsState(
            error_code=REFUSED,
            transactional_id=one,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )
        for one in refused
    )
    return replace(answer, transaction_states=told + own)


async def list_transactions(
    request: ListTransactionsRequest, call: Call, handle: Handler
) -> ListTransactionsResponse:
    """List those that may be described; the others are left out silently."""
    answer: ListTransactionsResponse = await handle(request, call)
    kept, _ = await sorted_out(
        answer.transaction_states,
        lambda state: may_transact(call, Operation.DESCRIBE, state.transactional_id),
    )
    return replace(answer, transaction_states=kept)
