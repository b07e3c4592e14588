"""Routing of whatever a log may hold: no bytes and no times raise, nor give what cannot be sent."""

import struct
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from mirror.forward.routing import Routed
from mirror.state.batches import Cursor
from offset_translation.map_records import MirrorProducer, piece_start
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.mirror.forward.walkers import route_by_all
from wire.compression import Compression
from wire.record_batch import Record, build_batch, iterate_records, parse_header
from wire.record_batch.checksum import crc32c
from wire.record_batch.committed import Aborted
from wire.record_batch.header import SEQUENCES, BatchHeader, pack_header
from wire.record_batch.varints import varint

PRODUCER = MirrorProducer(producer_id=77, producer_epoch=3)
LONG = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), -1, 0, 1, 2**62, 2**63 - 10, 2**63 - 1]),
)
INT = st.one_of(st.integers(-(2**31), 2**31 - 1), st.sampled_from([-1, 0, 1, 3, 2**31 - 1]))
LATEST = 2**63 - 1


def routed(chunk: bytes, cursor: Cursor, aborted: Sequence[Aborted] = ()) -> Routed:
    return route_by_all(chunk, cursor, aborted=aborted, producer=PRODUCER, loop_ids=frozenset({5}))


def raw_batch(fields: Sequence[int], deltas: Sequence[tuple[int, int]], codec: int) -> bytes:
    """Return a batch with a right checksum and length, whatever else its header and heads say."""
    base, attributes, last, base_time, max_time, count = fields
    bodies = [b"\0" + varint(time) + varint(offset) + b"\x02k\x02v\0" for time, offset in deltas]
    payload = b"".join(varint(len(body)) + body for body in bodies)
    header = BatchHeader(
        base, 0, 0, 2, 0, attributes & ~7 | codec, last, base_time, max_time, 9, 0, 0, count
    )
    return pack_header(header, payload) + payload


HEADERS = st.tuples(LONG, st.integers(0, 127), INT, LONG, LONG, INT)


def test_times_beyond_the_last_one_wrap_as_they_do_in_java() -> None:
    base = 2**63 - 10
    batch = raw_batch((0, 0, 3, base, LATEST, 2), [(0, 0), (100, 3)], 0)
    found = routed(batch, Cursor(0, Place(0), 0))
    assert (found.unforeseen, found.corrupt) == (None, None)
    [forward] = found.forwards
    data = b"".join(map(bytes, forward.parts))
    assert [one.timestamp_ms for one in iterate_records(data)] == [base, base + 100 - 2**64]
    assert [one.timestamp_ms for one in iterate_records(batch)] == [base, base + 100 - 2**64]
    header = parse_header(data)
    assert (header.base_timestamp, header.max_timestamp) == (base, base)


@given(LONG, LONG)
def test_two_records_of_any_times_come_back_with_them(first: int, second: int) -> None:
    records = [Record(0, first, b"k", b"v"), Record(1, second, b"k", b"v")]
    assert list(iterate_records(build_batch(records))) == records


@given(
    st.lists(
        st.tuples(HEADERS, st.lists(st.tuples(LONG, INT), max_size=4), st.sampled_from([0, 0, 5])),
        max_size=4,
    ),
    st.one_of(st.integers(0, 10), st.integers(0, 2**63 - 1)),
    st.booleans(),
)
@example([((0, 0, 3, 2**63 - 10, LATEST, 2), [(0, 0), (100, 3)], 0)], 0, False)
@example([((LATEST, 0, 0, 0, 0, 1), [(0, 0)], 0)], LATEST, False)
@example([((0, 0, 9, 0, 0, 2), [(0, 3), (0, 3)], 0)], 0, False)
def test_no_batch_makes_routing_raise(
    batches: list[tuple[tuple[int, ...], list[tuple[int, int]], int]],
    source: int,
    is_aborted: bool,
) -> None:
    aborted = [Aborted(producer_id=9, first_offset=source)] if is_aborted else []
    chunk = b"".join(raw_batch(*batch) for batch in batches)
    check(routed(chunk, Cursor(source, Place(4), source - 4), aborted), source)


@given(st.binary(max_size=300), st.sampled_from([0, 1, 2]), st.data())
def test_no_bytes_make_routing_raise(noise: bytes, magic: int, data: st.DataObject) -> None:
    whole = bytearray(build_batch([Record(at, at, b"k", b"v" * 9) for at in range(3)]))
    for byte in noise[:4]:
        whole[data.draw(st.integers(0, len(whole) - 1))] = byte
    if data.draw(st.booleans()):
        struct.pack_into(">I", whole, 17, crc32c(memoryview(whole)[21:]))
    frame = struct.pack(">qi", 7, len(noise)) + noise
    damaged = bytearray(frame)
    if len(damaged) > 16:
        damaged[16] = magic
    for chunk in (bytes(whole), bytes(damaged), noise):
        check(routed(chunk, Cursor(0, Place(0), 0)), 0)


@given(
    st.sampled_from(Compression),
    st.lists(st.tuples(LONG, st.integers(1, 5)), min_size=1, max_size=6),
)
def test_a_compacted_batch_keeps_its_times(codec: Compression, told: list[tuple[int, int]]) -> None:
    records, offset = [], 0
    for time, step in told:
        records.append(Record(offset, time, b"k", b"v"))
        offset += step
    batch = build_batch(records, compression=codec, last_offset_delta=offset)
    found = routed(batch, Cursor(0, Place(0), 0))
    check(found, 0)
    [forward] = found.forwards
    data = b"".join(map(bytes, forward.parts))
    assert [one.timestamp_ms for one in iterate_records(data)] == [
        one.timestamp_ms for one in records
    ]


def check(found: Routed, source: int) -> None:
    """Hold that nothing unforeseen happened and that a request and the map can hold the result."""
    assert found.unforeseen is None
    assert source <= found.cursor.source < 2**63
    for forward in found.forwards:
        assert forward.source_end < 2**63
        assert parse_header(b"".join(map(bytes, forward.parts))).base_sequence < SEQUENCES
    known = OffsetMap.from_starts([(source, 4)], 4)
    for start, place in found.starts:
        piece_start("t", 0, source_start=start, place=place)
        if place > 4:
            known.announce(start, place)
