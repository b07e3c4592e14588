"""Single decisions of the coordinator, and Kafka's codes for those whose time is over."""

from dataclasses import replace

import pytest

from broker.transactions.decisions import (
    ALLOWED,
    AT_REST,
    LAST_EPOCH,
    Decided,
    NeedsProducerId,
    Producer,
    add_partitions,
    fence,
    has_expired,
    has_timed_out,
    init_producer,
    verify,
)
from broker.transactions.ending import EndAsked, complete, end
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition
from wire.transaction_state import TransactionMetadata, TransactionStatus

NOW_MS = 1_000_000
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SELF, EARLIER, OTHER = (
    Producer(producer_id=7, epoch=3),
    Producer(producer_id=7, epoch=2),
    Producer(producer_id=8, epoch=3),
)


def kept(status: TransactionStatus, **changes: object) -> TransactionMetadata:
    is_open = status not in {TransactionStatus.EMPTY, TransactionStatus.COMPLETE_COMMIT}
    made = TransactionMetadata(
        producer_id=7,
        producer_epoch=3,
        timeout_ms=500,
        status=status,
        partitions=frozenset({T0}) if is_open else frozenset(),
        updated_ms=NOW_MS,
        started_ms=NOW_MS,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


EMPTY, ONGOING = kept(TransactionStatus.EMPTY), kept(TransactionStatus.ONGOING)
COMMITTING, ABORTING = (
    kept(TransactionStatus.PREPARE_COMMIT),
    kept(TransactionStatus.PREPARE_ABORT),
)
COMMITTED = kept(TransactionStatus.COMPLETE_COMMIT)


@pytest.mark.parametrize(
    ("known", "producer", "error"),
    [
        (None, SELF, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ONGOING, OTHER, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ONGOING, EARLIER, ErrorCode.PRODUCER_FENCED),
        (ONGOING, SELF, ErrorCode.NONE),
        (COMMITTING, SELF, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_only_the_present_producer_of_an_id_adds_verifies_and_ends(
    known: TransactionMetadata | None, producer: Producer, error: ErrorCode
) -> None:
    added = add_partitions(known, producer, frozenset({T0}), NOW_MS)
    assert (added.error, added.kept) == (error, None)
    assert verify(known, producer, T0) == error
    ended = end(known, EndAsked(producer=producer, is_commit=True), None, NOW_MS)
    assert isinstance(ended, Decided)
    assert ended.error == error


def test_a_transaction_begins_with_its_first_partition_and_grows() -> None:
    begun = add_partitions(COMMITTED, SELF, frozenset({T0}), NOW_MS + 5).kept
    assert begun is not None
    assert (begun.status, begun.started_ms) == (TransactionStatus.ONGOING, NOW_MS + 5)
    grown = add_partitions(begun, SELF, frozenset({T1}), NOW_MS + 9).kept
    assert grown is not None
    assert (grown.partitions, grown.started_ms) == (frozenset({T0, T1}), NOW_MS + 5)


def test_what_has_ended_is_part_of_no_transaction() -> None:
    assert verify(complete(COMMITTING, NOW_MS), SELF, T0) is ErrorCode.INVALID_TXN_STATE
    assert verify(EMPTY, SELF, T0) is ErrorCode.INVALID_TXN_STATE
    assert verify(ONGOING, SELF, T1) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("known", "is_commit", "error"),
    [
        (COMMITTED, True, ErrorCode.NONE),
        (COMMITTED, False, ErrorCode.INVALID_TXN_STATE),
        (COMMITTING, True, ErrorCode.CONCURRENT_TRANSACTIONS),
        (COMMITTING, False, ErrorCode.INVALID_TXN_STATE),
        (ABORTING, True, ErrorCode.INVALID_TXN_STATE),
        (EMPTY, True, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_an_end_is_said_again_and_no_other_one_taken(
    known: TransactionMetadata, is_commit: bool, error: ErrorCode
) -> None:
    asked = EndAsked(producer=SELF, is_commit=is_commit)
    assert end(known, asked, None, NOW_MS) == Decided(error=error)


def test_a_new_instance_gets_the_next_epoch_and_an_open_transaction_is_aborted_first() -> None:
    given = init_producer(EMPTY, None, 500, None, NOW_MS)
    assert isinstance(given, Decided)
    assert given.kept is not None
    assert (given.kept.producer_id, given.kept.producer_epoch) == (7, 4)
    waits = init_producer(ONGOING, None, 500, None, NOW_MS)
    assert waits == Decided(error=ErrorCode.CONCURRENT_TRANSACTIONS, kept=fence(ONGOING, NOW_MS))
    assert fence(ONGOING, NOW_MS).producer_epoch == 4, "what the older one writes is refused"


def test_a_producer_that_asks_twice_for_its_next_epoch_gets_it_twice() -> None:
    first = init_producer(EMPTY, SELF, 500, None, NOW_MS)
    assert isinstance(first, Decided)
    again = init_producer(first.kept, SELF, 500, None, NOW_MS)
    assert again == first
    earlier = init_producer(first.kept, EARLIER, 500, None, NOW_MS)
    assert earlier == Decided(error=ErrorCode.PRODUCER_FENCED)


def test_epochs_that_are_used_up_are_followed_by_another_id() -> None:
    last = replace(EMPTY, producer_epoch=LAST_EPOCH)
    asks = Producer(producer_id=7, epoch=LAST_EPOCH)
    assert isinstance(init_producer(last, asks, 500, None, NOW_MS), NeedsProducerId)
    given = init_producer(last, asks, 500, 99, NOW_MS)
    assert isinstance(given, Decided)
    assert given.kept is not None
    assert (given.kept.producer_id, given.kept.producer_epoch) == (99, 0)
    again = init_producer(given.kept, asks, 500, None, NOW_MS)
    assert isinstance(again, Decided)
    assert again.kept is not None
    assert (again.kept.producer_id, again.kept.producer_epoch) == (99, 0)
    stranger = Producer(producer_id=7, epoch=5)
    refused = init_producer(given.kept, stranger, 500, None, NOW_MS)
    assert refused == Decided(error=ErrorCode.PRODUCER_FENCED)


def test_only_an_open_transaction_times_out_and_only_what_rests_expires() -> None:
    assert not has_timed_out(ONGOING, NOW_MS + 500)
    assert has_timed_out(ONGOING, NOW_MS + 501)
    assert not has_timed_out(COMMITTING, NOW_MS + 10_000)
    assert has_expired(COMMITTED, 700, NOW_MS + 700)
    assert not has_expired(COMMITTED, 700, NOW_MS + 699)
    assert not has_expired(ONGOING, 700, NOW_MS + 10_000)


def test_every_status_leads_somewhere_and_only_an_open_transaction_commits() -> None:
    assert set(ALLOWED) == set(TransactionStatus)
    commits = [one for one in ALLOWED if TransactionStatus.PREPARE_COMMIT in ALLOWED[one]]
    assert commits == [TransactionStatus.ONGOING]
    aborts = {one for one in ALLOWED if TransactionStatus.PREPARE_ABORT in ALLOWED[one]}
    assert aborts == AT_REST | {TransactionStatus.ONGOING}
