"""Record batches: the bytes that Kafka's documentation describes, and nothing but CorruptBatch."""

import struct
from collections.abc import Callable
from itertools import pairwise

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from wire.compression import Compression
from wire.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    Record,
    UnsupportedMagic,
    assign_offsets,
    build_batch,
    build_batch_from_heads,
    crc_is_valid,
    iterate_batches,
    iterate_record_heads,
    iterate_records,
    parse_header,
    records_payload,
    rewrite,
    stamp_append_time,
    times_and_tails,
)
from wire.record_batch.varints import read_varint, read_varlong, varint

# Two records by hand, from the format's description: (key "k", value "vv", header h -> null) and
# (null key, null value), one millisecond and one offset apart.
FIRST = bytes([12 << 1, 0, 0, 0, 2, ord("k"), 4, ord("v"), ord("v"), 2, 2, ord("h"), 1])
SECOND = bytes([6 << 1, 0, 2, 2, 1, 1, 0])
UNDER_CRC = struct.pack(">hiqqqhii", 0, 1, 1_000, 1_001, 77, 3, 40, 2) + FIRST + SECOND
GOLDEN = struct.pack(">qiibI", 500, 9 + len(UNDER_CRC), 6, 2, crc32c(UNDER_CRC)) + UNDER_CRC
GOLDEN_RECORDS = [
    Record(500, 1_000, b"k", b"vv", (("h", None),)),
    Record(501, 1_001, None, None),
]

timestamps = st.integers(-1, 2**45)
payloads = st.none() | st.binary(max_size=200)
header_keys = st.binary(max_size=8).map(lambda raw: raw.decode(errors="surrogateescape"))
record_bodies = st.tuples(
    timestamps, payloads, payloads, st.lists(st.tuples(header_keys, payloads), max_size=3)
)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    bodies = draw(st.lists(record_bodies, min_size=1, max_size=20))
    gaps = draw(st.lists(st.integers(1, 3), min_size=len(bodies), max_size=len(bodies)))
    offset = draw(st.integers(0, 2**40))
    records = []
    for (timestamp_ms, key, value, headers), gap in zip(bodies, gaps, strict=True):
        records.append(Record(offset, timestamp_ms, key, value, tuple(headers)))
        offset += gap
    return records


codecs = st.sampled_from(Compression)


def test_the_documented_bytes_are_read() -> None:
    assert parse_header(GOLDEN) == BatchHeader(
        base_offset=500,
        batch_bytes=len(GOLDEN),
        partition_leader_epoch=6,
        magic=2,
        crc=crc32c(UNDER_CRC),
        attributes=0,
        last_offset_delta=1,
        base_timestamp=1_000,
        max_timestamp=1_001,
        producer_id=77,
        producer_epoch=3,
        base_sequence=40,
        record_count=2,
    )
    assert list(iterate_records(GOLDEN)) == GOLDEN_RECORDS
    assert crc_is_valid(GOLDEN)


def test_the_documented_bytes_are_written() -> None:
    built = build_batch(
        GOLDEN_RECORDS,
        base_offset=500,
        partition_leader_epoch=6,
        producer_id=77,
        producer_epoch=3,
        base_sequence=40,
    )
    assert built == GOLDEN


def test_header_properties() -> None:
    header = parse_header(GOLDEN)
    assert (header.last_offset, header.next_offset) == (501, 502)
    assert header.compression is Compression.NONE
    assert header.attributes == 0
    assert not header.has_offset_holes
    flags = parse_header(build_batch(GOLDEN_RECORDS, is_transactional=True, is_control=True))
    assert (flags.is_transactional, flags.is_control) == (True, True)
    assert (header.is_transactional, header.is_control) == (False, False)


@given(record_lists(), codecs, st.integers(0, 2**50))
def test_records_come_back_as_they_were(
    records: list[Record], codec: Compression, base_offset: int
) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=codec)
    moved = [
        record._replace(offset=record.offset - records[0].offset + base_offset)
        for record in records
    ]
    header = parse_header(batch)
    assert list(iterate_records(batch)) == moved
    assert crc_is_valid(batch)
    assert (header.batch_bytes, header.record_count) == (len(batch), len(records))
    assert header.compression is codec
    assert header.last_offset == moved[-1].offset
    assert header.max_timestamp == max(record.timestamp_ms for record in records)
    assert header.has_offset_holes == any(
        later.offset != earlier.offset + 1 for earlier, later in pairwise(records)
    )


