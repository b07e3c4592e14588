"""Asks, before a transaction's first batch is appended, whether it is still open (KIP-890).

Clients of transaction version 2 name no partitions beforehand: for them it adds the partition.

A batch that comes late, behind the end of its transaction, would open it again, and nobody would
ever end it: the last stable offset would stand still.
"""

import logging
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

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
from wire.transaction_state import BUMPS_EPOCH

_LOG = logging.getLogger(__name__)

VERSION: Final = 4
END_ENDS_WITHIN_S: Final = 0.1
END_LOOKED_AT_S: Final = 0.02
"""How long, and how often, a batch waits for the end of the transaction before, as in Kafka: its
client has been told that it may go on."""
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


class _Asked(NamedTuple):
    """What a coordinator is asked: is this partition part of it, or, with `adds`, make it part."""

    transactional_id: str
    producer: Producer
    name: TopicPartition
    adds: bool


class Verifier:
    """Asks the coordinator of a transactional id, wherever it is."""

    def __init__(self, node: Host, pool: ConnectionPool) -> None:
        self._node = node
        self._pool = pool

    async def verify(
        self,
        partition: Partition,
        transactional_id: str,
        producer: Producer,
        *,
        adds: bool = False,
    ) -> ErrorCode:
        """Return NONE if a batch of the producer's transaction may be appended now.

        It holds until the caller lets go of the loop. What was appended while the coordinator was
        asked may have ended the transaction, so it is asked again then. With `adds` the partition
        becomes part of the transaction.
        """
        asked = _Asked(
            transactional_id, producer, TopicPartition(partition.topic, partition.index), adds
        )
        while True:
            known = partition.log.producer(producer.producer_id)
            if known is not None and known.is_in_transaction and known.epoch == producer.epoch:
                return ErrorCode.NONE
            error = await self._ask_patiently(asked)
            if error is not ErrorCode.NONE:
                return error
            if partition.log.producer(producer.producer_id) is known:
                return ErrorCode.NONE

    async def _ask_patiently(self, asked: _Asked) -> ErrorCode:
        deadline = trio.current_time() + END_ENDS_WITHIN_S
        while True:
            error = await self._ask(asked)
            is_ending = error is ErrorCode.CONCURRENT_TRANSACTIONS and asked.adds
            if not is_ending or trio.current_time() >= deadline:
                return error
            await trio.sleep(END_LOOKED_AT_S)

    async def _ask(self, asked: _Asked) -> ErrorCode:
        metadata = self._node.metadata
        count = metadata.partition_count(TRANSACTION_STATE)
        leader = (
            metadata.leader_of(TRANSACTION_STATE, partition_for(asked.transactional_id, count))
            if count
            else None
        )
        if leader is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if leader.broker_id == self._node.broker_id:
            return await self._ask_own(asked)
        with trio.move_on_after(ASKED_WITHIN_S):
            try:
                connection = await self._pool.connection((leader.host, leader.port))
                answer = await connection.request(_request(asked), version=VERSION)
            except NetworkFault as fault:
                name = asked.transactional_id
                _LOG.debug("the coordinator of %r does not answer: %s", name, fault)
            else:
                return next(_codes(answer), ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE

    async def _ask_own(self, asked: _Asked) -> ErrorCode:
        transactions = self._node.transactions
        if not asked.adds:
            return await transactions.verify(asked.transactional_id, asked.producer, asked.name)
        return await transactions.add_partitions(
            asked.transactional_id,
            asked.producer,
            frozenset({asked.name}),
            client_version=BUMPS_EPOCH,
        )


def _request(asked: _Asked) -> AddPartitionsToTxnRequest:
    topic = AddPartitionsToTxnTopic(name=asked.name.topic, partitions=(asked.name.partition,))
    return AddPartitionsToTxnRequest(
        transactions=(
            AddPartitionsToTxnTransaction(
                transactional_id=asked.transactional_id,
                producer_id=asked.producer.producer_id,
                producer_epoch=asked.producer.epoch,
                verify_only=not asked.adds,
                topics=(topic,),
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
