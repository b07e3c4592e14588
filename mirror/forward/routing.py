"""Decide what becomes of each batch of one fetched chunk. Pure, and the hot path of the mirror.

A batch is forwarded as bytes under a new header, taken apart and built again (the slow way, only
where a broker would refuse the bytes), or left out: markers, aborted batches, and those that a
mirror wrote, which are known by their producer id. A batch that is left out makes a hole: the
offset map gets the start of a new piece, to be durable before the data behind it is produced.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Final

from mirror.forward.loops import is_brought
from mirror.state.batches import Cursor, Forward, PieceStart
from offset_translation.map_records import MirrorProducer
from offset_translation.runs import Place
from wire.compression import Compression
from wire.kernel.chosen import IN_PYTHON, PassOn, Walker
from wire.record_batch import (
    BatchHeader,
    Buffer,
    CorruptBatch,
    RecordHead,
    build_batch_from_heads,
    crc_is_valid,
    iterate_record_heads,
    parse_header,
    records_payload,
    rewrite,
)
from wire.record_batch.committed import Aborted, CommittedFilter
from wire.record_batch.header import (
    CONTROL,
    LOG_APPEND_TIME,
    SEQUENCES,
    TRANSACTIONAL,
    batch_size,
)
from wire.record_batch.joining import JOINED_BYTES
from wire.record_batch.old_messages import MAGIC_AT, OLD_MAGICS, read_old_messages
from wire.record_batch.passing import PassingTerms
from wire.schema import Piece

JOINED_IN_COMPANY: Final = 4
"""The records of larger batches do not get longer in Python: that costs a fifth of a request each,
which the batches of other partitions share. Where single bytes change, MAX_RECORDS_EACH is the
limit."""
JOINED_ALONE: Final = 32
"""The same where requests hold batches of a single partition, and in native code."""

RECORDS_AT_ONCE: Final = 2_000
"""Of batches that are taken apart so many of a chunk, some 10 ms, are worked on in the loop."""
UNPACKED_AT_ONCE_BYTES: Final = 256 * 1024
"""So large a batch may become that is unpacked in the loop; nothing in it tells how large it is."""
SLICE_RECORDS: Final = 10_000
"""A larger batch that is taken apart is built anew as several: a million records as objects take
hundreds of megabytes, and joining their bytes holds the interpreter up."""

LAST_SOURCE: Final = 1 << 62
"""A chunk that begins before it ends before the last offset that an int64 holds."""


def join_limit(partitions: int, *, is_native: bool) -> int:
    """Return up to how many records batches are joined whose requests hold so many partitions."""
    if is_native:
        return JOINED_ALONE
    return max(JOINED_IN_COMPANY, JOINED_ALONE // max(1, partitions))


@dataclass(slots=True, kw_only=True)
class Routed:
    """The batches and announcements of one chunk."""

    forwards: list[Forward] = field(default_factory=list)
    starts: list[PieceStart] = field(default_factory=list)
    cursor: Cursor
    left_out: int = 0
    """Batches dropped: markers, aborted, mirrored here from the target."""
    looped: int = 0
    """Those of them that a mirror has brought from the target."""
    rebuilt: int = 0
    """Batches that went the slow way."""
    corrupt: str | None = None
    """Why the chunk could not be read further; what lies before it is complete."""
    unforeseen: Exception | None = None
    """An error of our own, by which the chunk could not be read further either."""
    behind_fault: int | None = None
    """The source offset behind the batch of that error, if its header may be believed."""
    is_heavy: bool = False
    """Whether it would take long, and nothing was decided: to be routed beside the loop."""


class _TooHeavy(Exception):
    """A batch that is to be taken apart would take long."""


def route(  # noqa: PLR0913 - what is known of a flow, each with its default
    chunk: Buffer | None,
    cursor: Cursor,
    *,
    aborted: Sequence[Aborted],
    producer: MirrorProducer,
    loop_ids: frozenset[int],
    join_records: int = JOINED_IN_COMPANY,
    arrived_ms: int = 0,
    apart_until: int = 0,
    leaves_heavy: bool = False,
    walker: Walker = IN_PYTHON,
) -> Routed:
    """Return what to produce and to announce for a chunk fetched at ``cursor.source``.

    A chunk may begin before the cursor (a fetch returns whole batches) and end inside a batch.

    Batches of at most ``join_records`` that came together go on as one, larger ones where only
    single bytes change (`join_batches`); 0 for none. Where one ends and the next begins may then
    differ from try to try, and that is safe: a record's sequence is its place whatever batch it
    is in. Of a batch sent again in other company the broker either remembers the same
    first and last sequence, which only the same records have, or calls it out of order, and then
    the position is read off the target's end.

    Records before the source offset ``apart_until`` go on each as a batch of its own. With
    ``leaves_heavy`` a chunk that would take long comes back undecided, as ``is_heavy``.

    A chunk that may be written to is used up: a native ``walker`` joins batches where they lie.
    """
    routing = _Routing(cursor, producer, loop_ids, join_records, arrived_ms, walker.pass_on)
    if leaves_heavy:
        routing.records_left = RECORDS_AT_ONCE
    if cursor.source > LAST_SOURCE:
        routing.corrupt = f"no log comes to offset {cursor.source}"
    if not chunk or routing.corrupt is not None:
        return routing.finish()
    view = memoryview(chunk)
    if leaves_heavy and (
        apart_until > cursor.source or not walker.needs_no_rebuilding(view, cursor.source)
    ):
        view = view.toreadonly()  # it may come back undecided, to be routed again
    try:
        _decide(routing, view, aborted, apart_until)
    except _TooHeavy:
        return Routed(cursor=cursor, is_heavy=True)
    return routing.finish()


def _decide(
    routing: "_Routing", view: memoryview, aborted: Sequence[Aborted], apart_until: int
) -> None:
    """Decide about one batch after the other; raises _TooHeavy."""
    committed = CommittedFilter(aborted)
    unusual = CONTROL | LOG_APPEND_TIME | (TRANSACTIONAL if aborted else 0)
    position = 0
    try:
        while True:
            if routing.source >= apart_until:
                position = routing.forward_run(view, position, unusual)
            if position >= len(view):
                break
            size = batch_size(view, position)
            if size is None:
                break
            if view[position + MAGIC_AT] in OLD_MAGICS:
                position = routing.take_old(view, position)
            else:
                routing.take(view, position, size, committed, apart_until)
                position += size
    except _TooHeavy:
        raise
    except CorruptBatch as fault:
        routing.corrupt = f"behind offset {routing.source}: {fault}"
    except Exception as fault:  # noqa: BLE001 - an error of ours stops this partition, by name
        routing.unforeseen = fault
        routing.behind_fault = _end_of(view, position)


def _end_of(view: memoryview, position: int) -> int | None:
    """Return the offset behind the batch at this place, None if its checksum does not hold."""
    try:
        size = batch_size(view, position)
        header = parse_header(view, position)
    except CorruptBatch:
        return None
    is_whole = size is not None and crc_is_valid(view[position : position + size])
    return header.next_offset if is_whole else None


def _ascend(heads: Sequence[RecordHead], next_offset: int) -> bool:
    """Whether each record lies behind the one before it, and the last before that offset."""
    in_order = all(first.offset < second.offset for first, second in pairwise(heads))
    return in_order and heads[-1].offset < next_offset


class _Routing:
    """What has been decided so far of one chunk; the cursor's fields are plain ones here."""

    __slots__ = (
        "_arrived_ms",
        "_forwards",
        "_join_records",
        "_loop_ids",
        "_pass_on",
        "_place",
        "_producer",
        "_rebuilt",
        "_shift",
        "_starts",
        "behind_fault",
        "corrupt",
        "left_out",
        "looped",
        "records_left",
        "source",
        "unforeseen",
    )

    def __init__(
        self,
        cursor: Cursor,
        producer: MirrorProducer,
        loop_ids: frozenset[int],
        join_records: int,
        arrived_ms: int,
        pass_on: PassOn,
    ) -> None:
        self.source, self._place, self._shift = cursor
        self._arrived_ms = arrived_ms
        self._pass_on = pass_on
        self._producer = producer
        self._loop_ids = loop_ids
        self._join_records = join_records
        self._forwards: list[Forward] = []
        self._starts: list[PieceStart] = []
        self._rebuilt = 0
        self.left_out = self.looped = 0
        self.records_left: int | None = None
        """How many records may still be taken apart here; None without a limit."""
        self.corrupt: str | None = None
        self.unforeseen: Exception | None = None
        self.behind_fault: int | None = None

    def finish(self) -> Routed:
        """Announce a hole at the end too, so that the source's end counts as mirrored."""
        self._announce(self.source, self._place)
        return Routed(
            forwards=self._forwards,
            starts=self._starts,
            cursor=Cursor(self.source, self._place, self._shift),
            left_out=self.left_out,
            looped=self.looped,
            rebuilt=self._rebuilt,
            corrupt=self.corrupt,
            unforeseen=self.unforeseen,
            behind_fault=self.behind_fault,
        )

    def forward_run(self, view: memoryview, position: int, unusual: int) -> int:
        """Pass on batch after batch as bytes; return where the first begins that is unusual.

        Unusual: not forwarded by rewriting its header, damaged, cut off, or behind a hole; `take`
        looks at it.
        """
        terms = PassingTerms(
            self._shift,
            unusual,
            self._loop_ids,
            self._join_records,
            self._producer.producer_id,
            self._producer.producer_epoch,
            self._arrived_ms,
        )
        position, self.source, place, forwards = self._pass_on(
            view, position, self.source, self._place, terms, Forward
        )
        self._place = Place(place)
        self._forwards += forwards
        return position

    def take(
        self,
        view: memoryview,
        position: int,
        size: int,
        committed: CommittedFilter,
        apart_until: int,
    ) -> None:
        """Decide about one whole batch of any kind; CorruptBatch if it is damaged."""
        header = parse_header(view, position)
        is_left_out = committed.is_left_out(header)
        if header.base_offset + header.last_offset_delta < self.source:
            return
        is_loop = is_brought(header, self._loop_ids)
        if is_left_out or is_loop:
            self.left_out += 1
            self.looped += is_loop
            self.source = header.next_offset
        else:
            batch = view[position : position + size]
            if header.base_offset < apart_until and crc_is_valid(batch):
                self._take_apart(header, batch)
            else:
                self._forward(header, batch)

    def _forward(self, header: BatchHeader, batch: memoryview) -> None:
        """Pass a batch on, as bytes if that can be."""
        if not crc_is_valid(batch):
            raise CorruptBatch(0, f"checksum of the batch at offset {header.base_offset}")
        if (
            header.record_count != header.last_offset_delta + 1
            or header.attributes & LOG_APPEND_TIME
            or header.base_offset < self.source
        ):
            self._rebuild(header, batch)
            return
        if header.base_offset - self._place != self._shift:
            self._announce(header.base_offset, self._place)
        # Base offset 0: with any other a broker takes the inner offsets of a compressed batch for
        # wrong and compresses it again (LogValidator), although it assigns the same ones.
        parts = rewrite(
            batch,
            base_offset=0,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            base_sequence=self._place % SEQUENCES,
        )
        self.source = header.next_offset
        self._append(parts, header.record_count, header.max_timestamp, len(batch))

    def _require_light(self, header: BatchHeader, batch: memoryview) -> None:
        """Raise _TooHeavy for a batch that would take long to take apart."""
        if self.records_left is None:
            return
        self.records_left -= max(1, header.record_count)
        if self.records_left < 0:
            raise _TooHeavy
        if header.compression is not Compression.NONE:
            try:
                records_payload(batch, header, limit_bytes=UNPACKED_AT_ONCE_BYTES)
            except CorruptBatch:  # or damaged: beside the loop it is seen which
                raise _TooHeavy from None

    def _take_apart(self, header: BatchHeader, batch: memoryview) -> None:
        """Pass each record on as a batch of its own: the target has refused them together."""
        self._require_light(header, batch)
        for head in iterate_record_heads(batch):
            self._build([head], header.compression, head.offset + 1)
        self.source = max(self.source, header.next_offset)

    def _rebuild(self, header: BatchHeader, batch: memoryview) -> None:
        """Take a batch apart and number its records anew, without holes.

        For holes inside it (compaction), for one that begins before the cursor, and for the
        source's append times, which brokers refuse from a producer and which become the records'
        own.
        """
        self._require_light(header, batch)
        found, last = iterate_record_heads(batch), None
        while heads := list(islice(found, SLICE_RECORDS)):
            is_behind = last is None or last < heads[0].offset
            last = heads[-1].offset
            if not is_behind or last >= header.next_offset:
                raise CorruptBatch(0, f"its records are not in order before offset {last}")
            self._build(heads, header.compression, last + 1)
        self.source = max(self.source, header.next_offset)

    def take_old(self, view: memoryview, position: int) -> int:
        """Put messages of before Kafka 0.11 into a batch of today; return where they end."""
        if self.records_left is not None:
            raise _TooHeavy  # their number is not known before they are read
        limit_bytes = JOINED_BYTES if self._join_records else 0
        old = read_old_messages(view, position, limit_bytes)
        joined = len(old.heads) if old.compression is Compression.NONE else 1
        self._build(old.heads, old.compression, old.next_offset, joined)
        return old.stop

    def _build(
        self,
        found: Iterable[RecordHead],
        compression: Compression,
        next_offset: int,
        joined: int = 1,
    ) -> None:
        heads = [head for head in found if head.offset >= self.source]
        if not heads:
            self.source = max(self.source, next_offset)
            return
        if not _ascend(heads, next_offset):
            raise CorruptBatch(0, f"its records are not in order before offset {next_offset}")
        rebuilt = build_batch_from_heads(
            heads,
            compression=compression,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            base_sequence=self._place % SEQUENCES,
        )
        for number, head in enumerate(heads):
            self._announce(head.offset, Place(self._place + number))
        self.source = max(self.source, next_offset)
        self._rebuilt += 1
        newest = max(head.timestamp_ms for head in heads)
        self._append((rebuilt,), len(heads), newest, len(rebuilt), joined)

    def _append(
        self, parts: tuple[Piece, ...], count: int, newest: int, size: int, joined: int = 1
    ) -> None:
        fields = (self._place, count, self.source, newest, size, parts, joined)
        self._forwards.append(Forward(*fields, self._arrived_ms))
        self._place = Place(self._place + count)

    def _announce(self, source: int, place: Place) -> None:
        """Begin a piece here if a hole lies before; one with the same place replaces another."""
        if source - place == self._shift:
            return
        if self._starts and self._starts[-1][1] == place:
            self._starts.pop()
        self._starts.append((source, place))
        self._shift = source - place
