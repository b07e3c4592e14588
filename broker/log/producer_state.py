"""The state that a log keeps of each idempotent producer, and the batches that it allows next.

Per producer id: its epoch and its last five batches. Rules and their order are those of Kafka's
ProducerStateManager and ProducerAppendInfo. Functions of values; `ProducerTable` holds the values.

    first batch seen of an id               any sequence (an id is forgotten when it has been idle)
    same epoch, sequence follows the last   appended; 2,147,483,647 is followed by 0
    one of the last five batches again      duplicate: answered with the offsets it has
    same epoch, any other sequence          OUT_OF_ORDER_SEQUENCE_NUMBER
    higher epoch, sequence 0                appended, the older batches are forgotten
    higher epoch, another sequence          OUT_OF_ORDER_SEQUENCE_NUMBER
    lower epoch                             INVALID_PRODUCER_EPOCH
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from broker.log.markers import AbortedTransaction, Marker
from broker.log.results import AppendOrigin, BatchRefused
from wire.errors import ErrorCode
from wire.record_batch import BatchHeader

REMEMBERED_BATCHES: Final = 5
SEQUENCES: Final = 2**31
NO_PRODUCER_ID: Final = -1
NO_OFFSET: Final = -1


class BatchMetadata(NamedTuple):
    """One remembered batch: where its sequences and its offsets end, and how many they are."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % SEQUENCES

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry(NamedTuple):
    """The state of one producer id in one log. A named tuple: each batch makes a new one."""

    producer_id: int
    epoch: int
    seen_ms: int
    """When it last wrote, by this broker's clock.

    Expiry goes by this and not, as in Kafka, by the records' timestamps: a producer that replays
    old records would be forgotten while it writes.
    """
    batches: tuple[BatchMetadata, ...] = ()
    """At most five, oldest first, all of this epoch."""
    coordinator_epoch: int = -1
    last_timestamp_ms: int = -1
    transaction_first_offset: int = NO_OFFSET
    """Where its open transaction began, -1 for none."""

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction of it is open."""
        return self.transaction_first_offset != NO_OFFSET


class Sequenced(Protocol):
    """What is asked of a batch before it may be its producer's next one."""

    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def last_offset_delta(self) -> int: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def is_transactional(self) -> bool: ...


def describe(header: BatchHeader, base_offset: int) -> BatchMetadata:
    """Return what is remembered of a batch that was appended at `base_offset`."""
    delta = header.last_offset_delta
    last_sequence = header.base_sequence  # none stays none: what this broker writes itself
    if header.base_sequence >= 0:
        last_sequence = (header.base_sequence + delta) % SEQUENCES
    return BatchMetadata(last_sequence, base_offset + delta, delta, header.max_timestamp)


def find_duplicate(entry: ProducerEntry | None, header: Sequenced) -> BatchMetadata | None:
    """Return the remembered batch with exactly this epoch and range of sequences."""
    if entry is None or entry.epoch != header.producer_epoch:
        return None
    last_sequence = (header.base_sequence + header.last_offset_delta) % SEQUENCES
    for batch in entry.batches:
        if batch.last_sequence == last_sequence and batch.first_sequence == header.base_sequence:
            return batch
    return None


def check(
    entry: ProducerEntry | None, header: Sequenced, origin: AppendOrigin
) -> BatchRefused | None:
    """Return why this producer may not append this batch next, None if it may.

    Duplicates are to be looked for before: to this function they are out of order.
    """
    if entry is None:
        return None
    if header.producer_epoch < entry.epoch:
        return BatchRefused(
            error=ErrorCode.INVALID_PRODUCER_EPOCH,
            reason=f"producer {entry.producer_id} wrote with epoch {header.producer_epoch} "
            f"after epoch {entry.epoch}",
        )
    if header.is_control:
        return None
    if origin is not AppendOrigin.COORDINATOR:
        expected = _next_sequence(entry, header.producer_epoch)
        if header.base_sequence != expected:
            return BatchRefused(
                error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                reason=f"producer {entry.producer_id} wrote sequence {header.base_sequence}, "
                f"expected {expected}",
            )
    if entry.transaction_first_offset != NO_OFFSET and not header.is_transactional:
        return BatchRefused(
            error=ErrorCode.INVALID_TXN_STATE,
            reason=f"producer {entry.producer_id} wrote outside its transaction that began at "
            f"offset {entry.transaction_first_offset}",
        )
    return None


def check_marker(entry: ProducerEntry | None, marker: Marker | None) -> BatchRefused | None:
    """Refuse the end of a transaction in the word of a coordinator that was replaced."""
    if entry is None or marker is None or marker.coordinator_epoch >= entry.coordinator_epoch:
        return None
    return BatchRefused(
        error=ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        reason=f"a coordinator of epoch {marker.coordinator_epoch} ends a transaction of producer "
        f"{entry.producer_id} after one of epoch {entry.coordinator_epoch}",
    )


def _next_sequence(entry: ProducerEntry, epoch: int) -> int:
    if epoch != entry.epoch or not entry.batches:
        return 0
    return (entry.batches[-1].last_sequence + 1) % SEQUENCES