@given(record_lists(), codecs, st.integers(0, 2**62), st.integers(-1, 2**31 - 1), st.booleans())
def test_a_rewritten_batch_keeps_its_records_byte_for_byte(
    records: list[Record], codec: Compression, base_offset: int, sequence: int, transactional: bool
) -> None:
    batch = build_batch(records, compression=codec, is_transactional=not transactional)
    head, payload = rewrite(
        memoryview(batch),
        base_offset=base_offset,
        partition_leader_epoch=9,
        producer_id=12,
        producer_epoch=1,
        base_sequence=sequence,
        is_transactional=transactional,
    )
    assert payload == batch[HEADER_BYTES:]
    assert payload.obj is batch
    forwarded = head + payload
    before, after = parse_header(batch), parse_header(forwarded)
    assert after == before._replace(
        base_offset=base_offset,
        partition_leader_epoch=9,
        producer_id=12,
        producer_epoch=1,
        base_sequence=sequence,
        attributes=after.attributes,
        crc=after.crc,
    )
    assert after.is_transactional is transactional
    assert crc_is_valid(forwarded)


def test_a_rewritten_batch_forgets_the_delete_horizon() -> None:
    batch = bytearray(GOLDEN)
    batch[22] |= 0x40
    head, _ = rewrite(
        memoryview(batch), base_offset=0, producer_id=1, producer_epoch=0, base_sequence=0
    )
    assert parse_header(head).attributes == 0


@given(record_lists(), codecs, st.integers(0, 2**62), st.integers(-1, 2**31 - 1))
def test_assigned_offsets_leave_the_checksum_valid(
    records: list[Record], codec: Compression, base_offset: int, epoch: int
) -> None:
    batch = bytearray(build_batch(records, compression=codec))
    before = parse_header(batch)
    assign_offsets(batch, base_offset, epoch)
    assert crc_is_valid(batch)
    assert parse_header(batch) == before._replace(
        base_offset=base_offset, partition_leader_epoch=epoch
    )


def test_the_append_time_stands_for_every_records_own() -> None:
    batch = bytearray(GOLDEN)
    stamp_append_time(batch, 9_000)
    assert crc_is_valid(batch)
    assert parse_header(batch).is_log_append_time
    assert [record.timestamp_ms for record in iterate_records(batch)] == [9_000, 9_000]
    again = build_batch_from_heads(list(iterate_record_heads(batch)), base_offset=500)
    assert not parse_header(again).is_log_append_time
    assert [record.timestamp_ms for record in iterate_records(again)] == [9_000, 9_000]


@given(record_lists(), codecs, codecs)
def test_heads_renumber_a_batch_with_holes(
    records: list[Record], codec: Compression, other: Compression
) -> None:
    batch = build_batch(records, compression=codec, base_offset=records[0].offset)
    dense = build_batch_from_heads(
        list(iterate_record_heads(batch)), base_offset=7, compression=other
    )
    assert not parse_header(dense).has_offset_holes
    assert list(iterate_records(dense)) == [
        record._replace(offset=7 + index) for index, record in enumerate(records)
    ]


def test_a_batch_needs_records_whose_offsets_ascend() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])
    with pytest.raises(ValueError, match="ascend"):
        build_batch([Record(1, 0, None, None), Record(1, 0, None, None)])


def test_a_kept_last_offset_makes_a_hole_at_the_end() -> None:
    header = parse_header(build_batch(GOLDEN_RECORDS, last_offset_delta=5))
    assert header.has_offset_holes
    assert header.next_offset == 6


@given(st.lists(record_lists(), max_size=4), st.integers(0, 300))
def test_whole_batches_are_yielded_and_an_incomplete_tail_ends_them(
    lists: list[list[Record]], cut: int
) -> None:
    batches = [build_batch(records) for records in lists]
    joined = b"".join(batches)
    cut = min(cut, len(batches[-1]) - 1) if batches else 0
    buffer = joined[: len(joined) - cut]
    found = [bytes(batch) for _, batch in iterate_batches(buffer)]
    assert found == (batches[:-1] if cut else batches)
    assert [header for header, _ in iterate_batches(buffer)] == [parse_header(b) for b in found]


