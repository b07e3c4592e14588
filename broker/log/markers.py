"""Transaction markers in control batches, and the entries kept of aborted transactions. Pure.

A transaction's records lie between other records; a marker behind them, a control batch of the same
producer id, says whether they count. Sources: Kafka's ControlRecordType, EndTransactionMarker,
AbortedTxn.

    key     int16 version  int16 type: 0 abort, 1 commit
    value   int16 version  int32 coordinator epoch
"""

from struct import Struct, error
from typing import Final, NamedTuple

from wire.record_batch import Buffer, CorruptBatch, Record, build_batch, iterate_records

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_ABORT, _COMMIT = 0, 1


class Marker(NamedTuple):
    """How a producer's transaction ended, in the word of a coordinator of that epoch."""

    is_abort: bool
    coordinator_epoch: int


def build_marker(marker: Marker, *, producer_id: int, producer_epoch: int, wall_ms: int) -> bytes:
    """Return the control batch that ends a producer's transaction."""
    record = Record(
        offset=0,
        timestamp_ms=wall_ms,
        key=_KEY.pack(0, _ABORT if marker.is_abort else _COMMIT),
        value=_VALUE.pack(0, marker.coordinator_epoch),
        headers=(),
    )
    return build_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


class AbortedTransaction(NamedTuple):
    """One entry of a `.txnindex`: offsets of the first record and of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    """Where the oldest open transaction began when this one ended, else behind its marker."""


def read_marker(batch: Buffer) -> Marker | None:
    """Return what one whole control batch says of a transaction.

    None for one that compaction has emptied, and for control records of another kind (a Raft
    leader's), which say nothing of transactions.
    """
    try:
        record = next(iterate_records(batch), None)
        if record is None or record.key is None:
            return None
        _, kind = _KEY.unpack_from(record.key)
        if kind not in (_ABORT, _COMMIT) or record.value is None:
            return None
        _, coordinator_epoch = _VALUE.unpack_from(record.value)
    except (CorruptBatch, error):
        return None
    return Marker(kind == _ABORT, coordinator_epoch)
