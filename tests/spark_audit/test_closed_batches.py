"""Compressed batches that came over unchanged are compared closed, and opened where logs differ."""

from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_audit import flow_audit
from spark_audit.scan import digests, scan_plan
from spark_audit.scan.committed import CommittedBatch, CommittedLog, Content, Hole, SealedBatch
from spark_audit.scan.scan_plan import ScanTask
from spark_audit.snapshot.side import Side
from tests.spark_audit import logs
from tests.spark_audit.audits import audit_with_backlogs, planner_of
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of
from tests.spark_audit.planted.backlogs import plant_backlogs
from tests.spark_audit.planted.faults import plant_faults
from wire.compression import Compression
from wire.record_batch import Record, build_batch, rewrite

CODECS = [one for one in Compression if one is not Compression.NONE]


@pytest.fixture
def compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have logs in memory hold compressed batches."""
    packed = partial(build_batch, compression=Compression.LZ4)
    monkeypatch.setattr(logs, "build_batch", packed)


@pytest.mark.usefixtures("compressed")
def test_what_is_planted_in_compressed_logs_is_found_as_in_others() -> None:
    planted = [plant_faults(), plant_backlogs()]
    audited = audit_with_backlogs(planted)
    for one in planted:
        assert audited.of(one) == one.expected


def _fill(pair: Pair, contents: Sequence[str], of_source: int, of_target: int) -> None:
    """Append the same records to both sides in batches of different sizes."""
    for log, size in ((pair.source, of_source), (pair.target, of_target)):
        for start in range(0, len(contents), size):
            log.append(*contents[start : start + size])


def _audited(pair: Pair) -> tuple[list[list[ScanTask]], list[str], int]:
    """Return the tasks of each scan, the kinds of findings, and how many records were looked at."""
    scans: list[list[ScanTask]] = []

    def before_scan(number: int, tasks: Sequence[ScanTask]) -> None:
        if number == 0:
            scans.append(list(tasks))

    snapshot = snapshot_of({("orders", 0): pair})
    reader = MemoryReader({("orders", 0): pair}, before_scan=before_scan)
    result = flow_audit.audit_flow(reader, snapshot, planner_of(snapshot))
    return scans, [row["kind"] for row in result.findings], sum(reader.read_records.values())


@pytest.mark.usefixtures("compressed")
def test_equal_batches_are_never_opened() -> None:
    pair = Pair()
    _fill(pair, [f"record {number}" for number in range(9_000)], 20, 20)
    [[source, target]], kinds, looked_at = _audited(pair)
    assert source.by_sections
    assert target.by_sections
    assert (kinds, looked_at) == ([], 0)


@pytest.mark.usefixtures("compressed")
def test_equal_records_in_other_batches_are_opened_and_no_record_is_looked_at_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flow_audit, "LONG_RECORDS", 500)
    pair = Pair()
    same, other = ([f"{name} {number}" for number in range(6_000)] for name in ("same", "other"))
    _fill(pair, same, 20, 20)
    _fill(pair, other, 20, 30)
    _fill(pair, same, 25, 25)
    [first, opened], kinds, looked_at = _audited(pair)
    assert all(task.by_sections for task in first)
    assert not any(task.by_sections for task in opened)
    read_again = [task.stop - task.start for task in opened]
    assert all(6_000 <= offsets < 12_000 for offsets in read_again)
    assert (kinds, looked_at) == ([], 0)


@pytest.mark.usefixtures("compressed")
def test_what_a_cleaner_may_have_opened_is_read_by_its_records() -> None:
    pair = Pair()
    pair.source.is_compacted = True
    _fill(pair, [f"record {number}" for number in range(50)], 5, 5)
    [tasks], kinds, _ = _audited(pair)
    assert not any(task.by_sections for task in tasks)
    assert kinds == []


@pytest.mark.usefixtures("compressed")
def test_where_a_log_begins_later_now_than_when_it_was_first_read_all_adds_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flow_audit, "LONG_RECORDS", 500)
    pair = Pair()
    _fill(pair, [f"record {number}" for number in range(6_000)], 20, 30)
    snapshot = snapshot_of({("orders", 0): pair})

    def after_scan(number: int, _tasks: Sequence[ScanTask]) -> None:
        if number == 0:
            pair.source.start = 1_500

    reader = MemoryReader({("orders", 0): pair}, after_scan=after_scan)
    [row] = flow_audit.audit_flow(reader, snapshot, planner_of(snapshot)).summary
    assert row["source_retention_offsets"] + row["source_records"] == 6_000
    assert row["surplus_by_retention"] == row["source_retention_offsets"] == 1_500


@pytest.mark.usefixtures("compressed")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(2, 30), st.integers(0, 9))
def test_splits_of_a_log_of_closed_batches_give_each_record_once(
    sizes: list[int], split_offsets: int, deleted: int
) -> None:
    pair = Pair()
    for number, size in enumerate(sizes):
        contents = [f"record {number} {one}" for one in range(size)]
        pair.source.append(*contents)
        pair.target.append(*contents)
    pair.source.start = min(deleted, pair.source.stop)
    snapshot = snapshot_of({("orders", 0): pair})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_plan, "RANGE_SPLIT_OFFSETS", split_offsets)
        patch.setattr(digests, "_CUT_BELOW", b"\x40" + bytes(15))
        patch.setattr(digests, "_is_section_cut", lambda digest, _: digest < b"\x40")
        tasks = planner_of(snapshot).ranges()
        assert all(task.by_sections for task in tasks)
        rows = MemoryReader({("orders", 0): pair}).scan(tasks).to_pylist()
    for side, log in ((Side.SOURCE, pair.source), (Side.TARGET, pair.target)):
        found = sorted(
            (row["start_offset"], row["stop_offset"]) for row in rows if row["side"] == side.value
        )
        at = [offset for start, stop in found for offset in range(start, stop)]
        assert at == list(range(log.start, log.stop))


def _content(batch: bytes | memoryview, start: int, stop: int) -> list[Content]:
    log = CommittedLog(start, stop, keeps_sealed=True)
    return list(log.feed(memoryview(batch), ()))


def _batch(codec: Compression, **changes: int) -> bytes:
    base = changes.get("base_offset", 10)
    time_ms = changes.get("time_ms", 1_000)
    records = [Record(base + number, time_ms, b"k", b"value" * 9) for number in range(4)]
    return build_batch(records, base_offset=base, compression=codec)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_stays_closed_if_all_of_it_lies_in_the_range(codec: Compression) -> None:
    [sealed] = _content(_batch(codec), 10, 14)
    assert isinstance(sealed, SealedBatch)
    assert (sealed.first_offset, sealed.stop_offset, sealed.first_ms) == (10, 14, 1_000)
    for start, stop in ((11, 14), (10, 13)):
        [opened] = _content(_batch(codec), start, stop)
        assert isinstance(opened, CommittedBatch)
    [plain] = _content(_batch(Compression.NONE), 10, 14)
    assert isinstance(plain, CommittedBatch)
    damaged = bytearray(_batch(codec))
    damaged[-1] ^= 1
    [hole] = _content(bytes(damaged), 10, 14)
    assert isinstance(hole, Hole)


def _digest(batch: bytes) -> bytes:
    [sealed] = _content(batch, 0, 1 << 40)[-1:]
    assert isinstance(sealed, SealedBatch)
    return sealed.digest


@given(st.integers(0, 2**40), st.integers(-1, 9_000), st.integers(-1, 90))
def test_what_a_mirror_rewrites_of_a_batch_changes_no_digest(
    base_offset: int, producer_id: int, sequence: int
) -> None:
    batch = _batch(Compression.ZSTD)
    header, records = rewrite(
        memoryview(batch),
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=3,
        base_sequence=sequence,
        partition_leader_epoch=7,
    )
    [sealed] = _content(header + bytes(records), base_offset, base_offset + 4)
    assert isinstance(sealed, SealedBatch)
    assert (sealed.digest, sealed.leader_epoch) == (_digest(batch), 7)


def test_another_time_codec_or_content_changes_the_digest() -> None:
    others = [_batch(codec) for codec in CODECS] + [_batch(Compression.ZSTD, time_ms=1_001)]
    assert len({_digest(batch) for batch in others}) == len(others)
