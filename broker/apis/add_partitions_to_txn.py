"""AddPartitionsToTxn: partitions that are going to be written to in a transaction.

A client adds to its own one. Brokers ask, from version 4 on, also whether a partition is part of
one, and add for clients of transaction version 2 (KIP-890).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from broker.apis.cluster_action import REFUSED
from broker.context import Call
from broker.transactions.decisions import Producer
from wire.errors import ErrorCode
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from wire.topic_partition import TopicPartition
from wire.transaction_state import BUMPS_EPOCH

FENCED_SINCE: Final = 2
OF_BROKERS_SINCE: Final = 4
ABORTABLE_SINCE: Final = 5


async def handle(request: AddPartitionsToTxnRequest, call: Call) -> AddPartitionsToTxnResponse:
    """Answer when what was added is safe; all partitions of a transaction are added, or none."""
    if call.api_version < OF_BROKERS_SINCE:
        asked = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        errors = await _add(asked, call)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_results(asked.topics, errors)
        )
    if not call.is_broker:
        return AddPartitionsToTxnResponse(error_code=REFUSED)
    results: list[AddPartitionsToTxnResult] = []
    for asked in request.transactions:
        errors = await (_verify(asked, call) if asked.verify_only else _add(asked, call))
        results.append(
            AddPartitionsToTxnResult(
                transactional_id=asked.transactional_id,
                topic_results=_results(asked.topics, errors),
            )
        )
    return AddPartitionsToTxnResponse(results_by_transaction=tuple(results))


def _names(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


def _producer(asked: AddPartitionsToTxnTransaction) -> Producer:
    return Producer(producer_id=asked.producer_id, epoch=asked.producer_epoch)


async def _add(
    asked: AddPartitionsToTxnTransaction, call: Call
) -> Mapping[TopicPartition, ErrorCode]:
    names = _names(asked.topics)
    missing = {name for name in names if not _exists(name, call)}
    if missing:
        return {
            name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if name in missing
            else ErrorCode.OPERATION_NOT_ATTEMPTED
            for name in names
        }
    error = await call.node.transactions.add_partitions(
        asked.transactional_id,
        _producer(asked),
        frozenset(names),
        client_version=BUMPS_EPOCH if call.api_version >= OF_BROKERS_SINCE else 0,
    )
    if error is ErrorCode.PRODUCER_FENCED and call.api_version < FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return dict.fromkeys(names, error)


def _exists(name: TopicPartition, call: Call) -> bool:
    view = call.node.metadata.topic(name.topic)
    return view is not None and name.partition in view.partitions


async def _verify(
    asked: AddPartitionsToTxnTransaction, call: Call
) -> Mapping[TopicPartition, ErrorCode]:
    errors: dict[TopicPartition, ErrorCode] = {}
    for name in _names(asked.topics):
        error = await call.node.transactions.verify(asked.transactional_id, _producer(asked), name)
        if error is ErrorCode.INVALID_TXN_STATE and call.api_version >= ABORTABLE_SINCE:
            error = ErrorCode.TRANSACTION_ABORTABLE
        errors[name] = error
    return errors


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], errors: Mapping[TopicPartition, ErrorCode]
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    return tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=errors[TopicPartition(topic.name, index)],
                )
                for index in topic.partitions
            ),
        )
        for topic in topics
    )
