"""What a scan makes of records and holes."""

from spark_audit.scan.committed import CommittedBatch, Hole, HoleReason
from spark_audit.scan.scan_rows import ScannedLog, ScanRow, arrow_batches
from spark_audit.scan.sinks import KEY_BYTES, RangeSink, RecordSink
from spark_audit.snapshot.side import Side
from wire.record_batch import Record, RecordHead, build_batch, iterate_record_heads


def _hole(start: int, stop: int, reason: HoleReason, detail: str = "") -> Hole:
    return Hole(start_offset=start, stop_offset=stop, reason=reason, detail=detail)


def _batch(*records: Record) -> CommittedBatch:
    return CommittedBatch(9, list(iterate_record_heads(build_batch(records))))


def test_a_record_row_has_its_key_time_and_producer() -> None:
    sink = RecordSink()
    sink.take(_batch(Record(0, 1_000, b"key", b"value"), Record(1, 1_001, None, None)))
    first, second = sink.finish()
    assert (first.start_offset, first.timestamp_ms, first.key) == (0, 1_000, b"key")
    assert (second.start_offset, second.timestamp_ms, second.key) == (1, 1_001, None)
    assert first.producer_id == 9
    assert first.digest != second.digest


def test_of_a_long_key_only_the_beginning_is_kept() -> None:
    sink = RecordSink()
    sink.take(_batch(Record(0, 1_000, b"k" * 500, b"value")))
    assert sink.finish()[0].key == b"k" * KEY_BYTES


def test_long_keys_that_begin_the_same_are_different_keys() -> None:
    sink = RecordSink()
    for end in (b"1", b"2", b"1"):
        sink.take(_batch(Record(0, 1_000, b"k" * KEY_BYTES + end, b"value")))
    first, other, again = sink.finish()
    assert first.key_digest == again.key_digest != other.key_digest


def test_a_record_without_a_value_is_a_tombstone() -> None:
    sink = RecordSink()
    sink.take(_batch(Record(0, 1, b"k", None), Record(1, 1, b"k", b""), Record(2, 1, None, b"v")))
    rows = sink.finish()
    assert [row.is_tombstone for row in rows] == [True, False, False]
    assert [row.key_digest is None for row in rows] == [False, False, True]


def test_bytes_that_are_no_record_have_neither_key_nor_value() -> None:
    """Brokers that do not look into records append them, and every time of 64 bits and more."""
    sink = RecordSink()
    tails = [b"", b"\x14k", b"\xff\xff\xff\xff\xff\xff"]
    sink.take(CommittedBatch(9, [RecordHead(0, 1 << 63, tail) for tail in tails]))
    (batch,) = arrow_batches(ScannedLog(side=Side.SOURCE, topic="t", partition=0), sink.finish())
    assert batch.column("key").to_pylist() == [None] * 3
    assert batch.column("is_tombstone").to_pylist() == [False] * 3
    assert batch.column("timestamp_ms").to_pylist() == [-(1 << 63)] * 3


def test_one_row_stands_for_all_markers() -> None:
    sink = RecordSink()
    for offset in (3, 7, 9):
        sink.take(_hole(offset, offset + 1, HoleReason.MARKER))
    (row,) = sink.finish()
    assert (row.start_offset, row.stop_offset, row.records) == (3, 10, 3)


def test_a_hole_that_goes_on_is_one_hole() -> None:
    sink = RecordSink()
    sink.take(_hole(3, 5, HoleReason.CORRUPT, "the batch at offset 3"))
    sink.take(_hole(5, 6, HoleReason.CORRUPT, "the batch at offset 3"))
    sink.take(_hole(6, 8, HoleReason.CORRUPT, "the batch at offset 6"))
    assert [(row.start_offset, row.stop_offset) for row in sink.finish()] == [(3, 6), (6, 8)]


def test_holes_before_the_first_own_range_belong_to_the_split_before() -> None:
    sink = RangeSink(starts_log=False, split_stop=100)
    assert sink.take(_hole(3, 5, HoleReason.GAP))
    assert sink.finish() == []


def test_the_rest_of_a_log_is_a_range() -> None:
    sink = RangeSink(starts_log=True, split_stop=100)
    sink.take(_batch(Record(4, 1_000, b"k", b"v"), Record(5, 1_000, b"k", b"v")))
    (row,) = sink.finish()
    assert (row.kind, row.start_offset, row.stop_offset, row.records) == ("range", 0, 2, 2)


def test_rows_travel_in_arrow_batches_of_bounded_size() -> None:
    log = ScannedLog(side=Side.NATIVE, topic="t", partition=2, window=4)
    batches = list(arrow_batches(log, [ScanRow("record", n, n + 1) for n in range(10_000)]))
    assert [batch.num_rows for batch in batches] == [8_192, 1_808]
    row = batches[0].to_pylist()[5]
    assert (row["side"], row["topic"], row["partition"], row["window"]) == ("native", "t", 2, 4)
    assert row["start_offset"] == 5
