"""Ends of clients of transaction version 2 (KIP-890): each one gives the producer an epoch."""

from dataclasses import replace

import pytest

from broker.transactions.decisions import (
    LAST_EPOCH,
    Decided,
    NeedsProducerId,
    Producer,
    add_partitions,
    fence,
    init_producer,
    verify,
)
from broker.transactions.ending import EndAsked, complete, end, successor
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition
from wire.transaction_state import (
    BUMPS_EPOCH,
    TransactionMetadata,
    TransactionStatus,
    decode_value,
    encode_value,
)

NOW_MS = 1_000_000
T0 = TopicPartition("t", 0)
SELF, NEXT = Producer(producer_id=7, epoch=3), Producer(producer_id=7, epoch=4)
ONGOING = TransactionMetadata(
    producer_id=7,
    producer_epoch=3,
    timeout_ms=500,
    status=TransactionStatus.ONGOING,
    partitions=frozenset({T0}),
    started_ms=NOW_MS,
    client_version=BUMPS_EPOCH,
)
EMPTY = replace(ONGOING, status=TransactionStatus.EMPTY, partitions=frozenset(), client_version=0)


def ended(
    known: TransactionMetadata | None,
    producer: Producer = SELF,
    *,
    is_commit: bool = True,
    fresh_id: int | None = None,
) -> Decided:
    asked = EndAsked(producer=producer, is_commit=is_commit, bumps_epoch=True)
    decided = end(known, asked, fresh_id, NOW_MS)
    assert isinstance(decided, Decided)
    return decided


def kept(decided: Decided) -> TransactionMetadata:
    assert decided.error is ErrorCode.NONE
    assert decided.kept is not None
    return decided.kept


COMMITTING = kept(ended(ONGOING))
COMMITTED = complete(COMMITTING, NOW_MS)


def test_the_marker_and_the_producer_have_the_next_epoch() -> None:
    assert (COMMITTING.status, COMMITTING.producer_epoch) == (TransactionStatus.PREPARE_COMMIT, 4)
    assert successor(COMMITTING) == successor(COMMITTED) == NEXT
    late = add_partitions(COMMITTED, SELF, frozenset({T0}), NOW_MS, client_version=BUMPS_EPOCH)
    assert late.error is ErrorCode.PRODUCER_FENCED, "what comes late opens nothing"
    begun = add_partitions(COMMITTED, NEXT, frozenset({T0}), NOW_MS, client_version=BUMPS_EPOCH)
    assert kept(begun).client_version == BUMPS_EPOCH


@pytest.mark.parametrize("reads_anew", [False, True])
def test_an_end_whose_answer_was_lost_is_said_again_and_ends_nothing_else(
    reads_anew: bool,
) -> None:
    committed = decode_value(encode_value(COMMITTED)) if reads_anew else COMMITTED
    committing = decode_value(encode_value(COMMITTING)) if reads_anew else COMMITTING
    assert ended(committing).error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert ended(committed) == Decided(error=ErrorCode.NONE)
    assert ended(committed, is_commit=False).error is ErrorCode.INVALID_TXN_STATE
    assert ended(committed, NEXT).error is ErrorCode.INVALID_TXN_STATE, "it has begun nothing"
    earlier = Producer(producer_id=7, epoch=2)
    assert ended(committed, earlier).error is ErrorCode.PRODUCER_FENCED


def test_an_end_under_way_is_not_the_next_ones() -> None:
    assert ended(COMMITTING, NEXT).error is ErrorCode.PRODUCER_FENCED
    added = add_partitions(COMMITTING, NEXT, frozenset({T0}), NOW_MS, client_version=BUMPS_EPOCH)
    assert added.error is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("known", [EMPTY, replace(COMMITTED, producer_epoch=3)])
def test_what_has_not_begun_is_aborted_for_the_sake_of_the_epoch(
    known: TransactionMetadata,
) -> None:
    aborting = kept(ended(known, is_commit=False))
    assert (aborting.status, aborting.producer_epoch) == (TransactionStatus.PREPARE_ABORT, 4)
    assert complete(aborting, NOW_MS).status is TransactionStatus.COMPLETE_ABORT
    assert ended(known).error is ErrorCode.INVALID_TXN_STATE, "but not committed"


def test_whom_a_time_out_met_is_fenced_and_not_told_that_its_abort_is_done() -> None:
    aborted = complete(fence(ONGOING, NOW_MS), NOW_MS)
    assert ended(aborted, is_commit=False).error is ErrorCode.PRODUCER_FENCED


def test_epochs_that_are_used_up_are_followed_by_another_id_once_the_end_is_complete() -> None:
    last = Producer(producer_id=7, epoch=LAST_EPOCH)
    known = replace(ONGOING, producer_epoch=LAST_EPOCH)
    asked = EndAsked(producer=last, is_commit=True, bumps_epoch=True)
    assert isinstance(end(known, asked, None, NOW_MS), NeedsProducerId)
    committing = decode_value(encode_value(kept(ended(known, last, fresh_id=99))))
    fresh = Producer(producer_id=99, epoch=0)
    assert (committing.producer_id, committing.producer_epoch) == (7, LAST_EPOCH + 1)
    assert successor(committing) == fresh
    waits = ErrorCode.CONCURRENT_TRANSACTIONS
    assert ended(committing, last).error is waits
    assert ended(committing, fresh).error is waits
    assert add_partitions(committing, fresh, frozenset({T0}), NOW_MS).error is waits
    assert verify(committing, fresh, T0) is waits
    assert init_producer(committing, fresh, 500, None, NOW_MS) == Decided(error=waits)
    committed = decode_value(encode_value(complete(committing, NOW_MS)))
    assert successor(committed) == fresh
    assert ended(committed, last) == Decided(error=ErrorCode.NONE)
    assert verify(committed, last, T0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_strangers_end_nothing() -> None:
    other = Producer(producer_id=8, epoch=3)
    assert ended(ONGOING, other).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert ended(None).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
