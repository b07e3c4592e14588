"""The chunk kernel does what Python does, byte for byte; whoever has no compiler skips this."""

import random
from struct import Struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.kernel.chunks import Row, Walked, any_walk, walked
from wire.kernel.chosen import native
from wire.record_batch import (
    CorruptBatch,
    Record,
    build_batch,
    iterate_batches,
    iterate_records,
    parse_header,
    passing,
)
from wire.record_batch.checksum import crc32c
from wire.record_batch.passing import PassingTerms

_chunk = pytest.importorskip("wire.kernel._chunk", reason="the chunk kernel was not built")
TERMS = PassingTerms(0, 0x20, frozenset(), 4, 77, 1, 9)
LENGTH = Struct(">i")


def singles(count: int, **fields: int) -> bytearray:
    """Return a chunk of one small record a batch."""
    batches = [
        build_batch([Record(at, 1_000 + at, b"k", b"v" * 9)], base_offset=at, **fields)  # type: ignore[arg-type]
        for at in range(count)
    ]
    return bytearray(b"".join(batches))


def test_it_is_the_one_that_is_chosen() -> None:
    assert native().pass_on is _chunk.pass_on
    assert native().words == f"native code (checksums: {_chunk.WAYS[-1]})"


@given(st.integers(0, 2**64))
def test_whatever_comes_becomes_the_same_bytes(seed: int) -> None:
    call = any_walk(random.Random(seed))
    expected = walked(passing.pass_on, call, call.chunk)
    assert walked(_chunk.pass_on, call, call.chunk) == expected
    assert walked(_chunk.pass_on, call, bytearray(call.chunk)) == expected


@given(st.binary(max_size=20_000), st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_every_way_to_a_checksum_leads_to_the_same(data: bytes, skipped: int, before: int) -> None:
    view = memoryview(data)[skipped:]
    for way in range(len(_chunk.WAYS)):
        assert _chunk.checksum(view, before, way) == crc32c(view, before)


@pytest.mark.parametrize("size", [0, 7, 8, 255, 256, 257, 1535, 1536, 3_000, 70_001])
def test_checksums_of_every_length_are_right(size: int) -> None:
    data = random.Random(size).randbytes(size)
    found = {_chunk.checksum(data, 0, way) for way in range(len(_chunk.WAYS))}
    assert found == {crc32c(data)}


def test_records_joined_where_they_lie_take_no_memory_of_their_own() -> None:
    chunk = singles(9)
    *_, [row] = _chunk.pass_on(memoryview(chunk), 0, 0, 0, TERMS, Row)
    head, records = row.parts
    assert (row.joined, row.record_count, records.obj) == (9, 9, chunk)
    batch = head + records
    assert [one.offset for one in iterate_records(batch)] == list(range(9))
    assert parse_header(batch).crc == crc32c(memoryview(batch)[21:])


def test_records_that_would_overtake_the_next_are_joined_in_a_buffer_of_their_own() -> None:
    """32 records grow by 3 bytes each where their times are hours apart: 61 are free."""
    times = (0, 1 << 30)
    batches = [
        build_batch(
            [Record(32 * batch + at, time, None, b"v") for at in range(32)], base_offset=32 * batch
        )
        for batch, time in enumerate(times)
    ]
    chunk = bytearray(b"".join(batches))
    before = bytes(chunk)
    call = Walked(before, 0, 0, 0, TERMS._replace(join_records=32))
    *_, [row] = _chunk.pass_on(memoryview(chunk), 0, 0, 0, call.terms, Row)
    assert (row.joined, chunk == before, row.parts[1].obj is not chunk) == (2, True, True)
    assert walked(_chunk.pass_on, call, before) == walked(passing.pass_on, call, before)


def test_a_chunk_that_may_not_be_written_to_stays_as_it_is() -> None:
    chunk = singles(9)
    before = bytes(chunk)
    *_, [row] = _chunk.pass_on(memoryview(chunk).toreadonly(), 0, 0, 0, TERMS, Row)
    assert (row.joined, bytes(chunk) == before) == (9, True)


@pytest.mark.parametrize("length", [-(2**31), -13, -12, 0, 48, 2**31 - 1])
def test_a_length_that_lies_ends_the_walk_before_its_batch(length: int) -> None:
    chunk = singles(3)
    [_, second, _] = iterate_batches(bytes(chunk))
    at = len(second[1])
    LENGTH.pack_into(chunk, at + 8, length)
    position, source, place, rows = _chunk.pass_on(memoryview(chunk), 0, 0, 0, TERMS, Row)
    assert (position, source, place, len(rows)) == (at, 1, 1, 1)


@pytest.mark.parametrize("position", [-1, 1_000_000])
def test_a_walk_that_begins_outside_the_chunk_is_refused(position: int) -> None:
    with pytest.raises(IndexError):
        _chunk.pass_on(memoryview(singles(1)), position, 0, 0, TERMS, Row)


@pytest.mark.parametrize(
    "wrong",
    [
        ("chunk", 0, 0, 0, TERMS, Row),
        (memoryview(b""), 0, 2**63, 0, TERMS, Row),
        (memoryview(b""), 0, 0, 0, TERMS[:-1], Row),
        (memoryview(b""), 0, 0, 0, TERMS._replace(refused={1}), Row),  # type: ignore[arg-type]
        (memoryview(b""), 0, 0, 0, TERMS, int),
        (memoryview(b""), 0, 0, 0, TERMS, Row(0, 0, 0, 0, 0, (), 0, 0)),
    ],
)
def test_what_is_no_call_raises(wrong: tuple[object, ...]) -> None:
    with pytest.raises((TypeError, OverflowError)):
        _chunk.pass_on(*wrong)


@given(st.integers(0, 2**64))
def test_a_chunk_without_anything_to_be_rebuilt_is_known_by_its_headers(seed: int) -> None:
    call = any_walk(random.Random(seed))
    view = memoryview(call.chunk)[call.position :]
    expected = True
    try:
        for header, _ in iterate_batches(view):
            expected &= (
                header.base_offset >= call.source
                and not header.has_offset_holes
                and not header.is_log_append_time
            )
    except CorruptBatch:
        return  # what is behind cannot be routed
    assert _chunk.needs_no_rebuilding(view, call.source) is expected
