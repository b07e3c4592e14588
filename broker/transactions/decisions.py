"""What a transactional id's coordinator decides. Pure: from what is kept of it to what shall be.

    EMPTY ──► ONGOING ──► PREPARE_COMMIT ──► COMPLETE_COMMIT
      ▲          │   └──► PREPARE_ABORT ───► COMPLETE_ABORT
      │          └ a newer producer, or time-out: PREPARE_ABORT with the next epoch
      └── InitProducerId: the next epoch, or another producer id when epochs are used up

An answer may be given only when what it rests on is safe, and so are the markers of an end. Rules
and codes are Kafka's (TransactionCoordinator and TransactionMetadata; KIP-98, KIP-360). Ends are
decided in `ending`.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition
from wire.transaction_state import TransactionMetadata, TransactionStatus
from wire.values import frozen

NO_EPOCH: Final = -1
NO_ID: Final = -1
LAST_EPOCH: Final = 2**15 - 2
"""The last one that a producer gets: there is always another one left to fence it."""

_S: Final = TransactionStatus
ALLOWED: Final[Mapping[TransactionStatus, frozenset[TransactionStatus]]] = MappingProxyType(
    {
        _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
        _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT}),
        _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
        _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
        _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
        _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
    }
)
"""Where a status may lead; EMPTY to EMPTY and ONGOING to ONGOING change what is within.

Only clients of transaction version 2 abort what has not begun, for the sake of the epoch.
"""
ENDING: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
AT_REST: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})


@frozen
class Producer:
    """A producer as it names itself, or as it is told."""

    producer_id: int
    epoch: int


@frozen
class Decided:
    """The code to be answered, and what is to be kept from now on; None where nothing changes."""

    error: ErrorCode = ErrorCode.NONE
    kept: TransactionMetadata | None = None


class NeedsProducerId:
    """The decision needs a producer id that nobody has."""


def changed(
    known: TransactionMetadata, status: TransactionStatus, now_ms: int
) -> TransactionMetadata:
    """Return it in another status, which has to follow the present one."""
    assert status in ALLOWED[known.status], f"{known.status.name} does not lead to {status.name}"
    return replace(known, status=status, updated_ms=now_ms)


def init_producer(
    known: TransactionMetadata | None,
    expected: Producer | None,
    timeout_ms: int,
    fresh_id: int | None,
    now_ms: int,
) -> Decided | NeedsProducerId:
    """Give a producer its id and epoch, and fence every earlier one (InitProducerId).

    `expected` is who asks, if it is somebody already (KIP-360): it is given the next epoch, unless
    another one has come meanwhile. `kept` says what the producer is told. An open transaction is
    aborted first, and the producer asks again.
    """
    if known is None:
        if fresh_id is None:
            return NeedsProducerId()
        return Decided(kept=_first(fresh_id, timeout_ms, now_ms))
    if expected is not None and not _may_be(known, expected):
        is_next = expected.producer_id == known.next_producer_id != NO_ID
        return Decided(
            error=ErrorCode.CONCURRENT_TRANSACTIONS if is_next else ErrorCode.PRODUCER_FENCED
        )
    if known.status not in AT_REST:
        is_open = known.status is TransactionStatus.ONGOING
        fenced = fence(known, now_ms) if is_open else None
        return Decided(error=ErrorCode.CONCURRENT_TRANSACTIONS, kept=fenced)
    is_current = expected is None or expected.epoch == known.producer_epoch
    if is_current and known.producer_epoch >= LAST_EPOCH:
        return _rotated(known, expected, timeout_ms, fresh_id, now_ms)
    return _bumped(known, expected, timeout_ms, now_ms)


def _first(producer_id: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
    return TransactionMetadata(
        producer_id=producer_id,
        producer_epoch=0,
        timeout_ms=timeout_ms,
        status=TransactionStatus.EMPTY,
        updated_ms=now_ms,
    )


def _may_be(known: TransactionMetadata, expected: Producer) -> bool:
    """Say whether it is the present producer, or that of the id before, which asks once more."""
    if expected.producer_id == known.producer_id:
        return True
    return expected.producer_id == known.previous_producer_id and expected.epoch >= LAST_EPOCH


def _bumped(
    known: TransactionMetadata, expected: Producer | None, timeout_ms: int, now_ms: int
) -> Decided:
    if expected is None:
        epoch, previous = known.producer_epoch + 1, NO_EPOCH
    elif expected.epoch == known.producer_epoch:
        epoch, previous = known.producer_epoch + 1, known.producer_epoch
    elif expected.epoch == known.previous_epoch:  # it has asked before, and got no answer
        epoch, previous = known.producer_epoch, known.previous_epoch
    else:
        return Decided(error=ErrorCode.PRODUCER_FENCED)
    return Decided(
        kept=replace(
            changed(known, TransactionStatus.EMPTY, now_ms),
            producer_epoch=epoch,
            previous_epoch=previous,
            timeout_ms=timeout_ms,
            started_ms=-1,
            client_version=0,
        )
    )


def _rotated(
    known: TransactionMetadata,
    expected: Producer | None,
    timeout_ms: int,
    fresh_id: int | None,
    now_ms: int,
) -> Decided | NeedsProducerId:
    if fresh_id is None:
        return NeedsProducerId()
    return Decided(
        kept=replace(
            _first(fresh_id, timeout_ms, now_ms),
            previous_producer_id=known.producer_id,
            previous_epoch=NO_EPOCH if expected is None else known.producer_epoch,
        )
    )


def fence(known: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Return the abort of an open transaction by which its producer can write no more."""
    aborting = changed(known, TransactionStatus.PREPARE_ABORT, now_ms)
    return replace(
        aborting,
        producer_epoch=known.producer_epoch + 1,
        previous_epoch=NO_EPOCH,
        client_version=0,
    )


