"""A crash at any file operation of a compaction leaves the old records or the new ones."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker.log.cleaning import Cleaning
from broker.log.partition_log import PartitionLog
from broker.log.swapping import sync_folder
from tests.broker.log.cleaning import COMPACTED, add, batches_left, clean
from tests.broker.log.logs import NOW_MS, batch, marker, opened, partition_of
from wire.record_batch import Record, iterate_records

Content = list[bytes]


class CrashedError(Exception):
    """The process is gone: nothing it does reaches the disk any more."""


def filled(folder: Path) -> None:
    """Leave a log of several segments, of which two cleanings make fewer."""
    manager = opened(folder, COMPACTED)
    log = partition_of(manager, COMPACTED)
    for number in range(40):
        add(log, batch([b"v" * 10], keys=[b"%d" % (number % 7)], producer=(number % 3, 0, 0)))
        if number % 10 == 5:
            add(log, batch([b"no"], keys=[b"0"], producer=(9, 0, 0), is_transactional=True))
            add(log, marker(9, is_abort=True))
    clean(log)
    manager.close()


def records(batches: Content) -> list[Record]:
    return [record for data in batches for record in iterate_records(data)]


def content(log: PartitionLog) -> Content:
    return [data for _, data in batches_left(log)]


def crashing(monkeypatch: pytest.MonkeyPatch, survives: int) -> None:
    """Let that many renames and removals of the compaction succeed, and none after them."""
    left = survives

    def guarded(real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(path: Path, *arguments: object, **options: object) -> object:
            nonlocal left
            if "topic-0" not in str(path):
                return real(path, *arguments, **options)
            if left == 0:
                raise CrashedError
            left -= 1
            return real(path, *arguments, **options)

        return operation

    monkeypatch.setattr(Path, "rename", guarded(Path.rename))
    monkeypatch.setattr(Path, "unlink", guarded(Path.unlink))


def after_a_crash(folder: Path, survives: int) -> tuple[bool, Content, Content]:
    """Clean until the crash; return whether there was one, and the content before and after."""
    manager = opened(folder, COMPACTED)
    log = partition_of(manager, COMPACTED)
    before = content(log)
    has_crashed = False
    with pytest.MonkeyPatch.context() as patched:
        crashing(patched, survives)
        try:
            clean(log)
        except CrashedError:
            has_crashed = True
    manager.abandon()
    again = opened(folder, COMPACTED)
    after = content(partition_of(again, COMPACTED))
    end = partition_of(again, COMPACTED).log_end_offset
    assert end == log.log_end_offset
    again.close()
    names = [path.name for path in (folder / "topic-0").iterdir()]
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
    return has_crashed, before, after


def test_a_crash_anywhere_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    filled(tmp_path / "filled")
    shutil.copytree(tmp_path / "filled", tmp_path / "whole")
    has_crashed, _, done = after_a_crash(tmp_path / "whole", 10_000)
    assert not has_crashed
    states = set()
    for survives in range(10_000):
        folder = tmp_path / str(survives)
        shutil.copytree(tmp_path / "filled", folder)
        has_crashed, before, after = after_a_crash(folder, survives)
        assert set(after) <= {*before, *done}
        assert set(records(done)) <= set(records(after))
        states.add("old" if after == before else "new" if after == done else "between")
        shutil.rmtree(folder)
        if not has_crashed:
            break
    assert survives > 10
    assert {"old", "new"} <= states


def test_what_was_replaced_is_removed_by_who_may_wait(tmp_path: Path) -> None:
    """Nor does the cleaning hold it open: the loop would remove it with the last descriptor."""
    filled(tmp_path)
    manager = opened(tmp_path, COMPACTED)
    log = partition_of(manager, COMPACTED)
    for number in range(20):
        add(log, batch([b"v" * 10], keys=[b"%d" % (number % 7)]))
    plan = log.cleanable(None, high_watermark=log.log_end_offset, now_ms=NOW_MS)
    swapped = 0
    for slow in Cleaning(log, plan, slots=100, now_ms=NOW_MS).steps():
        if slow is not None:
            slow()
        if isinstance(slow, partial) and slow.func is sync_folder:
            swapped += 1
            links = [one for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
            assert not [one for one in links if str(one.readlink()).endswith(".log.deleted")]
    assert len(list(log.folder.glob("*.log.deleted"))) > swapped > 0
    for pending in manager.tick(NOW_MS):
        pending.run()
        pending.finish()
    assert not list(log.folder.glob("*.deleted"))
    manager.close()


def test_a_swap_that_was_half_renamed_is_completed(tmp_path: Path) -> None:
    """What Apache Kafka leaves when it dies between two renames of its last step."""
    filled(tmp_path)
    manager = opened(tmp_path, COMPACTED)
    before = content(partition_of(manager, COMPACTED))
    manager.close()
    folder = tmp_path / "topic-0"
    first = min(folder.glob("*.log"))
    first.with_suffix(".index").rename(folder / f"{first.stem}.index.swap")
    first.with_suffix(".timeindex").rename(folder / f"{first.stem}.timeindex.swap")
    again = opened(tmp_path, COMPACTED)
    assert content(partition_of(again, COMPACTED)) == before
    assert first.with_suffix(".index").exists()
    again.close()


def test_a_swap_before_its_last_file_got_its_name_is_undone(tmp_path: Path) -> None:
    filled(tmp_path)
    manager = opened(tmp_path, COMPACTED)
    before = content(partition_of(manager, COMPACTED))
    manager.close()
    folder = tmp_path / "topic-0"
    first = min(folder.glob("*.log"))
    (folder / f"{first.name}.swap").write_bytes(b"")
    (folder / f"{first.stem}.index.cleaned").write_bytes(b"")
    again = opened(tmp_path, COMPACTED)
    assert content(partition_of(again, COMPACTED)) == before
    again.close()


def test_epochs_and_end_survive_a_cleaning(tmp_path: Path) -> None:
    manager = opened(tmp_path, COMPACTED)
    log = partition_of(manager, COMPACTED)
    for epoch in range(4):
        log.assign_leader_epoch(epoch)
        done = batch([b"v" * 100] * 3, keys=[b"a", b"b", b"c"])
        log.append(done, leader_epoch=epoch, now_ms=NOW_MS)
    log.roll(NOW_MS)
    ends = [log.end_offset_for_epoch(epoch) for epoch in range(4)]
    clean(log)
    manager.abandon()
    again = opened(tmp_path, COMPACTED)
    log = partition_of(again, COMPACTED)
    assert [log.end_offset_for_epoch(epoch) for epoch in range(4)] == ends
    assert log.log_end_offset == 12
    again.close()
