"""Asks, before a transaction's first batch is appended, whether it is still open (KIP-890).

A batch that comes late, behind the end of its transaction, would open it again, and nobody would
ever end it: the last stable offset would stand still.
"""

import logging
from collections.abc import Iterator
from typing import Final, Protocol

import trio

from broker.led_partition import TRANSACTION_STATE
from broker.metadata_cache import MetadataCache
from broker.replication.partition import Partition
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.decisions import Producer
from wire.consumer_offsets import partition_for
from wire.errors import ErrorCode
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from wire.net.errors import NetworkFault
from wire.net.pool import ConnectionPool
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

VERSION: Final = 4
ASKED_WITHIN_S: Final = 2.0
"""The producer's connection waits meanwhile; a coordinator that is cut off may be one no longer."""
ASK_AGAIN: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""The coordinator cannot say now; whoever asked is told to try again."""


class Host(Protocol):
    """The part of its node that asks."""

    @property
    def broker_id(self) -> int: ...
    @property
    def metadata(self) -> MetadataCache: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...


class Verifier:
    """Asks the coordinator of a transactional id, wherever it is."""

    def __init__(self, node: Host, pool: ConnectionPool) -> None:
        self._node = node
        self._pool = pool

    async def verify(
        self, partition: Partition, transactional_id: str, producer: Producer
    ) -> ErrorCode:
        """Return NONE if a batch of the producer's transaction may be appended now.

        It holds until the caller lets go of the loop. What was appended while the coordinator was
        asked may have ended the transaction, so it is asked again then.
        """
        name = TopicPartition(partition.topic, partition.index)
        while True:
            known = partition.log.producer(producer.producer_id)
            if known is not None and known.is_in_transaction and known.epoch == producer.epoch:
                return ErrorCode.NONE
            error = await self._ask(transactional_id, producer, name)
            if error is not ErrorCode.NONE:
                return error
            if partition.log.producer(producer.producer_id) is known:
                return ErrorCode.NONE

    async def _ask(
        self, transactional_id: str, producer: Producer, name: TopicPartition
    ) -> ErrorCode:
        metadata = self._node.metadata
        count = metadata.partition_count(TRANSACTION_STATE)
        leader = (
            metadata.leader_of(TRANSACTION_STATE, partition_for(transactional_id, count))
            if count
            else None
        )
        if leader is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if leader.broker_id == self._node.broker_id:
            return await self._node.transactions.verify(transactional_id, producer, name)
        request = _request(transactional_id, producer, name)
        with trio.move_on_after(ASKED_WITHIN_S):
            try:
                connection = await self._pool.connection((leader.host, leader.port))
                answer = await connection.request(request, version=VERSION)
            except NetworkFault as fault:
                _LOG.debug("the coordinator of %r does not answer: %s", transactional_id, fault)
            else:
                return next(_codes(answer), ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE


def _request(
    transactional_id: str, producer: Producer, name: TopicPartition
) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=(
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                verify_only=True,
                topics=(AddPartitionsToTxnTopic(name=name.topic, partitions=(name.partition,)),),
            ),
        )
    )


def _codes(answer: AddPartitionsToTxnResponse) -> Iterator[ErrorCode]:
    """Yield the error of the whole, if there is one, and those of the partitions."""
    if answer.error_code != ErrorCode.NONE:
        yield ErrorCode(answer.error_code)
    for transaction in answer.results_by_transaction:
        for topic in transaction.topic_results:
            for one in topic.results_by_partition:
                yield ErrorCode(one.partition_error_code)