def stranger(known: TransactionMetadata | None, producer: Producer) -> ErrorCode:
    """Return why this is not the present producer of the transactional id, NONE if it is.

    The id that follows is the present one's too, as its client has been told, and has to wait.
    """
    if known is not None and producer.producer_id == known.next_producer_id != NO_ID:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if known is None or known.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def add_partitions(
    known: TransactionMetadata | None,
    producer: Producer,
    partitions: frozenset[TopicPartition],
    now_ms: int,
    *,
    client_version: int = 0,
) -> Decided:
    """Make partitions part of the transaction, which begins with the first.

    A client asks with AddPartitionsToTxn. One of transaction version 2 only writes, and the leaders
    of what it writes to ask.
    """
    error = stranger(known, producer)
    if known is None or error is not ErrorCode.NONE:
        return Decided(error=error)
    if known.status in ENDING:
        return Decided(error=ErrorCode.CONCURRENT_TRANSACTIONS)
    is_open = known.status is TransactionStatus.ONGOING
    if is_open and partitions <= known.partitions:
        return Decided()
    return Decided(
        kept=replace(
            changed(known, TransactionStatus.ONGOING, now_ms),
            partitions=known.partitions | partitions,
            started_ms=known.started_ms if is_open else now_ms,
            client_version=client_version,
        )
    )


def verify(
    known: TransactionMetadata | None, producer: Producer, partition: TopicPartition
) -> ErrorCode:
    """Say whether a partition is part of an open transaction of this producer (KIP-890)."""
    error = stranger(known, producer)
    if known is None or error is not ErrorCode.NONE:
        return error
    if known.status in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if partition in known.partitions:
        return ErrorCode.NONE
    return ErrorCode.INVALID_TXN_STATE


def has_timed_out(known: TransactionMetadata, now_ms: int) -> bool:
    """Say whether an open transaction has taken longer than its producer asked for."""
    is_open = known.status is TransactionStatus.ONGOING
    return is_open and known.started_ms + known.timeout_ms < now_ms


def has_expired(known: TransactionMetadata, expiration_ms: int, now_ms: int) -> bool:
    """Say whether a transactional id has been at rest for so long that it is forgotten."""
    return known.status in AT_REST and known.updated_ms + expiration_ms <= now_ms
