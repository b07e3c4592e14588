"""The log folders of a broker: whose they are, what is in them, what fails alone."""

import fcntl
import logging
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from broker.log.config import LogConfig
from broker.log.directory import DELETED, STRAY, folder_name, name_aside, parse_folder_name
from broker.log.log_manager import LogManager
from broker.log.results import AppendResult, StorageError
from tests.broker.log.logs import NOW_MS, SMALL, batch, opened, partition_of, values_of
from wire.topic_partition import TopicPartition

TOPIC_ID = bytes(range(16))
MINUTE_MS = 60_000


def test_logs_come_back_with_everything(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    for topic, count in (("a", 3), ("b-c", 30), ("empty", 0)):
        log = manager.create(topic, 2, topic_id=TOPIC_ID, config=SMALL, now_ms=NOW_MS)
        for number in range(count):
            log.append(batch([b"%d" % number]), leader_epoch=5, now_ms=NOW_MS)
    log.advance_log_start(0)
    manager.get("b-c", 2).advance_log_start(7)  # type: ignore[union-attr]
    manager.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    again = opened(tmp_path)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert sorted(again.logs) == [("a", 2), ("b-c", 2), ("empty", 2)]
    log = again.logs[TopicPartition("b-c", 2)]
    assert (log.log_start_offset, log.log_end_offset) == (7, 30)
    assert (log.topic_id, log.latest_leader_epoch) == (TOPIC_ID, 5)
    assert list(values_of(log)) == list(range(7, 30))
    again.close()


def test_more_segments_are_opened_than_files_may_be(tmp_path: Path) -> None:
    """The system's usual limit is 1,024, which a broker of some hundred partitions has soon."""
    manager = opened(tmp_path)
    for index in range(40):
        log = manager.create("t", index, topic_id=TOPIC_ID, config=SMALL, now_ms=NOW_MS)
        for _ in range(5):
            log.append(batch([b"v" * 200]), leader_epoch=5, now_ms=NOW_MS)
        assert len(log.segment_bases) > 1
    manager.close()
    del manager, log
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = sum(1 for _ in Path("/proc/self/fd").iterdir()) + 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    try:
        again = opened(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert {log.log_end_offset for log in again.logs.values()} == {5}
    again.close()


def test_creating_what_is_there_returns_it_unless_it_is_of_another_topic(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create("t", 0, topic_id=None, config=SMALL, now_ms=NOW_MS)
    assert manager.create("t", 0, topic_id=TOPIC_ID, config=SMALL, now_ms=NOW_MS) is log
    assert log.topic_id == TOPIC_ID
    with pytest.raises(StorageError, match=r"partition\.metadata: is of topic id 0001"):
        manager.create("t", 0, topic_id=bytes(16), config=SMALL, now_ms=NOW_MS)
    manager.close()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../up", "a\0b", "ä", "x" * 250, "a b"])
def test_a_topic_name_that_would_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    manager = opened(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="is not a topic name"):
        manager.create(name, 0, topic_id=None, config=SMALL, now_ms=NOW_MS)
    assert sorted(tmp_path.rglob("*")) == before
    manager.close()


def test_folder_names_are_kafkas() -> None:
    assert folder_name("a-1.b", 12) == "a-1.b-12"
    assert parse_folder_name("a-1.b-12") == ("a-1.b", 12)
    for other in ("topic", "-1", "a-b", "a-1.abc-delete", "a-1.abc-future", ".lock"):
        assert parse_folder_name(other) is None
    for kind in (DELETED, STRAY):
        assert len(name_aside("x" * 249 + "-12345", kind)) == 255
        assert parse_folder_name(name_aside("a-1", kind)) is None


def test_a_deleted_log_is_gone_and_its_name_begins_anew(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = partition_of(manager)
    for _ in range(5):
        log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
    log.advance_log_start(4)
    log.flush()
    manager.tick(NOW_MS)
    manager.tick(NOW_MS + MINUTE_MS)
    manager.delete("topic", 0)
    assert manager.get("topic", 0) is None
    (doomed,) = tmp_path.glob("*-delete")
    assert doomed.name.startswith("topic-0.")
    fresh = partition_of(manager)
    assert fresh.log_end_offset == 0
    fresh.append(batch([b"new"]), leader_epoch=0, now_ms=NOW_MS)
    for pending in manager.tick(NOW_MS + MINUTE_MS):
        pending.run()
        pending.finish()
    assert not doomed.exists()
    # What was saved about the deleted log must not be held against the new one.
    manager.abandon()
    again = opened(tmp_path)
    assert values_of(partition_of(again)) == {0: b"new"}
    again.close()


def test_a_deletion_cut_short_is_finished_at_the_next_start(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    partition_of(manager)
    manager.delete("topic", 0)
    manager.abandon()
    again = opened(tmp_path)
    assert not again.logs
    (removal,) = again.tick(NOW_MS)
    assert list(tmp_path.glob("*-delete"))
    removal.run()
    removal.finish()
    assert not list(tmp_path.glob("*-delete"))
    again.close()


def test_logs_are_spread_over_the_folders(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    manager = LogManager.open(
        folders, broker_id=1, cluster_id="c", config_of=lambda _: SMALL, now_ms=NOW_MS
    )
    for partition in range(4):
        manager.create("t", partition, topic_id=None, config=SMALL, now_ms=NOW_MS)
    manager.close()
    assert [len(list(folder.glob("t-*"))) for folder in folders] == [2, 2]


def test_a_folder_that_fails_takes_down_only_what_lies_on_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    manager = LogManager.open(
        folders, broker_id=1, cluster_id="c", config_of=lambda _: SMALL, now_ms=NOW_MS
    )
    logs = [
        manager.create("t", partition, topic_id=None, config=SMALL, now_ms=NOW_MS)
        for partition in range(2)
    ]
    for log in logs:
        log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
    bad, good = logs
    # A folder in the place of the next segment's file: the roll cannot open it.
    (bad.folder / f"{1:020d}.log").mkdir()
    with pytest.raises(StorageError, match="t-0: Is a directory"):
        bad.roll(NOW_MS)
    good.roll(NOW_MS)
    with caplog.at_level(logging.ERROR):
        manager.tick(NOW_MS)
        manager.tick(NOW_MS)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"log folder {folders[0]} is offline until a restart: ")
    assert [manager.may_be_offline("t", partition) for partition in range(2)] == [True, False]
    done = good.append(batch(), leader_epoch=0, now_ms=NOW_MS)
    assert isinstance(done, AppendResult)
    fresh = manager.create("u", 0, topic_id=None, config=SMALL, now_ms=NOW_MS)
    assert fresh.folder.parent == folders[1]
    manager.close()
    assert [(folder / ".kafka_cleanshutdown").exists() for folder in folders] == [False, True]


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    with pytest.raises(StorageError) as raised:
        opened(tmp_path)
    assert str(raised.value) == f"{tmp_path}: is in use by another broker process"
    manager.close()
    opened(tmp_path).close()


JAVA_LIKE_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""


def test_a_folder_that_a_java_broker_locked_is_refused(tmp_path: Path) -> None:
    """Java locks with fcntl's record locks, which flock does not see."""
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            JAVA_LIKE_LOCK,
            str(tmp_path / ".lock"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(StorageError, match="is in use by another broker process"):
        opened(tmp_path)
    holder.communicate()
    opened(tmp_path).close()


def test_a_folder_of_another_broker_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(StorageError) as raised:
        LogManager.open(
            [tmp_path], broker_id=2, cluster_id="test", config_of=lambda _: SMALL, now_ms=0
        )
    assert str(raised.value) == (
        f"{tmp_path / 'meta.properties'}: belongs to broker 1 of cluster test, "
        "not to broker 2 of cluster test"
    )
    opened(tmp_path).close()


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file/logs: Not a directory"):
        opened(tmp_path / "file" / "logs")


def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        read_only = Path("/proc/self/fdinfo")  # the superuser may write anywhere else
        expected = f"{read_only}: "
    else:
        read_only = tmp_path / "logs"
        read_only.mkdir(mode=0o555)
        expected = f"{read_only}: Permission denied"
    with pytest.raises(StorageError) as raised:
        opened(read_only)
    assert str(raised.value).startswith(expected)


def test_one_partition_in_two_folders_is_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        manager = opened(tmp_path / folder)
        partition_of(manager)
        manager.close()
    with pytest.raises(StorageError, match="topic-0 is in two log folders"):
        LogManager.open(
            [tmp_path / "a", tmp_path / "b"],
            broker_id=1,
            cluster_id="test",
            config_of=lambda _: SMALL,
            now_ms=NOW_MS,
        )


def test_a_tick_deletes_by_retention_below_the_high_watermark(tmp_path: Path) -> None:
    config = replace(SMALL, retention_ms=1000)
    manager = opened(tmp_path, config)
    log = partition_of(manager, config)
    for _ in range(20):
        log.append(batch([b"v" * 50]), leader_epoch=0, now_ms=NOW_MS)
    bases = log.segment_bases
    manager.tick(NOW_MS, high_watermark=lambda _: bases[2])
    manager.tick(NOW_MS + 5 * MINUTE_MS, high_watermark=lambda _: bases[2])
    assert log.segment_bases == bases[2:]
    manager.tick(NOW_MS + 10 * MINUTE_MS)
    assert (log.log_start_offset, log.segment_bases, log.size_bytes) == (20, (20,), 0)
    manager.close()


def test_a_tick_returns_the_fsync_of_sealed_segments(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = partition_of(manager)
    log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
    assert not manager.tick(NOW_MS)
    log.roll(NOW_MS)
    (pending,) = manager.tick(NOW_MS)
    pending.run()
    assert log.recovery_point == 0
    pending.finish()
    assert log.recovery_point == 1
    assert not manager.tick(NOW_MS)
    manager.close()


def open_segments(folder: Path) -> int:
    """Count this process's descriptors of segments in a folder."""
    links = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum(link.startswith(f"{folder}/") and link.endswith(".log") for link in links)


def test_an_idle_log_holds_no_file(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    logs = [
        manager.create("t", partition, topic_id=None, config=LogConfig(), now_ms=NOW_MS)
        for partition in range(20)
    ]
    for log in logs:
        log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
    assert open_segments(tmp_path) == 20
    for number in range(4):
        manager.tick(NOW_MS + number * 30_000)
    assert open_segments(tmp_path) == 0
    assert values_of(logs[3]) == {0: b"value"}
    manager.close()


def test_the_lock_is_held_until_the_end(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    with (tmp_path / ".lock").open("w") as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        manager.close()
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
