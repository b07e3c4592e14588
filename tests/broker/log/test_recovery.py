"""After an unclean stop: cut at the first bad batch, everything before it intact."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.log.config import LogConfig
from broker.log.results import AppendResult, Duplicate, StorageError
from tests.broker.log.logs import (
    NOW_MS,
    SMALL,
    batch,
    batches_of,
    log_folder,
    one_log,
    opened,
    partition_of,
    recovered,
    values_of,
)
from wire.record_batch import Record, build_batch, iterate_batches

SEGMENT = replace(SMALL, segment_bytes=1400)
EPOCH_FIELD = range(12, 16)
"""Bytes of a batch's header that neither a checksum nor a neighbour vouches for."""


def filled(folder: Path, config: LogConfig = SEGMENT) -> list[tuple[int, bytes]]:
    """Leave a log of 24 batches in three segments, never closed; return it as read."""
    manager = opened(folder, config)
    log = partition_of(manager, config)
    for number in range(24):
        sent = batch([b"%d" % number * 20] * (1 + number % 3), producer=(number, 0, 0))
        sent = sent if number % 4 else batch([b"plain"])
        log.append(sent, leader_epoch=number // 10, now_ms=NOW_MS)
    assert len(log.segment_bases) == 3
    held = [(header.base_offset, data) for header, data in batches_of(log)]
    manager.abandon()
    return held


def read_back(folder: Path, config: LogConfig = SEGMENT) -> list[tuple[int, bytes]]:
    """Open, read everything through the index, close cleanly."""
    with one_log(folder, config) as log:
        return [(header.base_offset, data) for header, data in batches_of(log)]


def log_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("topic-0/*.log"))


@settings(deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 255))
def test_any_damaged_byte_cuts_the_log_at_its_batch(place: int, flip: int) -> None:
    with log_folder() as folder:
        held = filled(folder)
        data = [path.read_bytes() for path in log_files(folder)]
        place %= sum(map(len, data))
        slot = 0
        while place >= len(data[slot]):
            place -= len(data[slot])
            slot += 1
        damaged = bytearray(data[slot])
        damaged[place] ^= flip
        log_files(folder)[slot].write_bytes(damaged)
        before = sum(len(list(iterate_batches(one))) for one in data[:slot])
        position = 0
        for _, view in iterate_batches(data[slot]):
            if position + len(view) > place:
                break
            position += len(view)
            before += 1
        found = read_back(folder)
        if place - position in EPOCH_FIELD:
            assert [(base, bytes(one[16:])) for base, one in found] == [
                (base, one[16:]) for base, one in held
            ]
        else:
            assert found == held[:before]


@settings(deadline=None)
@given(place=st.integers(0, 10**9), flip=st.integers(1, 255), is_clean=st.booleans())
def test_a_damaged_side_file_loses_no_record(place: int, flip: int, *, is_clean: bool) -> None:
    with log_folder() as folder:
        held = filled(folder)
        if is_clean:
            read_back(folder)
        files = [
            path
            for path in sorted(folder.glob("topic-0/*"))
            if path.suffix in (".index", ".timeindex", ".snapshot") and path.stat().st_size
        ]
        place %= sum(path.stat().st_size for path in files)
        for path in files:
            size = path.stat().st_size
            if place < size:
                damaged = bytearray(path.read_bytes())
                damaged[place] ^= flip
                path.write_bytes(damaged)
                break
            place -= size
        with one_log(folder, SEGMENT) as log:
            for base, data in reversed(held):
                assert log.read(base, len(data)) == data
        assert read_back(folder) == held


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_missing_side_file_is_made_again(tmp_path: Path, suffix: str, *, is_clean: bool) -> None:
    held = filled(tmp_path)
    if is_clean:
        read_back(tmp_path)
    for path in tmp_path.glob(f"topic-0/*{suffix}"):
        path.unlink()
    assert read_back(tmp_path) == held
    assert list(tmp_path.glob(f"topic-0/*{suffix}"))


@pytest.mark.parametrize("content", ["", "0\n", "0\n1\n", "1\n0\n", "\0\0\0", "0\n1\nx y\n"])
@pytest.mark.parametrize(
    "name",
    [
        "topic-0/leader-epoch-checkpoint",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
    ],
)
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, name: str, content: str) -> None:
    held = filled(tmp_path)
    (tmp_path / name).write_text(content)
    with one_log(tmp_path, SEGMENT) as log:
        assert [(header.base_offset, data) for header, data in batches_of(log)] == held
        assert log.latest_leader_epoch == 2
        assert log.end_offset_for_epoch(0) == (0, held[10][0])


def test_the_tail_that_a_crash_tore_is_cut_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    held = filled(tmp_path)
    last = log_files(tmp_path)[-1]
    size = last.stat().st_size
    with last.open("r+b") as file:
        file.truncate(size - 5)
    with caplog.at_level(logging.WARNING):
        manager = opened(tmp_path, SEGMENT)
    (report,) = recovered(manager)
    torn = len(held[-1][1])
    assert (report.segment, report.position, report.cut_bytes) == (last.name, size - torn, torn - 5)
    assert report.next_offset == held[-1][0]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == (
        f"{last}: cut {torn - 5} bytes from byte {size - torn} on, the log now ends at offset "
        f"{held[-1][0]}: {torn - 5} of the batch's {torn} bytes are there"
    )
    manager.close()


