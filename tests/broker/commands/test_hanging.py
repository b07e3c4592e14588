"""A transaction hangs if a partition holds it open and no coordinator is going to end it."""

from dataclasses import replace

import pytest

from broker.commands.hanging import OpenTransaction, hanging, open_transactions, silent
from broker.commands.reaching import CommandFailed
from broker.commands.transactions import by_producer
from wire.errors import ErrorCode
from wire.messages.describe_producers import DescribeProducersProducerState
from wire.messages.describe_transactions import (
    DescribeTransactionsState,
    DescribeTransactionsTopicData,
)
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 3)


def producer(
    producer_id: int, *, start: int = -1, last_ms: int = 0
) -> DescribeProducersProducerState:
    return DescribeProducersProducerState(
        producer_id=producer_id,
        producer_epoch=2,
        last_timestamp=last_ms,
        coordinator_epoch=4,
        current_txn_start_offset=start,
    )


def known(producer_id: int, *partitions: int) -> DescribeTransactionsState:
    return DescribeTransactionsState(
        error_code=0,
        transactional_id="t",
        transaction_state="Ongoing",
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=0,
        producer_id=producer_id,
        producer_epoch=2,
        topics=(DescribeTransactionsTopicData(topic="orders", partitions=partitions),),
    )


def opened(*producers: DescribeProducersProducerState) -> list[OpenTransaction]:
    return open_transactions(PLACE, producers)


def test_producers_without_an_open_transaction_are_none_of_them() -> None:
    [found] = opened(producer(7), producer(8, start=0))
    assert (found.producer_id, found.start_offset, found.coordinator_epoch) == (8, 0, 4)


def test_a_producer_that_wrote_lately_may_still_end_its_transaction() -> None:
    both = opened(producer(7, start=1, last_ms=900), producer(8, start=2, last_ms=899))
    assert [one.producer_id for one in silent(both, 1_000, 100)] == [8]


def test_an_unknown_producer_and_a_transaction_without_the_partition_hang() -> None:
    found = opened(producer(7, start=1), producer(8, start=2), producer(9, start=3))
    transactions = {8: known(8, 1, 2), 9: known(9, 3)}
    assert [one.producer_id for one in hanging(found, transactions)] == [7, 8]


def test_a_transaction_that_its_coordinator_does_not_tell_of_is_not_taken_for_ended() -> None:
    gone = replace(known(7, 3), error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    assert by_producer([gone, known(8, 3)]) == {8: known(8, 3)}
    loading = replace(known(9, 3), error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    with pytest.raises(CommandFailed, match="transactional id t: COORDINATOR_LOAD_IN_PROGRESS"):
        by_producer([gone, loading])
