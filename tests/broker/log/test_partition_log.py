"""What one log answers to appends, reads and lookups, and how it stands a failing disk."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.log.config import LogConfig
from broker.log.results import (
    NOTHING,
    AppendOrigin,
    AppendResult,
    BatchRefused,
    Duplicate,
    FileSlice,
    StorageError,
    TimestampOffset,
)
from tests.broker.log.logs import (
    NOW_MS,
    SMALL,
    batch,
    batches_of,
    log_folder,
    one_log,
    opened,
    partition_of,
    record_at,
    values_of,
)
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.record_batch import (
    Record,
    build_batch,
    crc_is_valid,
    iterate_records,
    parse_header,
    stamp_append_time,
)

BIG = LogConfig()


def test_offsets_and_epoch_are_assigned_and_the_rest_is_untouched(tmp_path: Path) -> None:
    sent = batch([b"a", b"b", b"c"])
    with one_log(tmp_path, BIG) as log:
        first = log.append(sent, leader_epoch=4, now_ms=NOW_MS)
        second = log.append(memoryview(sent), leader_epoch=4, now_ms=NOW_MS)
        found = batches_of(log)
    assert first == AppendResult(
        base_offset=0, last_offset=2, log_append_time_ms=-1, log_start_offset=0
    )
    assert isinstance(second, AppendResult)
    assert (second.base_offset, second.last_offset) == (3, 5)
    assert [(h.base_offset, h.partition_leader_epoch) for h, _ in found] == [(0, 4), (3, 4)]
    assert all(data[16:] == sent[16:] for _, data in found)
    assert sent == batch([b"a", b"b", b"c"])


def test_log_append_time_replaces_the_producers_time(tmp_path: Path) -> None:
    config = replace(BIG, message_timestamp_type="LogAppendTime")
    with one_log(tmp_path, config) as log:
        done = log.append(batch([b"a", b"b"], timestamp_ms=5), leader_epoch=0, now_ms=NOW_MS)
        assert isinstance(done, AppendResult)
        assert done.log_append_time_ms == NOW_MS
        ((header, data),) = batches_of(log)
        assert header.is_log_append_time
        assert crc_is_valid(data)
        assert [record.timestamp_ms for record in iterate_records(data)] == [NOW_MS, NOW_MS]
        assert record_at(log, NOW_MS) == TimestampOffset(
            timestamp_ms=NOW_MS, offset=0, leader_epoch=0
        )


def test_a_claim_of_log_append_time_is_taken_back(tmp_path: Path) -> None:
    sent = bytearray(batch([b"a"], timestamp_ms=5))
    stamp_append_time(sent, 77)
    with one_log(tmp_path, BIG) as log:
        log.append(sent, leader_epoch=0, now_ms=NOW_MS)
        ((header, data),) = batches_of(log)
    assert not header.is_log_append_time
    assert [record.timestamp_ms for record in iterate_records(data)] == [5]


def _with(sent: bytes, position: int, value: bytes) -> bytes:
    return sent[:position] + value + sent[position + len(value) :]


WHOLE = batch([b"a", b"b"])
HOLED = build_batch([Record(offset=o, timestamp_ms=NOW_MS, key=None, value=b"") for o in (0, 2)])
CONTROL = build_batch([Record(offset=0, timestamp_ms=1, key=b"", value=b"")], is_control=True)
TRANSACTIONAL = build_batch(
    [Record(offset=0, timestamp_ms=NOW_MS, key=None, value=b"a")],
    producer_id=3,
    producer_epoch=0,
    base_sequence=0,
    is_transactional=True,
)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", ErrorCode.CORRUPT_MESSAGE),
        (WHOLE[:40], ErrorCode.CORRUPT_MESSAGE),
        (WHOLE[:-1], ErrorCode.CORRUPT_MESSAGE),
        (_with(WHOLE, 70, b"\xff"), ErrorCode.CORRUPT_MESSAGE),
        (_with(WHOLE, 16, b"\x01"), ErrorCode.INVALID_RECORD),
        (_with(WHOLE, 16, b"\x09"), ErrorCode.CORRUPT_MESSAGE),
        (_with(WHOLE, 0, b"\x00" * 7 + b"\x05"), ErrorCode.INVALID_RECORD),
        (WHOLE + WHOLE, ErrorCode.INVALID_RECORD),
        (HOLED, ErrorCode.INVALID_RECORD),
        (CONTROL, ErrorCode.INVALID_RECORD),
        (TRANSACTIONAL, ErrorCode.INVALID_TXN_STATE),
        (batch(producer=(3, 0, -1)), ErrorCode.INVALID_RECORD),
        (batch([bytes(2000)]), ErrorCode.MESSAGE_TOO_LARGE),
        (batch([bytes(800)]), ErrorCode.RECORD_LIST_TOO_LARGE),
        (batch(timestamp_ms=NOW_MS + 60_001), ErrorCode.INVALID_TIMESTAMP),
        (batch(timestamp_ms=NOW_MS - 60_001), ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_a_batch_that_may_not_be_is_refused_and_changes_nothing(
    tmp_path: Path, sent: bytes, error: ErrorCode
) -> None:
    config = replace(
        SMALL,
        max_message_bytes=1000,
        message_timestamp_after_max_ms=60_000,
        message_timestamp_before_max_ms=60_000,
    )
    with one_log(tmp_path, config) as log:
        log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
        size = log.size_bytes
        refused = log.append(sent, leader_epoch=0, now_ms=NOW_MS)
        assert isinstance(refused, BatchRefused)
        assert (refused.error, log.log_end_offset, log.size_bytes) == (error, 1, size)


def test_the_broker_itself_may_write_what_producers_may_not(tmp_path: Path) -> None:
    with one_log(tmp_path, BIG) as log:
        own = CONTROL + batch([b"x"] * 3) + batch(producer=(9, 2, -1))
        done = log.append(own, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
        assert isinstance(done, AppendResult)
        assert [h.base_offset for h, _ in batches_of(log)] == [0, 1, 4]


def test_a_duplicate_gets_its_old_offsets_also_after_a_restart(tmp_path: Path) -> None:
    sent = [batch([b"%d" % n] * 2, producer=(7, 1, 2 * n)) for n in range(7)]
    with one_log(tmp_path) as log:
        for one in sent:
            log.append(one, leader_epoch=0, now_ms=NOW_MS)
    for stop_cleanly in (True, False, True):
        manager = opened(tmp_path)
        log = partition_of(manager)
        for number, one in enumerate(sent):
            done = log.append(one, leader_epoch=0, now_ms=NOW_MS)
            if number < 2:
                assert isinstance(done, BatchRefused)
                assert done.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            else:
                assert isinstance(done, Duplicate)
                assert (done.base_offset, done.last_offset) == (2 * number, 2 * number + 1)
                assert log.find_duplicate(parse_header(one)) == done
        manager.close() if stop_cleanly else manager.abandon()


def test_a_follower_keeps_offsets_and_epochs_and_drops_the_incomplete_end(tmp_path: Path) -> None:
    with log_folder() as leaders_folder, one_log(leaders_folder) as leader:
        for number in range(30):
            sent = batch([b"%d" % number] * 3, producer=(number, 0, 0))
            leader.append(sent, leader_epoch=number // 4, now_ms=NOW_MS)
        with one_log(tmp_path) as follower:
            while follower.log_end_offset < leader.log_end_offset:
                fetched = leader.read(follower.log_end_offset, 600)
                assert isinstance(fetched, bytes)
                whole = len(batches_of(follower))
                done = follower.append_as_follower(fetched + WHOLE[:50], now_ms=NOW_MS)
                assert isinstance(done, AppendResult)
                assert len(batches_of(follower)) > whole
            assert batches_of(follower) == batches_of(leader)
            for epoch in range(9):
                mine = follower.end_offset_for_epoch(epoch)
                assert mine == leader.end_offset_for_epoch(epoch)
            overlapping = follower.append_as_follower(batches_of(leader)[-1][1], now_ms=NOW_MS)
            assert isinstance(overlapping, BatchRefused)


def test_a_follower_begins_with_the_batch_that_its_leaders_log_start_lies_in(
    tmp_path: Path,
) -> None:
    with log_folder() as leaders_folder, one_log(leaders_folder) as leader:
        for number in range(3):
            leader.append(batch([b"%d" % number] * 10), leader_epoch=0, now_ms=NOW_MS)
        leader.advance_log_start(5)
        fetched = leader.read(5, 600)
        assert isinstance(fetched, bytes)
        with one_log(tmp_path) as follower:
            follower.truncate_fully_and_start_at(5, now_ms=NOW_MS)
            done = follower.append_as_follower(fetched, now_ms=NOW_MS)
            assert isinstance(done, AppendResult)
            assert (follower.log_start_offset, follower.log_end_offset) == (5, 30)
            assert values_of(follower) == values_of(leader)
            again = follower.append_as_follower(fetched, now_ms=NOW_MS)
            assert isinstance(again, BatchRefused), "only into an empty log"
    with one_log(tmp_path) as follower:
        assert (follower.log_start_offset, follower.log_end_offset) == (5, 30)


def test_a_slice_of_a_deleted_segment_stays_readable(tmp_path: Path) -> None:
    config = replace(SMALL, retention_bytes=0)
    with one_log(tmp_path, config) as log:
        for _ in range(20):
            log.append(batch([b"v" * 50]), leader_epoch=0, now_ms=NOW_MS)
        found = log.locate(0, 10_000)
        assert isinstance(found, FileSlice)
        data = found.read()
        segments = len(log.segment_bases)
        assert log.apply_retention(NOW_MS) == segments > 2
        assert (log.segment_bases, log.log_start_offset) == ((20,), 20)
        assert found.file is not None
        assert not found.file.path.exists()
        assert found.read() == data


def test_nothing_is_read_at_the_end_or_at_the_stop(tmp_path: Path) -> None:
    with one_log(tmp_path) as log:
        log.append(batch([b"a", b"b"]), leader_epoch=0, now_ms=NOW_MS)
        assert log.locate(2, 1000) is NOTHING
        assert log.locate(0, 1000, stop_offset=0) is NOTHING
        assert log.locate(0, 1000, stop_offset=1).length == 0  # type: ignore[union-attr]
        assert log.read(1, 10, minimum_one_batch=False) == b""
        assert len(log.read(1, 10)) == log.size_bytes  # type: ignore[arg-type]


@settings(deadline=None)
@given(
    times=st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=3), min_size=1, max_size=25),
    codec=st.sampled_from([Compression.NONE, Compression.LZ4]),
    start=st.integers(0, 10),
    at_once=st.sampled_from([0, 4, 1_000]),
)
def test_lookup_by_time_equals_a_search_through_all_records(
    times: list[list[int]], codec: Compression, start: int, at_once: int
) -> None:
    with log_folder() as folder, one_log(folder) as log, pytest.MonkeyPatch.context() as patch:
        patch.setattr("broker.log.lookup.RECORDS_AT_ONCE", at_once)
        for group in times:
            records = [
                Record(offset=slot, timestamp_ms=time, key=None, value=b"v" * 20)
                for slot, time in enumerate(group)
            ]
            sent = build_batch(records, compression=codec)
            log.append(sent, leader_epoch=3, now_ms=NOW_MS)
        flat = [time for group in times for time in group]
        log.advance_log_start(start)
        start = log.log_start_offset
        for wanted in range(-1, 52):
            for stop in (log.log_end_offset, log.log_end_offset // 2):
                expected = next((o for o in range(start, stop) if flat[o] >= wanted), None)
                found = record_at(log, wanted, stop=stop)
                assert (found.offset if found else None) == expected
                assert found is None or found.timestamp_ms == flat[found.offset]
        newest = record_at(log, log.newest_ms)
        largest = max(flat)
        if largest in flat[start:]:
            assert newest == TimestampOffset(
                timestamp_ms=largest, offset=flat.index(largest, start), leader_epoch=3
            )


def test_a_segment_is_rolled_by_the_records_time(tmp_path: Path) -> None:
    config = replace(BIG, segment_ms=1000)
    with one_log(tmp_path, config) as log:
        for time in (0, 1000, 1001, 1500, 3000):
            log.append(batch(timestamp_ms=NOW_MS + time), leader_epoch=0, now_ms=NOW_MS)
        assert log.segment_bases == (0, 2, 4)


def test_a_segment_is_rolled_when_its_index_is_full(tmp_path: Path) -> None:
    config = replace(BIG, segment_index_bytes=24, index_interval_bytes=0)
    with one_log(tmp_path, config) as log:
        for number in range(12):
            log.append(batch(timestamp_ms=NOW_MS + number), leader_epoch=0, now_ms=NOW_MS)
        assert len(log.segment_bases) > 3
        assert list(values_of(log)) == list(range(12))


def test_flush_messages_moves_the_recovery_point(tmp_path: Path) -> None:
    config = replace(BIG, flush_messages=3)
    with one_log(tmp_path, config) as log:
        points = []
        for _ in range(4):
            log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
            points.append(log.recovery_point)
        assert points == [0, 0, 3, 3]


def test_a_truncation_during_an_fsync_leaves_the_recovery_point(tmp_path: Path) -> None:
    config = replace(BIG, flush_ms=10)
    with one_log(tmp_path, config) as log:
        for _ in range(3):
            log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
        assert not log.flushes_due(NOW_MS + 9)
        (pending,) = log.flushes_due(NOW_MS + 10)
        pending.run()
        log.truncate_to(1, now_ms=NOW_MS)
        for _ in range(3):
            log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
        pending.finish()
        assert log.recovery_point == 0
        (pending,) = log.flushes_due(NOW_MS + 20)
        pending.run()
        pending.finish()
        assert log.recovery_point == 4


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes: the disk is as good as full there."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1, 61, 100])
def test_a_full_disk_takes_the_folder_offline_and_leaves_no_half_batch(
    tmp_path: Path, room: int
) -> None:
    manager = opened(tmp_path, BIG)
    log = partition_of(manager, BIG)
    log.append(batch([b"v" * 100]), leader_epoch=0, now_ms=NOW_MS)
    size = log.size_bytes
    with files_up_to(size + room), pytest.raises(StorageError, match="topic-0: File too large"):
        log.append(batch([b"w" * 100]), leader_epoch=0, now_ms=NOW_MS)
    assert (log.size_bytes, log.log_end_offset) == (size, 1)
    assert (tmp_path / "topic-0" / f"{0:020d}.log").stat().st_size == size
    for attempt in (
        lambda: log.append(batch(), leader_epoch=0, now_ms=NOW_MS),
        lambda: log.read(0, 100),
        lambda: log.roll(NOW_MS),
    ):
        with pytest.raises(StorageError, match="File too large"):
            attempt()
    manager.tick(NOW_MS)
    assert list(manager.offline) == [tmp_path]
    manager.close()
    with one_log(tmp_path, BIG) as again:
        assert values_of(again) == {0: b"v" * 100}
        done = again.append(batch(), leader_epoch=0, now_ms=NOW_MS)
        assert isinstance(done, AppendResult)


WRITER = """
import sys
from pathlib import Path
from tests.broker.log.logs import NOW_MS, batch, opened, partition_of
log = partition_of(opened(Path(sys.argv[1])))
while True:
    done = log.append(batch([b"%d" % log.log_end_offset]), leader_epoch=0, now_ms=NOW_MS)
    print(done.last_offset, flush=True)
"""


@pytest.mark.parametrize("acknowledged", [1, 300])
def test_what_was_acknowledged_survives_sigkill(tmp_path: Path, acknowledged: int) -> None:
    root = Path(__file__).parents[3]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert writer.stdout is not None
    for _ in range(acknowledged):
        last = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read().splitlines()
    writer.stdout.close()
    writer.wait()
    last = max([last, *(int(line) for line in rest[:-1])])
    with one_log(tmp_path) as log:
        assert log.log_end_offset > last
        assert values_of(log) == {o: b"%d" % o for o in range(log.log_end_offset)}
