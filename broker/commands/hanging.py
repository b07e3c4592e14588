"""Which open transactions hang: nobody is left to end them (KIP-664). Pure.

    partition's leader   producer 7 has a transaction open since offset 4012, silent for 3 h
    its coordinator      no such producer, or a transaction of it without this partition

A hanging transaction holds up every read-committed consumer of its partition, for ever.
"""

from collections.abc import Iterable, Mapping

from wire.messages.describe_producers import DescribeProducersProducerState
from wire.messages.describe_transactions import DescribeTransactionsState
from wire.topic_partition import TopicPartition
from wire.values import frozen


@frozen
class OpenTransaction:
    """A transaction that a partition's leader holds open."""

    place: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_ms: int
    """When the producer wrote last."""


def open_transactions(
    place: TopicPartition, producers: Iterable[DescribeProducersProducerState]
) -> list[OpenTransaction]:
    """Return the transactions that are open in a partition."""
    return [
        OpenTransaction(
            place=place,
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            coordinator_epoch=one.coordinator_epoch,
            start_offset=one.current_txn_start_offset,
            last_ms=one.last_timestamp,
        )
        for one in producers
        if one.current_txn_start_offset >= 0
    ]


def silent(
    opened: Iterable[OpenTransaction], now_ms: int, longer_than_ms: int
) -> list[OpenTransaction]:
    """Return those whose producers have not written for longer than any transaction may take."""
    return [one for one in opened if now_ms - one.last_ms > longer_than_ms]


def hanging(
    opened: Iterable[OpenTransaction], known: Mapping[int, DescribeTransactionsState]
) -> list[OpenTransaction]:
    """Return those that no coordinator is going to end; `known` has transactions by producer id."""
    return [
        one
        for one in opened
        if one.producer_id not in known or one.place not in _places(known[one.producer_id])
    ]


def _places(transaction: DescribeTransactionsState) -> set[TopicPartition]:
    return {
        TopicPartition(topic.topic, index)
        for topic in transaction.topics
        for index in topic.partitions
    }
