"""Brokers' data lies in memory where there is enough of it, and never longer than its benchmark."""

import fcntl
from pathlib import Path

from tests.bench.in_memory import LOCK, PREFIX, data_place, sweep


def test_it_is_in_memory_until_the_benchmark_ends(tmp_path: Path) -> None:
    with data_place(tmp_path / "disk", data_mb=1, processes_mb=1, memory=tmp_path) as place:
        assert (place.folder.parent, place.told) == (tmp_path, "in memory")
        (place.folder / "segment").write_bytes(b"data")
        sweep(tmp_path)
        assert (place.folder / "segment").exists(), "another benchmark leaves it alone"
    assert not place.folder.exists()


def test_too_little_memory_or_none_is_named_and_the_disk_taken(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    for memory, data_mb, processes_mb, reason in (
        (tmp_path / "none", 1, 1, "No such file"),
        (tmp_path, 10**9, 1, "too little disk for"),
        (tmp_path, 1, 10**9, "too little memory: 1000000001 MB needed"),
    ):
        with data_place(disk, data_mb=data_mb, processes_mb=processes_mb, memory=memory) as place:
            assert place.folder == disk
            assert place.told.startswith("on disk: ")
            assert reason in place.told
        assert not list(tmp_path.glob(f"{PREFIX}*"))


def test_what_a_killed_benchmark_left_is_swept_and_what_one_uses_is_not(tmp_path: Path) -> None:
    left, used, other = (tmp_path / name for name in (f"{PREFIX}left", f"{PREFIX}used", "other"))
    for folder in (left, used, other):
        (folder / "logs").mkdir(parents=True)
        (folder / LOCK).touch()
    with (used / LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{PREFIX}used", "other"]
