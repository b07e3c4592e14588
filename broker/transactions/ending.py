"""How a transaction ends: what EndTxn is answered, and what is kept meanwhile. Pure.

Clients of transaction version 2 (KIP-890) get the next epoch with each end, and the markers have
it. Whatever was under way before them is of an earlier epoch, so no leader takes it any more:

    ONGOING, epoch 5      ──► PREPARE_COMMIT, 6       ──► COMPLETE_COMMIT, 6: the client is 6 now
    ONGOING, last epoch   ──► PREPARE_COMMIT, next id ──► COMPLETE_COMMIT of the next id, epoch 0

Their repeated EndTxn is known by its epoch, the one before: with the same epoch it would be the end
of the transaction that follows. Rules and codes are those of TransactionCoordinator.endTransaction
in Apache Kafka 4.0.
"""

from dataclasses import replace
from typing import Final

from broker.transactions.decisions import (
    ENDING,
    LAST_EPOCH,
    NO_ID,
    Decided,
    NeedsProducerId,
    Producer,
    changed,
    stranger,
)
from wire.errors import ErrorCode
from wire.transaction_state import BUMPS_EPOCH, TransactionMetadata, TransactionStatus
from wire.values import frozen

_S: Final = TransactionStatus
_COMPLETE: Final = frozenset({_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})


@frozen
class EndAsked:
    """One EndTxn; `bumps_epoch` where its client is of transaction version 2."""

    producer: Producer
    is_commit: bool
    bumps_epoch: bool = False


def end(
    known: TransactionMetadata | None, asked: EndAsked, fresh_id: int | None, now_ms: int
) -> Decided | NeedsProducerId:
    """Commit or abort; an end that has come already is said once more.

    A client of version 2 may abort what has not begun, for the sake of the epoch.
    """
    if known is not None and asked.bumps_epoch and _is_repeated(known, asked.producer):
        return Decided(error=_again(known, asked))
    error = stranger(known, asked.producer)
    if known is None or error is not ErrorCode.NONE:
        return Decided(error=error)
    if asked.bumps_epoch and known.status in ENDING:
        return Decided(error=ErrorCode.PRODUCER_FENCED)
    may_begin = asked.bumps_epoch and not asked.is_commit
    if known.status is _S.ONGOING or may_begin:
        return _prepared(known, asked, fresh_id, now_ms)
    if asked.bumps_epoch:
        return Decided(error=ErrorCode.INVALID_TXN_STATE)
    return Decided(error=_again(known, asked))


def _is_repeated(known: TransactionMetadata, producer: Producer) -> bool:
    """Say whether an end of this producer has been decided: its epoch is the one before.

    A fence is no such end, so whom it met is told of it.
    """
    if known.client_version < BUMPS_EPOCH or known.status not in ENDING | _COMPLETE:
        return False
    if known.producer_id == producer.producer_id:
        return known.producer_epoch == producer.epoch + 1
    is_previous = known.previous_producer_id == producer.producer_id
    return is_previous and producer.epoch == LAST_EPOCH and known.producer_epoch == 0


def _again(known: TransactionMetadata, asked: EndAsked) -> ErrorCode:
    """Return what is answered where nothing is left to decide."""
    preparing = _S.PREPARE_COMMIT if asked.is_commit else _S.PREPARE_ABORT
    done = _S.COMPLETE_COMMIT if asked.is_commit else _S.COMPLETE_ABORT
    if known.status is done:
        return ErrorCode.NONE
    if known.status is preparing:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.INVALID_TXN_STATE


def _prepared(
    known: TransactionMetadata, asked: EndAsked, fresh_id: int | None, now_ms: int
) -> Decided | NeedsProducerId:
    preparing = _S.PREPARE_COMMIT if asked.is_commit else _S.PREPARE_ABORT
    kept = changed(known, preparing, now_ms)
    if not asked.bumps_epoch:
        return Decided(kept=replace(kept, client_version=0))
    is_last = known.producer_epoch >= LAST_EPOCH
    if is_last and fresh_id is None:
        return NeedsProducerId()
    return Decided(
        kept=replace(
            kept,
            producer_epoch=known.producer_epoch + 1,
            previous_epoch=known.producer_epoch,
            next_producer_id=fresh_id if is_last and fresh_id is not None else NO_ID,
            started_ms=known.started_ms if known.status is _S.ONGOING else now_ms,
            client_version=BUMPS_EPOCH,
        )
    )


def successor(kept: TransactionMetadata) -> Producer:
    """Return who the client is from now on, whose end this is."""
    if kept.next_producer_id != NO_ID:
        return Producer(producer_id=kept.next_producer_id, epoch=0)
    return Producer(producer_id=kept.producer_id, epoch=kept.producer_epoch)


def complete(known: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Return an ended transaction whose end is written in each of its partitions."""
    is_commit = known.status is _S.PREPARE_COMMIT
    status = _S.COMPLETE_COMMIT if is_commit else _S.COMPLETE_ABORT
    done = replace(changed(known, status, now_ms), partitions=frozenset())
    if known.next_producer_id == NO_ID:
        return done
    return replace(
        done,
        producer_id=known.next_producer_id,
        producer_epoch=0,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_ID,
    )