def test_segments_behind_a_bad_one_are_deleted(tmp_path: Path) -> None:
    held = filled(tmp_path)
    first, second, third = log_files(tmp_path)
    sizes = [path.stat().st_size for path in (first, second, third)]
    with second.open("r+b") as file:
        file.truncate(100)
    manager = opened(tmp_path, SEGMENT)
    (report,) = recovered(manager)
    assert not third.exists()
    assert report.cut_bytes == 100 - second.stat().st_size + sizes[2]
    assert report.next_offset == partition_of(manager, SEGMENT).log_end_offset
    manager.close()
    assert read_back(tmp_path) == held[: len(read_back(tmp_path))]


def test_garbage_behind_the_end_is_cut_and_the_log_goes_on(tmp_path: Path) -> None:
    held = filled(tmp_path)
    with log_files(tmp_path)[-1].open("ab") as file:
        file.write(bytes(5000))
    with one_log(tmp_path, SEGMENT) as log:
        end = log.log_end_offset
        done = log.append(batch([b"next"]), leader_epoch=9, now_ms=NOW_MS)
        assert isinstance(done, AppendResult)
        assert done.base_offset == end
    assert [base for base, _ in read_back(tmp_path)] == [*(base for base, _ in held), end]


@pytest.mark.parametrize("compacts", [True, False])
def test_a_hole_left_by_compaction_is_no_damage(tmp_path: Path, *, compacts: bool) -> None:
    config = replace(SEGMENT, cleanup_policy=frozenset({"compact" if compacts else "delete"}))
    record = Record(offset=0, timestamp_ms=NOW_MS, key=None, value=b"v")
    manager = opened(tmp_path, config)
    log = partition_of(manager, config)
    for base in (0, 5, 9, 20, 21):
        fetched = build_batch([record], base_offset=base, partition_leader_epoch=0)
        assert isinstance(log.append_as_follower(fetched, now_ms=NOW_MS), AppendResult)
    manager.abandon()
    assert [base for base, _ in read_back(tmp_path, config)] == [0, 5, 9, 20, 21]


def test_a_clean_start_looks_at_no_record(tmp_path: Path) -> None:
    filled(tmp_path)
    held = read_back(tmp_path)
    damaged = bytearray(log_files(tmp_path)[0].read_bytes())
    damaged[70] ^= 1
    log_files(tmp_path)[0].write_bytes(damaged)
    manager = opened(tmp_path, SEGMENT)
    assert not recovered(manager)
    assert partition_of(manager, SEGMENT).log_end_offset == held[-1][0] + 3
    manager.close()


def test_a_damaged_header_does_not_keep_a_clean_log_from_opening(tmp_path: Path) -> None:
    filled(tmp_path)
    held = read_back(tmp_path)
    last = log_files(tmp_path)[-1]
    damaged = bytearray(last.read_bytes())
    damaged[8] ^= 0x40
    last.write_bytes(damaged)
    with one_log(tmp_path, SEGMENT) as log:
        assert log.log_end_offset == held[-1][0] + 3
        with pytest.raises(StorageError, match=f"{last.name}: byte 0: the batch goes on behind"):
            log.read(log.segment_bases[-1], 100)
        assert log.read(0, 60) == held[0][1]
    # Without the snapshot the producers are to be found in the batches, one of which is bad.
    for path in tmp_path.glob("topic-0/*.snapshot"):
        path.unlink()
    with one_log(tmp_path, SEGMENT) as log:
        (report,) = log.recovery_reports
        assert (report.segment, report.position) == (last.name, 0)
        assert [(h.base_offset, data) for h, data in batches_of(log)] == [
            one for one in held if one[0] < log.segment_bases[-1]
        ]


def test_what_an_interrupted_deletion_left_is_removed(tmp_path: Path) -> None:
    held = filled(tmp_path)
    remnants = ("00000000000000000099.index", "00000000000000000000.log.deleted", "x.cleaned")
    for name in remnants:
        (tmp_path / "topic-0" / name).touch()
    assert read_back(tmp_path) == held
    assert not any((tmp_path / "topic-0" / name).exists() for name in remnants)


def test_values_survive_a_kill_right_after_the_append(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = partition_of(manager)
    log.append(batch([b"a", b"b"]), leader_epoch=0, now_ms=NOW_MS)
    manager.abandon()
    with one_log(tmp_path) as again:
        assert values_of(again) == {0: b"a", 1: b"b"}


def test_batches_farther_back_than_is_looked_for_are_still_known_from_the_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.log.loading._RECALLED_BYTES", 300)
    config = LogConfig(index_interval_bytes=0)
    manager = opened(tmp_path, config)
    log = partition_of(manager, config)
    sent = [batch([b"%d" % number * 50], producer=(7, 0, number)) for number in range(5)]
    for one in sent:
        log.append(one, leader_epoch=0, now_ms=NOW_MS)
    manager.abandon()
    with one_log(tmp_path, config) as log:
        for number, one in enumerate(sent):
            known = log.append(one, leader_epoch=0, now_ms=NOW_MS)
            assert isinstance(known, Duplicate)
            assert known.base_offset == number