@pytest.mark.parametrize("length", [-1, 0, 4, 48, -(2**31), 2**31 - 1])
def test_a_lying_length_is_named_with_its_position(length: int) -> None:
    lying = bytearray(GOLDEN + GOLDEN)
    struct.pack_into(">i", lying, len(GOLDEN) + 8, length)
    with pytest.raises(CorruptBatch) as fault:
        list(iterate_batches(lying))
    assert fault.value.position == len(GOLDEN)


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_another_magic_is_named(magic: int) -> None:
    old = bytearray(GOLDEN)
    old[16] = magic
    with pytest.raises(UnsupportedMagic, match=f"magic {magic}") as fault:
        list(iterate_batches(old))
    assert fault.value.magic == magic


def test_a_short_message_of_the_old_format_is_named() -> None:
    message = struct.pack(">qiIbbii", 0, 14, 0, 0, 0, -1, -1)
    with pytest.raises(UnsupportedMagic, match="old message format, magic 0"):
        list(iterate_batches(message))


def test_less_than_a_header_is_corrupt() -> None:
    with pytest.raises(CorruptBatch, match="60 bytes"):
        parse_header(GOLDEN[:60])


@pytest.mark.parametrize(("position", "fmt"), [(0, ">q"), (23, ">i"), (57, ">i")])
def test_negative_numbers_in_the_header_are_corrupt(position: int, fmt: str) -> None:
    damaged = bytearray(GOLDEN)
    struct.pack_into(fmt, damaged, position, -5)
    with pytest.raises(CorruptBatch, match="negative"):
        parse_header(damaged)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_compression_nobody_knows_is_corrupt(codec: int) -> None:
    damaged = bytearray(GOLDEN)
    damaged[22] = codec
    with pytest.raises(CorruptBatch, match=f"compression {codec}"):
        list(iterate_records(damaged))


@pytest.mark.parametrize("count", [0, 1, 3, 2**31 - 1])
def test_a_lying_record_count_is_corrupt(count: int) -> None:
    damaged = bytearray(GOLDEN)
    struct.pack_into(">i", damaged, 57, count)
    with pytest.raises(CorruptBatch):
        list(iterate_records(damaged))


@pytest.mark.parametrize("codec", list(Compression)[1:])
def test_a_decompression_bomb_is_corrupt(codec: Compression) -> None:
    batch = build_batch([Record(0, 0, None, bytes(3_000_000))], compression=codec)
    assert len(batch) < 200_000
    with pytest.raises(CorruptBatch):
        records_payload(batch, limit_bytes=1_000_000)
    assert len(records_payload(batch, limit_bytes=3_100_000)) > 3_000_000


@given(record_lists(), codecs, st.data())
def test_damaged_bytes_are_read_or_named_corrupt(
    records: list[Record], codec: Compression, data: st.DataObject
) -> None:
    batch = bytearray(build_batch(records, compression=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(batch) - 1))
        batch[at] = data.draw(st.integers(0, 255))
    try:
        for _, part in iterate_batches(batch):
            list(iterate_records(part, limit_bytes=1_000_000))
    except CorruptBatch:
        return


@given(record_lists(), st.data())
def test_a_flipped_bit_under_the_checksum_shows(records: list[Record], data: st.DataObject) -> None:
    batch = bytearray(build_batch(records))
    at = data.draw(st.integers(17, len(batch) - 1))
    batch[at] ^= 1 << data.draw(st.integers(0, 7))
    assert not crc_is_valid(batch)


def batch_of(payload: bytes, count: int = 1) -> bytes:
    """Return a batch around records written by hand."""
    under_crc = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, count) + payload
    return struct.pack(">qiibI", 0, 9 + len(under_crc), 0, 2, crc32c(under_crc)) + under_crc


