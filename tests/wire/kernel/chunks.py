"""Chunks as brokers send them, and what becomes of them on a bad day; all luck is the caller's."""

import random
from struct import Struct
from typing import Final, NamedTuple

from tests.fuzz.batches import FIELDS, sealed
from wire.compression import Compression
from wire.kernel.chosen import PassOn
from wire.record_batch import Record, build_batch
from wire.record_batch.header import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL
from wire.record_batch.passing import PassingTerms

NOW_MS: Final = 1_700_000_000_000
REFUSED: Final = 5
EDGES: Final = (-1, 0, 1, 2, 31, 32, 33, 49, 63, 64, 65, 0x7F, 0x80, 4095, 4096)
LENGTH_AT: Final = 8


class Row(NamedTuple):
    """What a walker makes of a batch."""

    place: int
    record_count: int
    source_end: int
    newest: int
    size: int
    parts: tuple[bytes | memoryview, ...]
    joined: int
    arrived_ms: int


class Result(NamedTuple):
    """What a walker answers, with the bytes of each batch."""

    ends: tuple[int, int, int]
    """Position, source offset and place."""
    rows: list[Row]


class Walked(NamedTuple):
    """A call of a walker."""

    chunk: bytes
    position: int
    source: int
    place: int
    terms: PassingTerms


def any_walk(luck: random.Random) -> Walked:
    """Return a chunk and what a walker is told with it."""
    source = luck.choice((0, 7, 2**31 - 3, 2**40, 2**62))
    shift = luck.choice((0, 0, 3, -2))
    unusual = CONTROL | LOG_APPEND_TIME | luck.choice((0, TRANSACTIONAL))
    terms = PassingTerms(
        shift=shift,
        unusual=unusual,
        refused=frozenset(luck.choice(((), (REFUSED,), (REFUSED, 2**63 - 1), (-1, REFUSED)))),
        join_records=luck.choice((0, 1, 4, 4, 32, 32, 99)),
        producer_id=luck.choice((0, 77, 2**63 - 1)),
        producer_epoch=luck.choice((0, 3, 2**15 - 1)),
        arrived_ms=NOW_MS,
    )
    before = luck.randbytes(luck.choice((0, 0, 1, 61)))
    chunk = before + any_chunk(luck, source)
    place = source - shift + (luck.random() < 0.02)
    return Walked(chunk, len(before), source, place, terms)


def any_chunk(luck: random.Random, source: int) -> bytes:
    """Return batches that begin at an offset; some damaged, lying, or of another kind."""
    time_ms = luck.choice((NOW_MS, NOW_MS, 0, 2**63 - 40))
    small = luck.random() < 0.7
    batches: list[bytes] = []
    for _ in range(luck.choice((1, 2, 3, 5, 8, 13))):
        count = luck.choice((1, 1, 1, 2, 3, 4, 5, 20, 32, 33)) if small else luck.randint(1, 70)
        batch = _batch(luck, source, count, time_ms)
        batches.append(batch if luck.random() < 0.93 else spoiled(luck, batch))
        source += count if luck.random() < 0.97 else luck.choice((0, count + 1))
        if luck.random() < 0.5:
            time_ms += luck.choice((1, 1, 10, 63, 64, 9_000, -1, 2**33))
    chunk = b"".join(batches)
    return chunk if luck.random() < 0.8 else chunk[: luck.randint(0, len(chunk))]


def _batch(luck: random.Random, source: int, count: int, time_ms: int) -> bytes:
    spread = luck.choice((0, 0, 1, 30, 100, 2**40))
    size = luck.choice((0, 3, 40, 55, 56, 57, 120, 200, 8_100, 9_000))
    size = size if count < 40 else min(size, 300)
    records = [
        Record(
            min(source + number, 2**63 - 2),
            min(time_ms + luck.randint(0, spread), 2**63 - 1),
            luck.choice((None, b"key")),
            luck.randbytes(luck.randint(size // 2, size)),
            luck.choice(((), (("h", b"v"),))),
        )
        for number in range(count)
    ]
    return build_batch(
        records,
        base_offset=source,
        compression=luck.choice((*[Compression.NONE] * 19, Compression.LZ4)),
        producer_id=luck.choice((-1, 9, 9, 9, 9, 9, 9, 9, 9, REFUSED)),
        producer_epoch=0,
        is_transactional=luck.random() < 0.03,
        is_control=luck.random() < 0.01,
    )


def spoiled(luck: random.Random, batch: bytes) -> bytes:
    """Return a batch whose header or records lie, mostly under a right checksum."""
    changed = bytearray(batch)
    for _ in range(luck.choice((1, 1, 2, 4))):
        if luck.random() < 0.4:
            at, kind = luck.choice(FIELDS)
            layout = Struct(">" + kind)
            most = 2 ** (layout.size * 8 - 1) - 1
            (old,) = layout.unpack_from(changed, at)
            value = luck.choice((*EDGES, old - 1, old + 1, most, -most - 1))
            layout.pack_into(changed, at, max(-most - 1, min(value, most)))
        else:
            first = luck.choice((61, 61, 0)) % len(changed)
            at = luck.randrange(first, min(len(changed), first + luck.choice((4, 12, 400))))
            changed[at] = luck.choice((0, 1, 2, 4, 6, 0x7F, 0x80, 0xFF, luck.randrange(256)))
    return sealed(changed) if luck.random() < 0.9 else bytes(changed)


def walked(pass_on: PassOn, call: Walked, chunk: bytes | bytearray | memoryview) -> Result:
    """Return what becomes of a call's chunk, or of a copy of it."""
    view = memoryview(chunk)
    *ends, rows = pass_on(view, call.position, call.source, call.place, call.terms, Row)
    at, source, place = ends
    return Result(
        (at, source, place), [row._replace(parts=tuple(map(bytes, row.parts))) for row in rows]
    )
