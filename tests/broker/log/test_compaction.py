"""Compaction: what stays of a log, by Kafka's rules."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.fairness import UNPACKED_AT_ONCE_BYTES
from broker.log.batch_walk import walk
from broker.log.cleaning import Cleaning
from broker.log.compaction import delete_horizon
from broker.log.config import LONG_MAX
from broker.log.partition_log import PartitionLog
from broker.log.segment import Segment
from broker.log.skimpy_offset_map import SkimpyOffsetMap, slots_within
from broker.log.steps import Slow
from tests.broker.log.cleaning import (
    COMPACTED,
    add,
    batches_left,
    clean,
    headers_of,
    records_of,
    run_through,
)
from tests.broker.log.logs import (
    NOW_MS,
    batch,
    log_folder,
    marker,
    one_log,
    opened,
    partition_of,
)
from tests.properties import examples
from wire.compression import Compression
from wire.record_batch import Record, iterate_records, parse_header
from wire.record_batch.header import pack_header
from wire.record_batch.varints import varint

LATER_MS = NOW_MS + 5000


def put(log: PartitionLog, *pairs: tuple[bytes | None, bytes | None]) -> None:
    add(log, batch([value for _, value in pairs], keys=[key for key, _ in pairs]))


def kept(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records_of(log)]


def test_the_last_record_of_each_key_stays_at_its_offset(tmp_path: Path) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
        put(log, (b"b", b"2"), (b"c", b"1"))
        put(log, (b"a", b"3"))
        log.roll(NOW_MS)
        put(log, (b"a", b"4"))
        report = clean(log)
        assert report.next_dirty == 6
        assert kept(log) == [
            (3, b"b", b"2"),
            (4, b"c", b"1"),
            (5, b"a", b"3"),
            (6, b"a", b"4"),
        ]
        assert log.log_end_offset == 7


def test_records_without_a_key_go(tmp_path: Path) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        put(log, (None, b"1"), (b"a", b"1"))
        log.roll(NOW_MS)
        clean(log)
        assert kept(log) == [(1, b"a", b"1")]


@pytest.mark.parametrize("codec", Compression)
def test_a_rewritten_batch_keeps_its_codec_places_and_times(
    tmp_path: Path, codec: Compression
) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        keys = [b"a", b"b", b"c", b"d"]
        sent = batch([b"x" * 20] * 4, keys=keys, compression=codec, producer=(5, 2, 10))
        add(log, sent)
        put(log, (b"b", b"new"))
        log.roll(NOW_MS)
        clean(log)
        header = headers_of(log)[0]
        assert header.compression is codec
        assert (header.base_offset, header.last_offset, header.record_count) == (0, 3, 3)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, 10)
        assert header.max_timestamp == NOW_MS + 3
        assert [(r.offset, r.timestamp_ms) for r in records_of(log)[:3]] == [
            (0, NOW_MS),
            (2, NOW_MS + 2),
            (3, NOW_MS + 3),
        ]


def test_a_batch_that_loses_nothing_stays_to_the_byte(tmp_path: Path) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        put(log, (b"a", b"1"))
        add(log, batch([b"1"], keys=[b"b"], compression=Compression.GZIP))
        put(log, (b"a", b"2"))
        log.roll(NOW_MS)
        before = [data for _, data in batches_left(log)]
        clean(log)
        assert [data for _, data in batches_left(log)] == before[1:]


def test_a_log_with_nothing_to_take_is_not_written_anew(tmp_path: Path) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        put(log, (b"a", b"1"))
        log.roll(NOW_MS)
        inode = log.sealed_segments()[0].path.stat().st_ino
        assert clean(log).next_dirty == 1
        assert log.sealed_segments()[0].path.stat().st_ino == inode


def test_a_tombstone_goes_when_its_horizon_is_over(tmp_path: Path) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        put(log, (b"a", b"1"), (b"b", b"1"))
        put(log, (b"a", None))
        log.roll(NOW_MS)
        clean(log)
        assert kept(log) == [(1, b"b", b"1"), (2, b"a", None)]
        assert [delete_horizon(header) for header in headers_of(log)] == [None, NOW_MS + 1000]
        assert records_of(log)[-1].timestamp_ms == NOW_MS
        clean(log, now_ms=NOW_MS + 999)
        assert len(kept(log)) == 2
        clean(log, now_ms=NOW_MS + 1000)
        assert kept(log) == [(1, b"b", b"1")]


def test_tombstones_may_stay_for_ever(tmp_path: Path) -> None:
    with one_log(tmp_path, replace(COMPACTED, delete_retention_ms=LONG_MAX)) as log:
        put(log, (b"a", b"1"), (b"b", b"1"))
        add(log, batch([None], keys=[b"a"], timestamp_ms=-1))
        log.roll(NOW_MS)
        clean(log)
        assert kept(log) == [(1, b"b", b"1"), (2, b"a", None)]
        assert delete_horizon(headers_of(log)[-1]) == LONG_MAX
        assert records_of(log)[-1].timestamp_ms == -1


@pytest.mark.parametrize(("base_ms", "delta_ms"), [(2**62, 2**62), (-(2**63), -1)])
def test_times_that_no_header_can_hold_become_the_nearest(
    tmp_path: Path, base_ms: int, delta_ms: int
) -> None:
    bodies = [
        b"\0" + varint(delta_ms) + varint(slot) + varint(1) + key + b"\2v\0"
        for slot, key in enumerate((b"a", b"b", b"a"))
    ]
    records = b"".join(varint(len(body)) + body for body in bodies)
    header = parse_header(batch([b""] * 3))._replace(base_timestamp=base_ms, max_timestamp=0)
    with one_log(tmp_path, COMPACTED) as log:
        add(log, pack_header(header, records) + records)
        log.roll(NOW_MS)
        clean(log)
        assert [offset for offset, *_ in kept(log)] == [1, 2]
        assert headers_of(log)[0].max_timestamp == (LONG_MAX if delta_ms > 0 else -(2**63))


def test_the_horizon_of_append_time_batches_leaves_their_time(tmp_path: Path) -> None:
    config = replace(COMPACTED, message_timestamp_type="LogAppendTime")
    with one_log(tmp_path, config) as log:
        sent = batch([None], keys=[b"a"], timestamp_ms=5)
        log.append(sent, leader_epoch=0, now_ms=NOW_MS)
        log.roll(NOW_MS)
        clean(log, now_ms=LATER_MS)
        assert [record.timestamp_ms for record in records_of(log)] == [NOW_MS]
        assert headers_of(log)[0].is_log_append_time


def test_the_last_batch_of_a_producer_stays_as_a_header() -> None:
    with log_folder() as folder:
        manager = opened(folder, COMPACTED)
        log = partition_of(manager, COMPACTED)
        add(log, batch([b"1", b"2"], keys=[b"a", b"b"], producer=(5, 1, 0)))
        add(log, batch([b"3", b"4"], keys=[b"a", b"b"], producer=(5, 1, 2)))
        put(log, (b"a", b"5"), (b"b", b"6"))
        log.roll(NOW_MS)
        clean(log)
        [last, _] = headers_of(log)
        assert (last.base_offset, last.last_offset, last.record_count) == (2, 3, 0)
        assert (last.producer_id, last.base_sequence, last.base_timestamp) == (5, 2, -1)
        manager.abandon()
        for path in (folder / "topic-0").glob("*.snapshot"):
            path.unlink()
        again = opened(folder, COMPACTED)
        repeated = batch([b"3", b"4"], keys=[b"a", b"b"], producer=(5, 1, 2))
        done = partition_of(again, COMPACTED).append(repeated, leader_epoch=0, now_ms=NOW_MS)
        assert (type(done).__name__, getattr(done, "base_offset", None)) == ("Duplicate", 2)
        again.close()


def test_aborted_records_go_then_their_marker_after_its_horizon(tmp_path: Path) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        put(log, (b"a", b"old"))
        add(log, batch([b"no"], keys=[b"a"], producer=(7, 0, 0), is_transactional=True))
        add(log, batch([b"yes"], keys=[b"b"], producer=(8, 0, 0), is_transactional=True))
        add(log, marker(7, is_abort=True))
        add(log, marker(8, is_abort=False))
        # A later batch of each, so that the ones above are not kept for the producers' sake.
        add(log, batch([b"1"], keys=[b"x"], producer=(7, 0, 1)))
        add(log, batch([b"1"], keys=[b"y"], producer=(8, 0, 1)))
        log.roll(NOW_MS)
        clean(log)
        # What was aborted never counted: the older record of its key stays.
        assert [offset for offset, _, _ in kept(log)] == [0, 2, 3, 4, 5, 6]
        assert [one.producer_id for one in log.aborted_transactions(0, 7)] == [7]
        clean(log)
        horizons = {header.base_offset: delete_horizon(header) for header in headers_of(log)}
        assert horizons[3] == NOW_MS + 1000
        assert horizons[4] is None
        assert log.aborted_transactions(0, 7) == []
        clean(log, now_ms=LATER_MS)
        assert [offset for offset, _, _ in kept(log)] == [0, 2, 4, 5, 6]


def test_nothing_undecided_is_compacted(tmp_path: Path) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        put(log, (b"a", b"1"))
        log.roll(NOW_MS)
        put(log, (b"a", b"2"))
        add(log, batch([b"3"], keys=[b"a"], producer=(7, 0, 0), is_transactional=True))
        log.roll(NOW_MS)
        put(log, (b"a", b"4"))
        log.roll(NOW_MS)
        assert clean(log).next_dirty == 1
        assert len(kept(log)) == 4
        assert clean(log, high_watermark=1).next_dirty == 1


def test_small_memory_takes_several_passes(tmp_path: Path) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        for number in range(40):
            put(log, (b"%d" % (number % 20), b"%d" % number))
        log.roll(NOW_MS)
        checkpoint = 0
        passes = 0
        while checkpoint < 40:
            report = clean(log, slots=6, checkpoint=checkpoint)
            assert report.next_dirty > checkpoint
            checkpoint = report.next_dirty
            passes += 1
        assert passes == 7
        assert [offset for offset, _, _ in kept(log)] == list(range(20, 40))


def test_small_segments_become_one(tmp_path: Path) -> None:
    with one_log(tmp_path, COMPACTED) as log:
        for number in range(60):
            put(log, (b"%d" % (number % 5), b"v" * 10))
        count = len(log.segment_bases)
        assert count > 5
        clean(log)
        assert len(log.segment_bases) == count
        clean(log)
        assert len(log.segment_bases) < count / 2
        assert log.sealed_segments()[0].size <= COMPACTED.segment_bytes
        for offset in range(60):
            data = log.read(offset, 1000)
            assert isinstance(data, bytes)
            first = next(iterate_records(data), None)
            assert first is None or first.offset >= min(offset, 55)


def test_long_keys_are_told_apart() -> None:
    newest = SkimpyOffsetMap(10)
    keys = [b"k" * length for length in range(40)]
    for offset, key in enumerate(keys):
        newest.put(key, offset)
    assert [newest.get(key) for key in keys] == list(range(40))
    assert newest.get(b"other") == -1
    assert newest.is_full
    assert slots_within(1500, 0.5) == 5
    assert slots_within(10, 0.5) == 1


# -- any log at all

KEYS = [b"a", b"b", b"c", b"key longer than a digest", None]
CODECS = [Compression.NONE, Compression.LZ4]

writes = st.tuples(
    st.lists(
        st.tuples(st.sampled_from(KEYS), st.sampled_from([b"", b"value", None])),
        min_size=1,
        max_size=4,
    ),
    st.integers(-1, 2),
    st.sampled_from(CODECS),
)
actions = st.lists(
    st.one_of(
        writes,
        st.tuples(st.just("end"), st.integers(0, 2), st.booleans()),
        st.just("roll"),
        st.just("clean"),
        st.just("clean a little"),
    ),
    min_size=5,
    max_size=40,
)


def committed(log: PartitionLog) -> list[Record]:
    """Return the records that a read-committed consumer gets."""
    stable = log.last_stable_offset(log.log_end_offset)
    aborted = log.aborted_transactions(0, stable)
    found = []
    for header, data in batches_left(log):
        cut = header.is_transactional and any(
            one.producer_id == header.producer_id
            and one.first_offset <= header.base_offset < one.last_offset
            for one in aborted
        )
        if not cut and not header.is_control and header.base_offset < stable:
            found += list(iterate_records(data))
    return found


def newest(records: list[Record]) -> dict[bytes | None, bytes | None]:
    """Return what a table built from the records holds."""
    return {record.key: record.value for record in records if record.key is not None}


def do(log: PartitionLog, action: object, open_ones: set[int]) -> None:
    match action:
        case "roll":
            log.roll(NOW_MS)
        case ("end", int(producer_id), bool(is_abort)):
            add(log, marker(producer_id, is_abort=is_abort))
            open_ones.discard(producer_id)
        case (list(pairs), int(producer_id), Compression() as codec):
            is_transactional = producer_id > 0
            producer = (producer_id, 0, 0) if producer_id >= 0 else (-1, -1, -1)
            sent = batch(
                [value for _, value in pairs],
                keys=[key for key, _ in pairs],
                producer=producer,
                is_transactional=is_transactional,
                compression=codec,
            )
            add(log, sent)
            if is_transactional:
                open_ones.add(producer_id)
        case _:
            raise AssertionError(action)


@settings(max_examples=examples(25))
@given(actions)
def test_a_table_built_from_the_log_never_changes(steps: list[object]) -> None:
    now_ms, checkpoint = NOW_MS, 0
    with log_folder() as folder, one_log(folder, COMPACTED) as log:
        written: dict[int, Record] = {}
        open_ones: set[int] = set()
        for step in steps:
            before = newest(committed(log))
            if isinstance(step, str) and step.startswith("clean"):
                slots = 2 if step.endswith("little") else 1000
                report = clean(log, now_ms=now_ms, slots=slots, checkpoint=checkpoint)
                assert report.next_dirty >= checkpoint or not report.bytes_read
                checkpoint = max(checkpoint, report.next_dirty)
                now_ms += 600
                after = newest(committed(log))
                gone = {key for key in before if key not in after}
                assert all(before[key] is None for key in gone)
                assert after == {k: v for k, v in before.items() if k not in gone}
                cleaned = [r for r in committed(log) if r.offset < checkpoint]
                assert len(newest(cleaned)) == len(cleaned)
            else:
                do(log, step, open_ones)
            found = {record.offset: record for record in records_of(log)}
            written |= {offset: r for offset, r in found.items() if offset not in written}
            assert all(written[offset] == record for offset, record in found.items())
            assert_indexed(log)
        state = {e.producer_id: e.batches[-1:] for e in log._producers}
        with_sequence = {h.producer_id: h for h in headers_of(log) if not h.is_control}
        for producer_id, batches in state.items():
            for last in batches:
                assert with_sequence[producer_id].last_offset == last.last_offset


def assert_indexed(log: PartitionLog) -> None:
    """Hold every index entry against the batches themselves."""
    for segment in (*log.sealed_segments(), log._segments.active):
        assert isinstance(segment, Segment)
        batches = walk(segment.file, 0, segment.size)
        ends = {placed.position: placed.header.last_offset for placed in batches}
        for offset, position in segment.index:
            assert ends[position] == segment.base_offset + offset


def test_a_small_batch_that_becomes_large_is_unpacked_in_a_slow_step(tmp_path: Path) -> None:
    large = bytes(UNPACKED_AT_ONCE_BYTES)
    with one_log(tmp_path, COMPACTED) as log:
        add(log, batch([large], keys=[b"a"], compression=Compression.ZSTD))
        put(log, (b"a", b"new"))
        log.roll(NOW_MS)
        plan = log.cleanable(None, high_watermark=log.log_end_offset, now_ms=NOW_MS)
        steps = Cleaning(log, plan, slots=1_000, now_ms=NOW_MS).steps()
        unpacked: list[int] = []

        def run(slow: Slow) -> object:
            answer = slow()
            unpacked.append(len(answer) if isinstance(answer, bytes) else 0)
            return answer

        run_through(steps, run)
        assert max(unpacked) > UNPACKED_AT_ONCE_BYTES


def test_a_transaction_behind_a_full_map_stays_aborted(tmp_path: Path) -> None:
    """A segment is rewritten whole, also where the map had room for its first keys only."""
    with one_log(tmp_path, COMPACTED) as log:
        put(log, (b"a", b"old"), (b"b", b"old"))
        put(log, (b"a", b"1"))
        add(log, batch([b"no"], keys=[b"a"], producer=(7, 0, 0), is_transactional=True))
        add(log, marker(7, is_abort=True))
        add(log, batch([b"1"], keys=[b"x"], producer=(7, 0, 1)))
        log.roll(NOW_MS)
        before = [one.offset for one in committed(log)]
        assert before == [0, 1, 2, 5]
        report = clean(log, slots=2)
        assert report.next_dirty == 2, "the map is full behind the first batch"
        assert [one.offset for one in committed(log)] == before
        clean(log, slots=2, now_ms=LATER_MS)
        clean(log, slots=2, now_ms=2 * LATER_MS)
        assert b"no" not in [one.value for one in committed(log)]