@pytest.mark.parametrize(
    "payload",
    [
        varint(6) + bytes([0, 0, 0, 1, 1]) + varint(-1),
        varint(8) + bytes([0, 0, 0, 1, 1]) + varint(1) + varint(-1) + varint(-1),
        varint(6) + bytes([0, 0, 0, 1]) + varint(40) + b"x",
        varint(7) + bytes([0, 0, 0, 1, 1, 0]) + b"x",
        varint(40) + bytes([0, 0, 0, 1, 1, 0]),
        varint(-9) + bytes([0, 0, 0, 1, 1, 0]),
        b"\xff" * 5,
        b"\xff\xff\xff\xff\x7f" + bytes(20),
        b"",
    ],
    ids=[
        "negative count of headers",
        "header without a key",
        "value behind the end",
        "bytes behind the headers",
        "record behind the end",
        "negative length",
        "endless length",
        "length of more than 32 bits",
        "nothing",
    ],
)
def test_an_impossible_record_is_corrupt_at_its_byte(payload: bytes) -> None:
    with pytest.raises(CorruptBatch) as fault:
        list(iterate_records(batch_of(payload)))
    assert fault.value.position == 0


@pytest.mark.parametrize(
    "payload",
    [
        varint(40) + bytes([0, 0, 0, 1, 1, 0]),
        varint(1) + bytes([0, 0, 0, 1, 1, 0]),
        varint(6),
        varint(6) + bytes([0, 0, 0, 1, 1, 0]) + b"x",
    ],
    ids=["behind the end", "shorter than its head", "no head", "bytes behind the last"],
)
def test_an_impossible_record_head_is_corrupt(payload: bytes) -> None:
    with pytest.raises(CorruptBatch):
        list(iterate_record_heads(batch_of(payload)))
    with pytest.raises(CorruptBatch):
        times_and_tails(batch_of(payload))


@given(record_lists(), codecs, st.lists(st.tuples(st.integers(0, 4_000), st.integers(0, 255))))
def test_times_and_tails_are_those_of_the_heads_or_are_as_damaged(
    records: list[Record], codec: Compression, damage: list[tuple[int, int]]
) -> None:
    batch = bytearray(build_batch(records, compression=codec, base_offset=records[0].offset))
    for at, value in damage:
        batch[HEADER_BYTES + at % (len(batch) - HEADER_BYTES)] = value
    assert _outcome(lambda: times_and_tails(batch)) == _outcome(lambda: _by_heads(batch))


def _by_heads(batch: bytes | bytearray) -> tuple[list[int], list[bytes]]:
    heads = list(iterate_record_heads(batch))
    return [head.timestamp_ms for head in heads], [head.tail for head in heads]


def _outcome(read: Callable[[], tuple[list[int], list[bytes]]]) -> object:
    """Return what was read, or the byte at which the batch is damaged."""
    try:
        return read()
    except CorruptBatch as fault:
        return fault.position


def test_an_append_time_is_that_of_all_records_without_objects_too() -> None:
    batch = bytearray(GOLDEN)
    stamp_append_time(batch, 9_000)
    assert times_and_tails(batch) == ([9_000, 9_000], [FIRST[4:], SECOND[4:]])


def test_a_time_that_leads_out_of_its_64_bits_wraps_as_javas_does() -> None:
    last = (1 << 63) - 1
    batch = build_batch([Record(0, last, b"k", None), Record(1, last, b"k", None)])
    later = bytearray(batch)
    second = HEADER_BYTES + 1 + (batch[HEADER_BYTES] >> 1)
    later[second + 2] = 1 << 1
    assert times_and_tails(later)[0] == [last, -(1 << 63)]
    assert [head.timestamp_ms for head in iterate_record_heads(later)] == [last, -(1 << 63)]


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
def test_numbers_of_variable_size_come_back(small: int, large: int) -> None:
    assert read_varint(varint(small) + b"\xff", 0) == (small, len(varint(small)))
    assert read_varlong(varint(large) + b"\xff", 0) == (large, len(varint(large)))


@pytest.mark.parametrize(
    ("value", "raw"),
    [(-1, "01"), (2**31 - 1, "feffffff0f"), (-(2**63), "ffffffffffffffffff01")],
)
def test_a_number_of_variable_size_is_zigzag_with_the_lowest_bits_first(
    value: int, raw: str
) -> None:
    assert varint(value) == bytes.fromhex(raw)
