"""Log folders that are dead when the broker starts: the others are opened, nothing is made anew."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from broker.led_partition import LedPartition
from broker.log.log_manager import LogManager
from broker.log.results import FolderRefused, StorageError
from broker.replication.partitions import Partitions
from tests.broker.log.logs import NOW_MS, SMALL, batch
from tests.broker.replication.clocks import HandClock
from tests.broker.rig import leadership
from wire.errors import ErrorCode


def opened(folders: Sequence[Path], *, broker_id: int = 0) -> LogManager:
    return LogManager.open(
        folders, broker_id=broker_id, cluster_id="c", config_of=lambda _: SMALL, now_ms=NOW_MS
    )


def replicas_on(manager: LogManager) -> Partitions:
    return Partitions(0, manager, lambda _: SMALL, HandClock())


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Return two folders that hold t-0 and t-1, with one record each."""
    made = [tmp_path / "a", tmp_path / "b"]
    manager = opened(made)
    partitions = replicas_on(manager)
    for index in range(2):
        assert partitions.take(leadership(index), is_new=True) is ErrorCode.NONE
        log = manager.get("t", index)
        assert log is not None
        log.append(batch(), leader_epoch=5, now_ms=NOW_MS)
    manager.close()
    return made


def is_a_file(folder: Path) -> None:
    folder.rename(folder.with_suffix(".away"))
    folder.touch()


def is_full(folder: Path) -> None:
    (folder / ".probe").symlink_to("/dev/full")


def does_not_say_whose_it_is(folder: Path) -> None:
    (folder / "meta.properties").write_bytes(b"\0" * 40)


def does_not_give_a_segment(folder: Path) -> None:
    segment = folder / "t-1" / f"{0:020}.log"
    segment.unlink()
    segment.mkdir()


DEATHS: dict[Callable[[Path], None], str] = {
    is_a_file: "b: Not a directory",
    is_full: "b: No space left on device",
    does_not_say_whose_it_is: "meta.properties: version, broker.id or cluster.id is missing",
    does_not_give_a_segment: "t-1: Is a directory",
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_dead_folder_is_said_in_one_line_and_the_others_are_served(
    folders: list[Path], death: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    death(folders[1])
    with caplog.at_level(logging.WARNING):
        manager = opened(folders)
        manager.tick(NOW_MS)
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert line.startswith(f"log folder {folders[1]} is offline until a restart: ")
    assert DEATHS[death] in line
    assert [folder.is_offline for folder in manager.by_folder()] == [False, True]
    partitions = replicas_on(manager)
    assert partitions.take(leadership(0)) is ErrorCode.NONE
    assert partitions.take(leadership(1)) is ErrorCode.KAFKA_STORAGE_ERROR
    held = partitions.led("t", 0)
    assert held is not None
    assert held.log_end_offset == 1
    partitions.save_high_watermarks()
    manager.close()


def test_what_may_lie_on_a_dead_folder_is_neither_made_anew_nor_said_to_be_deleted(
    folders: list[Path],
) -> None:
    is_a_file(folders[1])
    manager = opened(folders)
    partitions = replicas_on(manager)
    assert partitions.take(leadership(1)) is ErrorCode.KAFKA_STORAGE_ERROR
    later = replace(leadership(1), leader_epoch=6)
    assert partitions.take(later, is_new=True) is ErrorCode.KAFKA_STORAGE_ERROR
    assert partitions.stop("t", 1, delete=True) is ErrorCode.KAFKA_STORAGE_ERROR
    assert partitions.take(leadership(2), is_new=True) is ErrorCode.NONE
    manager.close()
    assert sorted(path.name for path in folders[0].glob("t-*")) == ["t-0", "t-2"]
    folders[1].unlink()
    folders[1].with_suffix(".away").rename(folders[1])
    again = opened(folders)
    found = replicas_on(again)
    assert [found.take(leadership(index, epoch=7)) for index in range(3)] == [ErrorCode.NONE] * 3
    assert [log.log_end_offset for _, log in sorted(again.logs.items())] == [1, 1, 0]
    again.close()


def test_without_a_living_folder_nothing_starts(folders: list[Path]) -> None:
    for folder in folders:
        is_a_file(folder)
    with pytest.raises(StorageError, match=r"/a: Not a directory; no log folder is left$"):
        opened(folders)


def test_somebody_elses_folder_is_refused_however_many_others_there_are(
    folders: list[Path],
) -> None:
    with pytest.raises(FolderRefused, match="belongs to broker 0 of cluster c, not to broker 7"):
        opened([folders[0].with_name("fresh"), folders[1]], broker_id=7)
    opened(folders).close()


class Told:
    """Notes what a coordinator is told."""

    def __init__(self) -> None:
        self.leads: set[int] = set()

    def on_leader(self, partition: LedPartition) -> None:
        self.leads.add(partition.index)

    def on_resigned(self, topic: str, index: int) -> None:
        assert topic == "t"
        self.leads.discard(index)


def test_what_lies_on_a_folder_that_fails_is_coordinated_here_no_longer(
    folders: list[Path],
) -> None:
    manager = opened(folders)
    partitions, told = replicas_on(manager), Told()
    partitions.listen("t", told)
    for index in range(2):
        assert partitions.take(leadership(index)) is ErrorCode.NONE
    log = manager.get("t", 1)
    assert log is not None
    manager.blame(log, OSError(5, "Input/output error"))
    assert partitions.take(leadership(1, leader=9, epoch=6)) is ErrorCode.KAFKA_STORAGE_ERROR
    for _ in range(2):  # told again while ZooKeeper cannot be
        partitions.folders_failed()
        assert told.leads == {0}
