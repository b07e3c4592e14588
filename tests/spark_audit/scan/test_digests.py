"""Ranges are cut by content, and the splits of a log give each range exactly once."""

from hashlib import blake2b
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit.scan import digests
from spark_audit.scan.digests import (
    MAX_RANGE_RECORDS,
    DigestRange,
    RangeCutter,
    is_cut,
    record_digest,
)
from wire.record_batch import RecordHead

ORDINARY = b"\xff" * 16
CUT = b"\x00" * 16


def _ranges(log: list[tuple[int, bytes]], *splits: int) -> list[DigestRange]:
    """Cut a log of (offset, digest) at these split offsets; each split reads from its start."""
    found: list[DigestRange] = []
    for start, stop in pairwise([0, *splits, 1 << 40]):
        cutter = RangeCutter(starts_log=start == 0, split_stop=stop)
        for offset, digest in log:
            if offset >= start and not cutter.is_done:
                found += [done for *_, done in cutter.add(offset, [digest]) if done]
        last = cutter.finish()
        found += [last] if last else []
    return found


logs = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([CUT, ORDINARY, b"\x80" * 16])), max_size=60
).map(
    lambda steps: [
        (sum(step for step, _ in steps[: index + 1]), digest)
        for index, (_, digest) in enumerate(steps)
    ]
)


@given(logs, st.lists(st.integers(1, 200), max_size=5, unique=True).map(sorted))
def test_however_a_log_is_split_its_ranges_are_the_same(
    log: list[tuple[int, bytes]], splits: list[int]
) -> None:
    assert _ranges(log, *splits) == _ranges(log)


@given(
    st.lists(st.sampled_from([CUT, ORDINARY]), min_size=1, max_size=40),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
    st.integers(0, 40),
    st.booleans(),
)
def test_however_many_records_come_at_once_the_ranges_are_the_same(
    log: list[bytes], sizes: list[int], split_stop: int, starts_log: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "MAX_RANGE_RECORDS", 5)
        single, together = (
            RangeCutter(starts_log=starts_log, split_stop=split_stop) for _ in range(2)
        )
        one_by_one = _completed(single, log, [1])
        assert _completed(together, log, sizes) == one_by_one
        assert together.finish() == single.finish()
        assert together.is_done == single.is_done


def _completed(
    cutter: RangeCutter, log: list[bytes], sizes: list[int]
) -> list[tuple[int, int, DigestRange | None]]:
    """Return the last stretch of each range in offsets, with the range."""
    found: list[tuple[int, int, DigestRange | None]] = []
    offset = number = 0
    while offset < len(log) and not cutter.is_done:
        some = log[offset : offset + sizes[number % len(sizes)]]
        found += [
            (done.start_offset, offset + stop, done)
            for _, stop, done in cutter.add(offset, some)
            if done
        ]
        offset, number = offset + len(some), number + 1
    return found


def test_a_time_beyond_64_bits_is_what_java_makes_of_it() -> None:
    """A producer's base time and a record's delta may add up to one."""
    wrapped = record_digest(RecordHead(0, -(1 << 63), b"k"))
    assert record_digest(RecordHead(0, 1 << 63, b"k")) == wrapped


@given(logs)
def test_ranges_cover_every_record_once_in_order(log: list[tuple[int, bytes]]) -> None:
    ranges = _ranges(log)
    assert sum(found.records for found in ranges) == len(log)
    assert all(before.stop_offset <= after.start_offset for before, after in pairwise(ranges))


def test_offsets_do_not_count_but_order_does() -> None:
    log = [(0, ORDINARY), (1, b"\x80" * 16)]
    moved = [(7, ORDINARY), (9, b"\x80" * 16)]
    turned = [(0, b"\x80" * 16), (1, ORDINARY)]
    assert _ranges(log)[0].digest == _ranges(moved)[0].digest
    assert _ranges(log)[0].digest != _ranges(turned)[0].digest


def test_a_range_without_a_cut_ends_after_the_greatest_number_of_records() -> None:
    log = [(offset, ORDINARY) for offset in range(MAX_RANGE_RECORDS + 1)]
    assert [found.records for found in _ranges(log)] == [MAX_RANGE_RECORDS, 1]


def test_about_one_record_in_a_thousand_ends_a_range() -> None:
    cuts = sum(
        is_cut(blake2b(bytes([i % 251, i >> 8]), digest_size=16).digest()) for i in range(65_000)
    )
    assert 30 < cuts < 110


@pytest.mark.parametrize(
    "other",
    [RecordHead(5, 1_001, b"tail"), RecordHead(5, 1_000, b"tale")],
    ids=["time", "content"],
)
def test_time_and_content_make_a_record(other: RecordHead) -> None:
    head = RecordHead(5, 1_000, b"tail")
    assert record_digest(head) == record_digest(head._replace(offset=9))
    assert record_digest(head) != record_digest(other)
