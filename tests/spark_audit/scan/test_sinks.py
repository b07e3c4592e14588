"""What a scan makes of records and holes."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit.compare.alterations import altered_fields
from spark_audit.scan import digests
from spark_audit.scan.committed import CommittedBatch, Hole, HoleReason
from spark_audit.scan.digests import record_digest
from spark_audit.scan.entries import KEY_BYTES, Entry, entry_of
from spark_audit.scan.scan_rows import ScannedLog, ScanRow, arrow_batches
from spark_audit.scan.sinks import FirstSink, HoleRows, RangeSink, WindowSink
from spark_audit.snapshot.side import Side
from wire.record_batch import Record, RecordHead, build_batch, iterate_record_heads, times_and_tails


def _hole(start: int, stop: int, reason: HoleReason, detail: str = "") -> Hole:
    return Hole(start_offset=start, stop_offset=stop, reason=reason, detail=detail)


def _batch(*records: Record) -> CommittedBatch:
    return CommittedBatch(9, records[0].offset, *times_and_tails(build_batch(records)))


def _in_a_batch(heads: list[RecordHead]) -> CommittedBatch:
    times_ms, tails = [head.timestamp_ms for head in heads], [head.tail for head in heads]
    return CommittedBatch(9, heads[0].offset, times_ms, tails)


def _entries(*records: Record) -> list[Entry]:
    heads = iterate_record_heads(build_batch(records))
    return [entry_of(head, 9) for head in heads]


def test_an_entry_has_its_key_time_and_producer() -> None:
    first, second = _entries(Record(0, 1_000, b"key", b"value"), Record(1, 1_001, None, None))
    assert (first.offset, first.timestamp_ms, first.key) == (0, 1_000, b"key")
    assert (second.offset, second.timestamp_ms, second.key) == (1, 1_001, None)
    assert first.producer_id == 9
    assert first.digest != second.digest


def test_of_a_long_key_only_the_beginning_is_kept() -> None:
    (entry,) = _entries(Record(0, 1_000, b"k" * 500, b"value"))
    assert entry.key == b"k" * KEY_BYTES


def test_long_keys_that_begin_the_same_are_different_keys() -> None:
    first, other, again = _entries(
        *(
            Record(offset, 1_000, b"k" * KEY_BYTES + end, b"value")
            for offset, end in enumerate((b"1", b"2", b"1"))
        )
    )
    assert first.key_digest == again.key_digest != other.key_digest


def test_a_record_without_a_value_is_a_tombstone() -> None:
    entries = _entries(Record(0, 1, b"k", None), Record(1, 1, b"k", b""), Record(2, 1, None, b"v"))
    assert [entry.is_tombstone for entry in entries] == [True, False, False]
    assert [entry.key_digest is None for entry in entries] == [False, False, True]


def test_bytes_that_are_no_record_have_neither_key_nor_value() -> None:
    """Brokers that do not look into records append them, and every time of 64 bits and more."""
    for tail in (b"", b"\x14k", b"\xff\xff\xff\xff\xff\xff"):
        entry = entry_of(RecordHead(0, 1 << 63, tail), 9)
        assert (entry.key, entry.is_tombstone, entry.timestamp_ms) == (None, False, -(1 << 63))


@pytest.mark.parametrize(
    ("altered", "fields"),
    [
        (Record(7, 2, b"k", b"v", (("h", b"1"),)), ["timestamp"]),
        (Record(7, 1, b"K", b"v", (("h", b"1"),)), ["key"]),
        (Record(7, 1, None, b"v", (("h", b"1"),)), ["key"]),
        (Record(7, 1, b"k", b"", (("h", b"1"),)), ["value"]),
        (Record(7, 1, b"k", None, (("h", b"1"),)), ["value"]),
        (Record(7, 1, b"k", b"v", (("h", b"2"),)), ["headers"]),
        (Record(7, 1, b"k", b"v"), ["headers"]),
        (Record(7, 2, b"k", b"w", (("h", b"1"),)), ["timestamp", "value"]),
    ],
)
def test_the_fields_in_which_two_records_differ_are_named(
    altered: Record, fields: list[str]
) -> None:
    (before,) = _entries(Record(0, 1, b"k", b"v", (("h", b"1"),)))
    (after,) = _entries(altered)
    assert altered_fields(before, after) == fields


def test_a_window_beyond_the_limit_is_not_held() -> None:
    sink = WindowSink(2)
    assert sink.take(_batch(Record(0, 1, b"k", b"v"), Record(1, 1, b"k", b"v")))
    assert not sink.take(_batch(Record(2, 1, b"k", b"v")))
    assert sink.is_over
    assert list(sink.offsets) == [0, 1]


def test_of_wanted_digests_the_first_copies_are_kept() -> None:
    batch = _batch(*(Record(offset, 1, b"k", b"v") for offset in range(3)))
    sink = FirstSink([record_digest(next(batch.heads()))], copies=2)
    assert not sink.take(batch)
    assert [[one.offset for one in some] for some in sink.entries.values()] == [[0, 1]]


def test_one_row_stands_for_all_markers() -> None:
    sink = HoleRows()
    for offset in (3, 7, 9):
        sink.add(_hole(offset, offset + 1, HoleReason.MARKER))
    (row,) = sink.rows()
    assert (row.start_offset, row.stop_offset, row.records) == (3, 10, 3)


def test_a_hole_that_goes_on_is_one_hole() -> None:
    sink = HoleRows()
    sink.add(_hole(3, 5, HoleReason.CORRUPT, "the batch at offset 3"))
    sink.add(_hole(5, 6, HoleReason.CORRUPT, "the batch at offset 3"))
    sink.add(_hole(6, 8, HoleReason.CORRUPT, "the batch at offset 6"))
    assert [(row.start_offset, row.stop_offset) for row in sink.rows()] == [(3, 6), (6, 8)]


def test_holes_before_the_first_own_range_belong_to_the_split_before() -> None:
    sink = RangeSink(starts_log=False, split_stop=100)
    assert sink.take(_hole(3, 5, HoleReason.GAP))
    assert sink.rows() == []


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(0, 40), st.booleans())
def test_ranges_do_not_depend_on_how_records_are_batched(
    sizes: list[int], split_stop: int, starts_log: bool
) -> None:
    heads = [
        RecordHead(offset, 1_000 + offset, f"record {offset}".encode())
        for offset in range(sum(sizes))
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "_CUT_BELOW", b"\x40" + bytes(15))
        patch.setattr(digests, "MAX_RANGE_RECORDS", 5)
        whole, single = (RangeSink(starts_log=starts_log, split_stop=split_stop) for _ in range(2))
        ends = list(accumulate(sizes))
        batches = [heads[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        all(whole.take(_in_a_batch(batch)) for batch in batches)
        all(single.take(_in_a_batch([head])) for head in heads)
        assert whole.rows() == single.rows()


def test_the_rest_of_a_log_is_a_range() -> None:
    sink = RangeSink(starts_log=True, split_stop=100)
    sink.take(_batch(Record(4, 1_000, b"k", b"v"), Record(5, 1_000, b"k", b"v")))
    (row,) = sink.rows()
    assert (row.kind, row.start_offset, row.stop_offset, row.records) == ("range", 4, 6, 2)
    assert row.timestamp_ms == 1_000


def test_rows_travel_in_arrow_batches_of_bounded_size() -> None:
    log = ScannedLog(side=Side.NATIVE, topic="t", partition=2)
    batches = list(arrow_batches(log, [ScanRow("record", n, n + 1) for n in range(10_000)]))
    assert [batch.num_rows for batch in batches] == [8_192, 1_808]
    row = batches[0].to_pylist()[5]
    assert (row["side"], row["topic"], row["partition"]) == ("native", "t", 2)
    assert row["start_offset"] == 5