def advance(
    entry: ProducerEntry | None,
    header: BatchHeader,
    base_offset: int,
    now_ms: int,
    marker: Marker | None = None,
) -> ProducerEntry:
    """Return what is known after this batch, appended at `base_offset`.

    A control batch ends the producer's transaction; `marker` is what it says.
    """
    if entry is None:
        entry = ProducerEntry(
            producer_id=header.producer_id, epoch=header.producer_epoch, seen_ms=now_ms
        )
    batches = entry.batches if entry.epoch == header.producer_epoch else ()
    if header.is_control:
        return ProducerEntry(
            producer_id=entry.producer_id,
            epoch=header.producer_epoch,
            batches=batches,
            coordinator_epoch=marker.coordinator_epoch if marker else entry.coordinator_epoch,
            last_timestamp_ms=header.max_timestamp,
            seen_ms=now_ms,
        )
    transaction = entry.transaction_first_offset
    if header.is_transactional and transaction == NO_OFFSET:
        transaction = base_offset
    return ProducerEntry(
        producer_id=entry.producer_id,
        epoch=header.producer_epoch,
        batches=(*batches, describe(header, base_offset))[-REMEMBERED_BATCHES:],
        coordinator_epoch=entry.coordinator_epoch,
        last_timestamp_ms=header.max_timestamp,
        transaction_first_offset=transaction,
        seen_ms=now_ms,
    )


def _told_by(headers: Iterable[BatchHeader], entry: ProducerEntry) -> ProducerEntry | None:
    """Return what these batches, the last of a log, tell of a producer; None for nothing."""
    told: ProducerEntry | None = None
    for header in headers:
        if header.producer_id == entry.producer_id:
            if header.is_control or header.is_transactional:
                return None
            told = advance(told, header, header.base_offset, entry.seen_ms)
    return told and told._replace(coordinator_epoch=entry.coordinator_epoch)


class ProducerTable:
    """The producers of one log, up to `end_offset`, and which transactions are not yet decided."""

    __slots__ = ("_decided", "_entries", "_open", "end_offset")

    def __init__(self, entries: Iterable[ProducerEntry] = (), *, end_offset: int = 0) -> None:
        self._entries = {entry.producer_id: entry for entry in entries}
        self._open = sorted(
            entry.transaction_first_offset
            for entry in self._entries.values()
            if entry.transaction_first_offset != NO_OFFSET
        )
        self._decided: dict[int, int] = {}
        """First offset and marker of transactions whose marker may not be replicated yet."""
        self.end_offset = end_offset
        """Every batch below this offset has been taken in."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._entries.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        """Return what is known of a producer, None for one that is unknown or expired."""
        return self._entries.get(producer_id)

    def put(self, entry: ProducerEntry) -> None:
        """Replace what is known of a producer, whose transaction stays as it was."""
        self._entries[entry.producer_id] = entry

    def replay(
        self, header: BatchHeader, now_ms: int, marker: Marker | None = None
    ) -> AbortedTransaction | None:
        """Take in a batch that is in the log, without asking whether it should be.

        Returns the transaction that it aborts, for the segment's index.
        """
        self.end_offset = header.next_offset
        if header.producer_id == NO_PRODUCER_ID:
            return None
        known = self._entries.get(header.producer_id)
        entry = advance(known, header, header.base_offset, now_ms, marker)
        self._entries[header.producer_id] = entry
        before = NO_OFFSET if known is None else known.transaction_first_offset
        if before == entry.transaction_first_offset:
            return None
        if before == NO_OFFSET:
            self._open.append(entry.transaction_first_offset)
            return None
        self._open.remove(before)
        self._decided[before] = header.base_offset
        if marker is None or not marker.is_abort:
            return None
        stable = self._open[0] if self._open else header.next_offset
        return AbortedTransaction(header.producer_id, before, header.base_offset, stable)

    def cut(
        self,
        producer_ids: Iterable[int],
        end_offset: int,
        read_tail: Callable[[], Sequence[BatchHeader]],
    ) -> bool:
        """Forget what these producers wrote at or behind `end_offset`, outside of transactions.

        `read_tail` gives the last batches that are left, for producers of which none is remembered.
        False, and nothing is changed, where they do not tell: the last one may lie before them.
        """
        left: list[ProducerEntry] = []
        tail: Sequence[BatchHeader] | None = None
        for entry in filter(None, map(self._entries.get, producer_ids)):
            kept = tuple(one for one in entry.batches if one.last_offset < end_offset)
            if kept:
                left.append(entry._replace(batches=kept, last_timestamp_ms=kept[-1].timestamp_ms))
                continue
            tail = read_tail() if tail is None else tail
            told = _told_by(tail, entry)
            if told is None:
                return False
            left.append(told)
        self._entries |= {entry.producer_id: entry for entry in left}
        self.end_offset = end_offset
        return True

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that have not written for that long and have no open transaction."""
        expired = [
            entry.producer_id
            for entry in self
            if entry.transaction_first_offset == NO_OFFSET
            and now_ms - entry.seen_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self._entries[producer_id]

    def first_unstable(self, high_watermark: int) -> int:
        """Return where the oldest transaction began that may still end otherwise, -1 for none.

        It is open, or its marker is not below the high watermark: a new leader may not have it.
        """
        if self._decided:
            self._decided = {
                first: last for first, last in self._decided.items() if last >= high_watermark
            }
        return min((*self._open[:1], *self._decided), default=NO_OFFSET)
