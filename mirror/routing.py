"""Decide what becomes of each batch of one fetched chunk. Pure, and the hot path of the mirror.

A batch is forwarded as bytes under a new header, taken apart and built again (the slow way, only
where a broker would refuse the bytes), or left out: markers, aborted batches, and those that a
mirror wrote, which are known by their producer id. What is left out makes a hole: the offset map
gets the start of a new piece, to be durable before the data behind it is produced.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from offset_translation.map_records import MirrorProducer
from wire.record_batch import (
    BatchHeader,
    Buffer,
    CorruptBatch,
    build_batch_from_heads,
    crc_is_valid,
    iterate_batches,
    iterate_record_heads,
    parse_header,
    rewrite,
)

SEQUENCES: Final = 2**31
"""Sequences are int32 and begin again at 0; a batch's is its target offset in this ring."""

PieceStart: TypeAlias = tuple[int, int]
"""(source offset, target offset)"""


class Cursor(NamedTuple):
    """Where a partition stands: the next source offset to read and the target offset it gets.

    ``shift`` is source minus target on the piece announced last.
    """

    source: int
    target: int
    shift: int


class Forward(NamedTuple):
    """One batch for the target, as the parts that travel."""

    target_base: int
    record_count: int
    source_end: int
    """Everything before it is on the target once this batch is there."""
    max_timestamp: int
    size: int
    parts: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """A transaction to leave out: of this producer, from this offset to its marker."""

    producer_id: int
    first_offset: int


@dataclass(slots=True, kw_only=True)
class Routed:
    """What one chunk gives."""

    forwards: list[Forward] = field(default_factory=list)
    starts: list[PieceStart] = field(default_factory=list)
    cursor: Cursor
    left_out: int = 0
    """Batches dropped: markers, aborted, mirrored here from the target."""
    rebuilt: int = 0
    """Batches that went the slow way."""
    corrupt: str | None = None
    """Why the chunk could not be read further; what lies before it is complete."""


def route(
    chunk: Buffer | None,
    cursor: Cursor,
    *,
    aborted: Sequence[Aborted],
    producer: MirrorProducer,
    loop_ids: frozenset[int],
) -> Routed:
    """Return what to produce and to announce for a chunk fetched at ``cursor.source``.

    A chunk may begin before the cursor (a fetch returns whole batches) and end inside a batch.
    """
    routed = Routed(cursor=cursor)
    if not chunk:
        return routed
    filtered = CommittedFilter(aborted, loop_ids)
    try:
        for header, batch in iterate_batches(chunk):
            if header.next_offset <= routed.cursor.source:
                filtered.is_left_out(header)
            elif filtered.is_left_out(header):
                routed.left_out += 1
                routed.cursor = routed.cursor._replace(source=header.next_offset)
            else:
                _check(header, batch)
                _forward(routed, header, batch, producer)
    except CorruptBatch as fault:
        routed.corrupt = f"behind offset {routed.cursor.source}: {fault}"
    _announce(routed, routed.cursor.source, routed.cursor.target)
    return routed


class CommittedFilter:
    """Reads committed: knows the transactions that are aborted where the chunk has arrived."""

    __slots__ = ("_ahead", "_loop_ids", "_now")

    def __init__(self, aborted: Sequence[Aborted], loop_ids: frozenset[int] = frozenset()) -> None:
        """Take what the Fetch answer says of one partition."""
        self._ahead = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._now: set[int] = set()
        self._loop_ids = loop_ids

    def is_left_out(self, header: BatchHeader) -> bool:
        """Whether this batch is no record of the source's own; to be asked for every batch."""
        while self._ahead and self._ahead[-1].first_offset <= header.last_offset:
            self._now.add(self._ahead.pop().producer_id)
        if header.is_control:
            self._now.discard(header.producer_id)
            return True
        if header.record_count == 0 or header.producer_id in self._loop_ids:
            return True
        return header.is_transactional and header.producer_id in self._now


def _check(header: BatchHeader, batch: memoryview) -> None:
    if not crc_is_valid(batch):
        raise CorruptBatch(0, f"checksum of the batch at offset {header.base_offset}")


def _forward(
    routed: Routed, header: BatchHeader, batch: memoryview, producer: MirrorProducer
) -> None:
    cursor = routed.cursor
    if header.has_offset_holes or header.is_log_append_time or header.base_offset < cursor.source:
        _rebuild(routed, header, batch, producer)
        return
    _announce(routed, header.base_offset, cursor.target)
    # Base offset 0: with any other a broker takes the inner offsets of a compressed batch for
    # wrong and compresses it again (LogValidator), although it assigns the same ones.
    head, records = rewrite(
        batch,
        base_offset=0,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=cursor.target % SEQUENCES,
    )
    _append(routed, header, (head, records), header.record_count)


def _rebuild(
    routed: Routed, header: BatchHeader, batch: memoryview, producer: MirrorProducer
) -> None:
    """Take a batch apart and number its records anew, without holes.

    For holes inside it (compaction), for one that begins before the cursor, and for the source's
    append times, which brokers refuse from a producer and which become the records' own.
    """
    cursor = routed.cursor
    heads = [head for head in iterate_record_heads(batch) if head.offset >= cursor.source]
    if heads:
        for place, head in enumerate(heads):
            _announce(routed, head.offset, cursor.target + place)
        rebuilt = build_batch_from_heads(
            heads,
            compression=header.compression,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=cursor.target % SEQUENCES,
        )
        routed.rebuilt += 1
        _append(routed, header, (rebuilt,), len(heads))
    routed.cursor = routed.cursor._replace(source=header.next_offset)


def _append(
    routed: Routed, header: BatchHeader, parts: tuple[Buffer, ...], record_count: int
) -> None:
    cursor = routed.cursor
    routed.forwards.append(
        Forward(
            target_base=cursor.target,
            record_count=record_count,
            source_end=header.next_offset,
            max_timestamp=header.max_timestamp,
            size=sum(map(len, parts)),
            parts=parts,
        )
    )
    routed.cursor = cursor._replace(source=header.next_offset, target=cursor.target + record_count)


def _announce(routed: Routed, source: int, target: int) -> None:
    """Begin a piece here if a hole lies before; one in the place of another replaces it."""
    if source - target == routed.cursor.shift:
        return
    if routed.starts and routed.starts[-1][1] == target:
        routed.starts.pop()
    routed.starts.append((source, target))
    routed.cursor = routed.cursor._replace(shift=source - target)


def batch_of(forward: Forward) -> BatchHeader:
    """Return the header that travels, for tests and logs."""
    return parse_header(forward.parts[0])
