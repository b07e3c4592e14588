"""Lay one side of a partition down as a log: offsets, batches, transactions, damage."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from spark_audit.scan.committed import AbortedTransaction
from tests.drill.audit.items import Hole, Item, Piece, Whole
from tests.spark_audit.logs import Log
from wire.compression import Compression
from wire.record_batch import Record, build_batch

MIRRORS: Final = (4_001, 4_002)
"""The producer ids of the mirrors out of the two sites."""
_TRANSACTIONAL: Final = 7_000
_ABORTING: Final = 8_000
_COMMIT, _ABORT = b"\x00\x00\x00\x01", b"\x00\x00\x00\x00"
MARKED_MS: Final = 1_700_000_000_000
MOST_TOGETHER: Final = 60


@dataclass(slots=True, kw_only=True)
class Laid:
    """A side as a log, sound; `damaged` are the places of batches of which a bit is to flip."""

    log: Log = field(default_factory=Log)
    offsets: dict[int, int] = field(default_factory=dict)
    """Of each record and other piece, by its id."""
    damaged: list[int] = field(default_factory=list)
    """Indexes of batches."""


@dataclass(slots=True, kw_only=True)
class Laying:
    """Lays pieces of one side, the one with this number."""

    side: int
    luck: Random
    compression: Compression = Compression.NONE
    is_compacted: bool = False
    is_transactional: bool = False
    """What the site's own applications write is."""
    laid: Laid = field(default_factory=Laid)
    _open: list[tuple[int, Item]] = field(default_factory=list)
    _room: int = 1
    _stop: int = 0
    _sequences: dict[int, int] = field(default_factory=dict)
    _aborted: int = 0

    def lay(self, pieces: Iterable[Piece]) -> Laid:
        """Return the log with all of them."""
        self.laid.log.is_compacted = self.is_compacted
        for piece in pieces:
            match piece:
                case Item():
                    self._add(piece)
                case Hole():
                    self._leave(piece)
                case Whole():
                    self._close()
                    self._whole(piece)
        self._close()
        return self.laid

    def _add(self, item: Item) -> None:
        is_full = len(self._open) >= self._room
        if self._open and (is_full or self._open[0][1].origin != item.origin):
            self._close()
        if not self._open:
            self._room = self.luck.choice((1, 5, MOST_TOGETHER))
        self._note(item)
        self._open.append((self._stop, item))
        self._stop += 1

    def _note(self, piece: Piece) -> None:
        self.laid.offsets[id(piece)] = self._stop

    def _leave(self, hole: Hole) -> None:
        """Leave offsets out: within the batch that had the record, as a cleaner does, or not."""
        is_within = bool(self._open) and self._open[0][1].origin == hole.origin
        if not (is_within and self.luck.random() < 0.5):
            self._close()
        self._note(hole)
        self._stop += hole.offsets

    def _close(self) -> None:
        if self._open:
            pending, self._open = self._open, []
            self._append(pending, last=pending[-1][0])

    def _whole(self, batch: Whole) -> None:
        self._note(batch)
        start = self._stop
        pending: list[tuple[int, Item]] = []
        for item in batch.items:
            self._note(item)
            pending.append((self._stop, item))
            self._stop += 1
        if batch.is_damaged:
            self.laid.damaged.append(len(self.laid.log.batches))
        if batch.is_aborted:
            self._aborted += 1
            producer_id = _ABORTING + self._aborted
            self._append_by(producer_id, pending, last=pending[-1][0], is_transactional=True)
            self._mark(producer_id, _ABORT)
            self.laid.log.aborted.append(AbortedTransaction(producer_id, start))
        else:
            self._append(pending, last=pending[-1][0])

    def _append(self, pending: Sequence[tuple[int, Item]], *, last: int) -> None:
        origin = pending[0][1].origin
        if origin != self.side:
            self._append_by(MIRRORS[origin], pending, last=last)
        elif self.is_transactional:
            self._append_by(_TRANSACTIONAL, pending, last=last, is_transactional=True)
            self._mark(_TRANSACTIONAL, _COMMIT)
        else:
            self._append_by(-1, pending, last=last)

    def _append_by(
        self,
        producer_id: int,
        pending: Sequence[tuple[int, Item]],
        *,
        last: int,
        is_transactional: bool = False,
    ) -> None:
        base = pending[0][0]
        records = [
            Record(offset, item.timestamp_ms, item.key, item.value, item.headers)
            for offset, item in pending
        ]
        sequence = self._sequences.get(producer_id, 0) if producer_id >= 0 else -1
        if producer_id >= 0:
            self._sequences[producer_id] = sequence + last - base + 1
        batch = build_batch(
            records,
            base_offset=base,
            compression=self.compression,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            is_transactional=is_transactional,
            partition_leader_epoch=0,
        )
        self._keep(batch, base, last + 1)

    def _mark(self, producer_id: int, kind: bytes) -> None:
        marker = build_batch(
            [Record(self._stop, MARKED_MS, kind, b"\x00\x00\x00\x00\x00\x00")],
            base_offset=self._stop,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=-1,
            is_transactional=True,
            is_control=True,
            partition_leader_epoch=0,
        )
        self._stop += 1
        self._keep(marker, self._stop - 1, self._stop)

    def _keep(self, batch: bytes, base: int, behind: int) -> None:
        self.laid.log.skip(base - self.laid.log.stop)
        self.laid.log.append_bytes(batch, behind - base)


def damaged(batch: bytes) -> bytes:
    """Return a batch of which the last bit has flipped."""
    return batch[:-1] + bytes([batch[-1] ^ 1])


def cut(laid: Laid, before: int, luck: Random) -> int:
    """Take some of the first batches, which retention took; all end at or before an offset.

    Return where the log begins.
    """
    ends = [end for end, _ in laid.log.batches if end <= before]
    if not ends or laid.damaged:
        return 0
    start = luck.choice(ends)
    laid.log.batches = [one for one in laid.log.batches if one[0] > start]
    laid.log.start = start
    return start


def batches_at(laid: Laid) -> Iterator[tuple[int, bytes, bool]]:
    """Yield each batch with where it lies in a file, and whether it is to be damaged."""
    position = 0
    for number, (_, batch) in enumerate(laid.log.batches):
        yield position, batch, number in laid.damaged
        position += len(batch)
