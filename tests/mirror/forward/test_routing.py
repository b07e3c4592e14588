"""What becomes of each batch of a chunk, against logs made batch by batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.forward.routing import (
    RECORDS_AT_ONCE,
    SLICE_RECORDS,
    UNPACKED_AT_ONCE_BYTES,
    Routed,
    join_limit,
    route,
)
from mirror.state.batches import Cursor
from offset_translation.map_records import MirrorProducer
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.mirror.forward.walkers import route_by_all
from wire.compression import Compression
from wire.kernel.chosen import native
from wire.record_batch import (
    Record,
    RecordHead,
    assign_offsets,
    build_batch,
    crc_is_valid,
    iterate_records,
    parse_header,
    rewrite,
    stamp_append_time,
)
from wire.record_batch.checksum import SHORT_BYTES
from wire.record_batch.committed import Aborted
from wire.record_batch.header import HEADER_BYTES, SEQUENCES
from wire.record_batch.varints import varint

PRODUCER = MirrorProducer(producer_id=77, producer_epoch=3)
LOOP_ID = 5000
ARRIVED_MS = 1_700_000_000_000
START = Cursor(0, Place(0), 0)
LENGTH_AT = 8
"""Where a batch says how many bytes follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch of a source log and what ought to arrive of it."""

    data: bytes
    records: tuple[Record, ...]


def plain(base: int, offsets: Sequence[int], **fields: object) -> Batch:
    records = tuple(
        Record(offset, 1_000 + offset, b"k%d" % offset, b"v" * 20, (("h", b"1"),))
        for offset in offsets
    )
    data = build_batch(records, base_offset=base, **fields)  # type: ignore[arg-type]
    return Batch(data=data, records=records)


def run(
    chunk: bytes,
    cursor: Cursor = START,
    aborted: Sequence[Aborted] = (),
    loop_ids: frozenset[int] = frozenset(),
) -> Routed:
    return route_by_all(
        chunk,
        cursor,
        aborted=aborted,
        producer=PRODUCER,
        loop_ids=loop_ids,
        arrived_ms=ARRIVED_MS,
    )


def arrived(routed: Routed, place: int = 0) -> list[Record]:
    """Read back what a target would hold, and check places and sequences on the way."""
    records: list[Record] = []
    for forward in routed.forwards:
        data = b"".join(bytes(part) for part in forward.parts)
        header = parse_header(data)
        assert crc_is_valid(data)
        assert header.batch_bytes == len(data) == forward.size
        assert (header.producer_id, header.producer_epoch) == (77, 3)
        assert header.base_sequence == forward.place % SEQUENCES
        assert header.base_offset == 0
        assert not header.is_transactional
        assert not header.has_offset_holes
        assert header.record_count == forward.record_count
        assert forward.place == place + len(records)
        assert forward.arrived_ms == ARRIVED_MS
        records += list(iterate_records(data))
    return records


@given(
    st.lists(st.tuples(st.integers(1, 20), st.sampled_from(Compression), st.booleans())),
    st.integers(0, 2**40),
    st.integers(0, 2**33),
)
def test_a_run_of_batches_is_rewritten_as_each_alone_would_be(
    batches: list[tuple[int, Compression, bool]], source: int, target: int
) -> None:
    expected, chunk, base = [], b"", source
    for count, codec, is_transactional in batches:
        data = plain(
            base,
            range(base, base + count),
            compression=codec,
            is_transactional=is_transactional,
            producer_id=9,
        ).data
        sequence = (target + base - source) % SEQUENCES
        head, records = rewrite(
            memoryview(data),
            base_offset=0,
            producer_id=77,
            producer_epoch=3,
            base_sequence=sequence,
        )
        expected.append(bytes(head) + bytes(records))
        chunk, base = chunk + data, base + count
    routed = route(
        chunk,
        Cursor(source, Place(target), source - target),
        aborted=(),
        producer=PRODUCER,
        loop_ids=frozenset(),
        join_records=0,
        arrived_ms=ARRIVED_MS,
    )
    assert [b"".join(forward.parts) for forward in routed.forwards] == expected
    assert routed.cursor == Cursor(base, Place(target + base - source), source - target)
    arrived(routed, target)


@pytest.mark.parametrize("shift", [0, -1], ids=["in a run", "behind a hole"])
def test_the_checksum_of_a_long_batch_is_made_from_the_one_it_had(shift: int) -> None:
    long = plain(0, range(1_000), is_transactional=True, producer_id=9)
    assert len(long.data) > SHORT_BYTES
    routed = run(long.data, Cursor(0, Place(0), shift))
    assert len(routed.starts) == abs(shift)
    assert arrived(routed) == list(long.records)


def test_small_batches_that_came_together_go_on_as_one() -> None:
    batches = [plain(base, [base]) for base in range(10)]
    routed = run(b"".join(batch.data for batch in batches))
    assert [(one.record_count, one.joined) for one in routed.forwards] == [(10, 10)]
    assert arrived(routed) == [record for batch in batches for record in batch.records]
    assert routed.cursor == Cursor(10, Place(10), 0)


def test_what_may_not_be_joined_goes_on_between_what_is() -> None:
    batches = [
        plain(0, [0]),
        plain(1, [1, 2]),
        plain(3, [3], compression=Compression.LZ4),
        plain(4, range(4, 38)),
        plain(38, [38]),
        plain(39, [39], producer_id=LOOP_ID),
        plain(40, [40], is_transactional=True, producer_id=4),
        plain(41, [41], is_transactional=True, producer_id=4),
        plain(42, [42]),
        plain(50, [50]),
    ]
    routed = run(b"".join(batch.data for batch in batches), loop_ids=frozenset({LOOP_ID}))
    assert [one.joined for one in routed.forwards] == [2, 1, 1, 1, 1, 2, 1]
    kept = [batch for batch in batches if batch.records[0].offset != 39]
    assert [r.value for r in arrived(routed)] == [r.value for b in kept for r in b.records]
    assert routed.starts == [(40, 39), (50, 42)]


def test_the_fewer_partitions_share_a_request_the_more_is_joined() -> None:
    batches = [plain(base, range(base, base + 16)) for base in range(0, 160, 16)]
    chunk = b"".join(batch.data for batch in batches)
    alone, in_company = (
        route(
            chunk,
            START,
            aborted=(),
            producer=PRODUCER,
            loop_ids=frozenset(),
            join_records=join_limit(partitions, is_native=False),
            arrived_ms=ARRIVED_MS,
        )
        for partitions in (1, 12)
    )
    assert [one.joined for one in alone.forwards] == [10]
    assert [one.joined for one in in_company.forwards] == [4, 4, 2]
    assert [one._replace(offset=0) for one in arrived(alone)] == [
        one._replace(offset=0) for one in arrived(in_company)
    ]
    assert alone.cursor == in_company.cursor == Cursor(160, Place(160), 0)


def test_in_native_code_as_much_is_joined_in_company_as_alone() -> None:
    limits = [join_limit(partitions, is_native=True) for partitions in (1, 12, 1_000)]
    assert limits == [join_limit(1, is_native=False)] * 3


def test_an_aborted_small_batch_is_not_joined_to_its_neighbours() -> None:
    batches = [
        plain(0, [0]),
        plain(1, [1], is_transactional=True, producer_id=4),
        plain(2, [2], is_transactional=True, producer_id=5),
        plain(3, [3]),
    ]
    aborted = [Aborted(producer_id=4, first_offset=1)]
    routed = run(b"".join(batch.data for batch in batches), aborted=aborted)
    assert [record.key for record in arrived(routed)] == [b"k0", b"k2", b"k3"]
    assert routed.left_out == 1


@pytest.mark.parametrize("compression", list(Compression))
def test_a_batch_passes_as_bytes(compression: Compression) -> None:
    batch = plain(0, range(5), compression=compression)
    routed = run(batch.data)
    assert routed.forwards[0].parts[1] == batch.data[61:]
    assert arrived(routed) == list(batch.records)
    assert routed.starts == []
    assert routed.cursor == Cursor(5, Place(5), 0)


def test_a_marker_leaves_a_hole_that_is_announced_before_the_data_behind() -> None:
    marker = plain(3, [3], is_control=True, is_transactional=True, producer_id=9)
    chunk = plain(0, range(3)).data + marker.data + plain(4, range(4, 6)).data
    routed = run(chunk)
    assert [record.offset for record in arrived(routed)] == [0, 1, 2, 0, 1]
    assert routed.starts == [(4, 3)]
    assert routed.cursor == Cursor(6, Place(5), 1)
    assert routed.left_out == 1


def test_a_marker_at_the_end_is_announced_too() -> None:
    marker = plain(3, [3], is_control=True, is_transactional=True, producer_id=9)
    routed = run(plain(0, range(3)).data + marker.data)
    assert routed.starts == [(4, 3)]
    assert routed.cursor == Cursor(4, Place(3), 1)


def test_an_aborted_transaction_is_left_out_and_its_producers_next_one_is_not() -> None:
    chunk = b"".join(
        batch.data
        for batch in (
            plain(0, range(2), is_transactional=True, producer_id=9),
            plain(2, range(2, 4), is_transactional=True, producer_id=8),
            plain(4, [4], is_control=True, is_transactional=True, producer_id=9),
            plain(5, range(5, 7), is_transactional=True, producer_id=9),
            plain(7, [7], is_control=True, is_transactional=True, producer_id=9),
            plain(8, [8], is_control=True, is_transactional=True, producer_id=8),
        )
    )
    routed = run(chunk, aborted=[Aborted(producer_id=9, first_offset=0)])
    assert [record.key for record in arrived(routed)] == [b"k2", b"k3", b"k5", b"k6"]
    assert routed.starts == [(2, 0), (5, 2), (9, 4)]
    assert routed.cursor == Cursor(9, Place(4), 5)


def test_what_a_mirror_wrote_is_not_sent_back() -> None:
    chunk = plain(0, range(2), producer_id=LOOP_ID).data + plain(2, range(2, 4)).data
    routed = run(chunk, loop_ids=frozenset({LOOP_ID}))
    assert (routed.looped, routed.left_out) == (1, 1)
    assert [record.key for record in arrived(routed)] == [b"k2", b"k3"]
    assert routed.starts == [(2, 0)]


def test_a_compacted_batch_is_built_again_without_holes() -> None:
    batch = plain(10, [10, 11, 15, 19], compression=Compression.LZ4)
    routed = run(batch.data, Cursor(10, Place(4), 6))
    assert [record.key for record in arrived(routed, 4)] == [b"k10", b"k11", b"k15", b"k19"]
    assert [r.timestamp_ms for r in arrived(routed, 4)] == [1010, 1011, 1015, 1019]
    assert routed.starts == [(15, 6), (19, 7)]
    assert routed.cursor == Cursor(20, Place(8), 12)
    assert routed.rebuilt == 1
    assert parse_header(routed.forwards[0].parts[0]).compression is Compression.LZ4


def test_a_batch_that_begins_before_the_position_gives_only_what_is_missing() -> None:
    routed = run(plain(10, range(10, 15)).data, Cursor(13, Place(3), 10))
    assert [record.key for record in arrived(routed, 3)] == [b"k13", b"k14"]
    assert routed.starts == []


def test_a_batch_wholly_before_the_position_is_passed_over() -> None:
    routed = run(plain(10, range(10, 15)).data, Cursor(15, Place(3), 12))
    assert routed.forwards == []
    assert routed.cursor == Cursor(15, Place(3), 12)


def test_append_times_become_the_records_own() -> None:
    data = bytearray(plain(0, range(2)).data)
    stamp_append_time(data, 99_999)
    records = arrived(run(bytes(data)))
    assert [record.timestamp_ms for record in records] == [99_999, 99_999]


def heavy(count: int, *, compression: Compression = Compression.NONE) -> bytes:
    """A batch of so many small records that has to be taken apart for its append time."""
    records = [Record(offset, 5, None, b"") for offset in range(count)]
    data = bytearray(build_batch(records, compression=compression))
    stamp_append_time(data, 99_999)
    return bytes(data)


def decide(chunk: bytes, *, leaves_heavy: bool) -> Routed:
    return route_by_all(
        chunk,
        START,
        aborted=(),
        producer=PRODUCER,
        loop_ids=frozenset(),
        arrived_ms=ARRIVED_MS,
        leaves_heavy=leaves_heavy,
    )


@pytest.mark.parametrize(
    "chunk",
    [
        heavy(RECORDS_AT_ONCE + 1),
        heavy(RECORDS_AT_ONCE + 1, compression=Compression.ZSTD),
        plain(0, range(2)).data + heavy(RECORDS_AT_ONCE + 1),
    ],
    ids=["many records", "many records, compressed", "behind a light one"],
)
def test_a_chunk_that_takes_long_is_left_undecided_in_the_loop(chunk: bytes) -> None:
    assert decide(chunk, leaves_heavy=True) == Routed(cursor=START, is_heavy=True)
    assert not decide(chunk, leaves_heavy=False).is_heavy


def test_a_chunk_that_comes_back_undecided_is_as_it_came() -> None:
    """The kernel joins batches where they lie; what was joined once could not be routed again."""
    light = b"".join(plain(at, [at]).data for at in range(5))
    behind = bytearray(heavy(RECORDS_AT_ONCE + 1))
    assign_offsets(behind, 5, 0)
    chunk = bytearray(light + behind)
    before = bytes(chunk)
    undecided = route(
        chunk,
        START,
        aborted=(),
        producer=PRODUCER,
        loop_ids=frozenset(),
        leaves_heavy=True,
        walker=native(),
    )
    assert (undecided.is_heavy, bytes(chunk) == before) == (True, True)


def test_a_small_batch_that_unpacks_to_much_is_heavy() -> None:
    value = b"x" * (UNPACKED_AT_ONCE_BYTES + 1)
    data = bytearray(build_batch([Record(0, 5, None, value)], compression=Compression.ZSTD))
    stamp_append_time(data, 99_999)
    assert len(data) < 1_000
    assert decide(bytes(data), leaves_heavy=True).is_heavy


def test_many_light_batches_are_heavy_together() -> None:
    one = heavy(RECORDS_AT_ONCE // 2)
    chunk = b""
    for number in range(3):
        batch = bytearray(one)
        assign_offsets(batch, number * RECORDS_AT_ONCE // 2, 0)
        chunk += batch
    assert not decide(one, leaves_heavy=True).is_heavy
    assert decide(chunk, leaves_heavy=True).is_heavy


def test_what_goes_on_as_bytes_is_never_heavy() -> None:
    records = [Record(offset, 5, None, b"") for offset in range(3 * SLICE_RECORDS)]
    routed = decide(build_batch(records, compression=Compression.ZSTD), leaves_heavy=True)
    assert [one.record_count for one in routed.forwards] == [3 * SLICE_RECORDS]


def test_a_large_batch_is_built_anew_in_slices() -> None:
    routed = decide(heavy(2 * SLICE_RECORDS + 5), leaves_heavy=False)
    assert [one.record_count for one in routed.forwards] == [SLICE_RECORDS, SLICE_RECORDS, 5]
    assert [record.timestamp_ms for record in arrived(routed)] == [99_999] * (2 * SLICE_RECORDS + 5)
    assert routed.cursor == Cursor(2 * SLICE_RECORDS + 5, Place(2 * SLICE_RECORDS + 5), 0)


@pytest.mark.parametrize("wrong", [SLICE_RECORDS - 1, 5 * SLICE_RECORDS])
def test_offsets_that_go_back_between_slices_are_damage(wrong: int) -> None:
    offsets = [*range(SLICE_RECORDS), wrong, *range(SLICE_RECORDS + 1, SLICE_RECORDS + 4)]
    heads = [RecordHead(offset, 5, b"\x01\x00\x00") for offset in offsets]
    payload = b"".join(
        varint(len(body)) + body
        for body in (b"\x00" + varint(0) + varint(head.offset) + head.tail for head in heads)
    )
    data = bytearray(heavy(len(offsets))[:HEADER_BYTES] + payload)
    data[LENGTH_AT : LENGTH_AT + 4] = (len(data) - LENGTH_AT - 4).to_bytes(4)
    stamp_append_time(data, 99_999)
    routed = decide(bytes(data), leaves_heavy=False)
    assert "not in order" in (routed.corrupt or "")
    assert len(arrived(routed)) == SLICE_RECORDS


def test_a_damaged_batch_stops_the_chunk_there() -> None:
    good, bad = plain(0, range(2)).data, bytearray(plain(2, range(2, 4)).data)
    bad[-1] ^= 1
    routed = run(good + bytes(bad))
    assert len(arrived(routed)) == 2
    assert routed.corrupt is not None
    assert "offset 2" in routed.corrupt
    assert routed.cursor == Cursor(2, Place(2), 0)


def test_an_incomplete_tail_is_left_for_the_next_fetch() -> None:
    chunk = plain(0, range(2)).data + plain(2, range(2, 4)).data[:-3]
    assert run(chunk).cursor == Cursor(2, Place(2), 0)


def test_the_sequence_begins_again_behind_int32() -> None:
    target = 2**31 - 1
    routed = run(plain(target, [target]).data, Cursor(target, Place(target), 0))
    assert parse_header(routed.forwards[0].parts[0]).base_sequence == 2**31 - 1
    routed = run(plain(target + 1, [target + 1]).data, Cursor(target + 1, Place(target + 1), 0))
    assert parse_header(routed.forwards[0].parts[0]).base_sequence == 0


@st.composite
def logs(draw: st.DrawFn) -> tuple[bytes, list[int], int]:
    """A log of batches with gaps, markers and compaction: bytes, offsets of records, end."""
    offset, data, offsets = 0, b"", []
    for _ in range(draw(st.integers(1, 8))):
        offset += draw(st.sampled_from([0, 0, 0, 1, 4]))
        if draw(st.integers(0, 4)) == 0:
            data += plain(offset, [offset], is_control=True, producer_id=9).data
            offset += 1
            continue
        kept = draw(st.lists(st.integers(offset, offset + 6), min_size=1, max_size=6, unique=True))
        kept = sorted({offset, *kept})
        data += plain(offset, kept).data
        offsets += kept
        offset = kept[-1] + 1
    return data, offsets, offset


@given(logs(), st.data())
def test_however_a_log_is_fetched_every_record_arrives_once_and_the_map_is_exact(
    log: tuple[bytes, list[int], int], data: st.DataObject
) -> None:
    chunk, offsets, end = log
    cursor, offset_map, keys = Cursor(0, Place(0), 0), OffsetMap.from_starts([(0, 0)], 0), []
    while cursor.source < end:
        size = data.draw(st.integers(300, 4000))
        part = _from(chunk, cursor.source)[:size]
        routed = run(part, cursor)
        for source, target in routed.starts:
            offset_map.announce(source, target)
        keys += [record.key for record in arrived(routed, cursor.place)]
        cursor = routed.cursor
        offset_map.advance(cursor.place)
        assert offset_map.mirrored_source_end == cursor.source
    assert keys == [b"k%d" % offset for offset in offsets]
    mapped = [
        piece.source_start + step for piece in offset_map.pieces() for step in range(piece.count)
    ]
    assert mapped == offsets
    assert offset_map.mirrored_source_end == end


def _from(chunk: bytes, offset: int) -> bytes:
    """Return the log from the batch on that holds the offset or lies behind it."""
    position = 0
    while position < len(chunk):
        header = parse_header(chunk, position)
        if header.next_offset > offset:
            break
        position += header.batch_bytes
    return chunk[position:]
