"""The transactional ids of one partition of `__transaction_state`, and its log."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

import trio

from broker.coordinator_log import append_refusal, require_room
from broker.led_partition import LedPartition, NotLeader
from broker.log.results import StorageError
from broker.replication.partition import OwnBatchRefused
from wire.errors import ErrorCode
from wire.record_batch import Record, build_batch
from wire.transaction_state import TransactionMetadata, encode_key, encode_value

TransactionRecord: TypeAlias = tuple[str, TransactionMetadata | None]
"""A transactional id and what is kept of it; None forgets it."""
RECORDS_PER_BATCH: Final = 500
"""Their values are small; a batch of these is far below every limit."""


class Transactions:
    """What is kept of each transactional id. Changes only by replaying records."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, TransactionMetadata] = {}

    def get(self, transactional_id: str) -> TransactionMetadata | None:
        """Return what is kept of an id, None for one that is unknown."""
        return self._kept.get(transactional_id)

    def all(self) -> Mapping[str, TransactionMetadata]:
        """Return a view of all."""
        return MappingProxyType(self._kept)

    def replay(self, record: TransactionRecord) -> None:
        """Apply one record."""
        transactional_id, kept = record
        if kept is None:
            self._kept.pop(transactional_id, None)
        else:
            self._kept[transactional_id] = kept


@dataclass(slots=True, kw_only=True)
class CoordinatedLog:
    """A partition of `__transaction_state` that this broker leads.

    transactions   None until the log has been read
    """

    led: LedPartition
    transactions: Transactions | None = None
    last_written: int = -1
    _scopes: set[trio.CancelScope] = field(default_factory=set)

    @property
    def loaded(self) -> Transactions:
        """The transactions of a log that is known to be loaded."""
        assert self.transactions is not None
        return self.transactions

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Do something for this log that ends, without a word, when `abandon` is called."""
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)

    def abandon(self) -> None:
        """End what is under way: leadership has ended."""
        for scope in self._scopes:
            scope.cancel()

    def write(self, records: Sequence[TransactionRecord], wall_ms: int) -> ErrorCode:
        """Append and replay, with no await in between.

        Return what `append_refusal` says of a fault.
        """
        try:
            written = [(some, _batch(some, wall_ms)) for some in _in_pieces(records)]
            require_room(self.led, [batch for _, batch in written])
            for some, batch in written:
                self.last_written = self.led.append_own(batch) + len(some) - 1
                for record in some:
                    self.loaded.replay(record)
        except (NotLeader, OwnBatchRefused, StorageError) as fault:
            return append_refusal(self.led, fault)
        return ErrorCode.NONE


def _in_pieces(records: Sequence[TransactionRecord]) -> Iterator[Sequence[TransactionRecord]]:
    for first in range(0, len(records), RECORDS_PER_BATCH):
        yield records[first : first + RECORDS_PER_BATCH]


def _batch(records: Sequence[TransactionRecord], wall_ms: int) -> bytes:
    return build_batch(
        Record(
            offset=number,
            timestamp_ms=wall_ms,
            key=encode_key(transactional_id),
            value=None if kept is None else encode_value(kept),
            headers=(),
        )
        for number, (transactional_id, kept) in enumerate(records)
    )
