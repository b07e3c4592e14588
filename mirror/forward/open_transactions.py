"""Whose open transactions hold records back: asked of the source while they do for long."""

from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final

import trio

from mirror.state.partition import MirroredPartition
from runtime.process.clock import now_ms
from runtime.process.output import escaped
from wire.errors import ErrorCode, describe
from wire.messages.describe_producers import (
    DescribeProducersProducerState,
    DescribeProducersRequest,
    DescribeProducersTopicRequest,
)
from wire.messages.list_transactions import ListTransactionsRequest
from wire.net import Cluster, NetworkFault
from wire.topic_partition import TopicPartition
from wire.values import frozen

HELD_MS: Final = 10_000
"""Transactions that are open for less are as they should be."""
LOOK_S: Final = 5.0
AT_ONCE: Final = 20
"""So many partitions are asked about in one look; one transaction may hold thousands."""


@frozen
class OpenTransaction:
    """The producer that holds a partition back; `transactional_id` None where nobody tells it."""

    producer_id: int
    producer_epoch: int
    transactional_id: str | None


def held_since_ms(partition: MirroredPartition, at_ms: int) -> int | None:
    """Return since when an open transaction has held records back, None if not for HELD_MS."""
    since_ms = partition.source.held_since_ms(partition.offset_map.mirrored_source_end)
    if not partition.is_flowing or since_ms is None or at_ms - since_ms < HELD_MS:
        return None
    return since_ms


def told_transaction(
    partition: MirroredPartition, at_ms: int, known: OpenTransaction | str | None
) -> str | None:
    """Return what holds a partition back and for how long, None if nothing has for HELD_MS.

    `known` is whose transaction it is, or why that is not known.
    """
    since_ms = held_since_ms(partition, at_ms)
    if since_ms is None:
        return None
    match known:
        case OpenTransaction(producer_id=producer_id, transactional_id=name):
            whose = f" of producer id {producer_id}"
            whose += "" if name is None else f", transactional id {escaped(name)}"
        case str(reason):
            whose = f" (whose, the source does not tell: {reason})"
        case None:
            whose = ""
    return (
        f"an open transaction{whose} at source offset {partition.source.readable_end} has held"
        f" back what is behind it for {(at_ms - since_ms) // 1000} s"
    )


class OpenTransactions:
    """The open transactions that hold this worker's partitions back."""

    def __init__(
        self, partitions: Mapping[TopicPartition, MirroredPartition], source: Cluster
    ) -> None:
        self._partitions = partitions
        self._source = source
        self._known: dict[TopicPartition, OpenTransaction | str] = {}
        self.known: Final[Mapping[TopicPartition, OpenTransaction | str]] = MappingProxyType(
            self._known
        )
        """Whose transaction it is, or why that is not known, of each that was asked about."""

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await trio.sleep(LOOK_S)
            await self.ask_about_held(now_ms())

    async def ask_about_held(self, at_ms: int) -> None:
        """Ask about partitions that are held back, those first of which nothing is known."""
        held = {
            name for name, one in self._partitions.items() if held_since_ms(one, at_ms) is not None
        }
        for name in self._known.keys() - held:
            del self._known[name]
        for name in islice(sorted(held, key=lambda one: (one in self._known, one)), AT_ONCE):
            try:
                self._known[name] = await self._ask(name)
            except NetworkFault as fault:
                self._known[name] = str(fault)

    async def _ask(self, name: TopicPartition) -> OpenTransaction | str:
        """Return whose transaction is the oldest; raises NetworkFault."""
        topic = DescribeProducersTopicRequest(name=name.topic, partition_indexes=(name.partition,))
        answer = await self._source.request_leader(*name, DescribeProducersRequest(topics=(topic,)))
        told = answer.topics[0].partitions[0]
        if told.error_code != ErrorCode.NONE:
            self._source.forget(name.topic)
            return describe(told.error_code)
        oldest = oldest_transaction(told.active_producers)
        if oldest is None:
            return "no producer has one now"
        return OpenTransaction(
            producer_id=oldest.producer_id,
            producer_epoch=oldest.producer_epoch,
            transactional_id=await self._transactional_id(oldest.producer_id),
        )

    async def _transactional_id(self, producer_id: int) -> str | None:
        """Return the id by the broker that coordinates it; None where none tells."""
        request = ListTransactionsRequest(producer_id_filters=(producer_id,))
        for node in (await self._source.metadata(())).brokers:
            try:
                answer = await self._source.request(request, node=node)
            except NetworkFault:
                continue  # the producer id alone finds it as well
            for one in answer.transaction_states:
                if one.producer_id == producer_id:
                    return one.transactional_id
        return None


def oldest_transaction(
    producers: tuple[DescribeProducersProducerState, ...],
) -> DescribeProducersProducerState | None:
    """Return the producer whose open transaction began first, None if none is open."""
    within = [one for one in producers if one.current_txn_start_offset >= 0]
    return min(within, key=lambda one: one.current_txn_start_offset, default=None)
