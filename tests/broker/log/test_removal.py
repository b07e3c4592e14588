"""Logs that are deleted together go without holding the broker up."""

import os
import shutil
from pathlib import Path
from typing import cast

import pytest

from broker.apis import stop_replica
from broker.context import Call, Node
from broker.log import checkpoints, removal
from tests.broker.log.logs import opened, partition_of
from tests.broker.rig import NOW_MS, LoneNode, batch, config
from wire.errors import ErrorCode
from wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from wire.topic_partition import TopicPartition

COUNT = 30
MINUTE_MS = 60_000
RECOVERY_POINTS = checkpoints.RECOVERY_POINTS


def node_with_saved_logs(folder: Path) -> LoneNode:
    """Return a node that leads partitions of `t` whose checkpoints speak of them."""
    node = LoneNode(folder, config())
    for index in range(COUNT):
        node.lead(index)
        log = node.logs.logs[TopicPartition("t", index)]
        log.append(batch(b"v"), leader_epoch=5, now_ms=NOW_MS)
        log.flush()
    node.logs.tick(NOW_MS)
    node.logs.tick(NOW_MS + MINUTE_MS)
    return node


async def delete_all(node: LoneNode, *, controller_epoch: int = 1) -> list[int]:
    states = tuple(
        StopReplicaPartitionState(partition_index=index, leader_epoch=-2, delete_partition=True)
        for index in range(COUNT)
    )
    request = StopReplicaRequest(
        controller_id=0,
        controller_epoch=controller_epoch,
        broker_epoch=-1,
        topic_states=(StopReplicaTopicState(topic_name="t", partition_states=states),),
    )
    call = Call(
        node=cast("Node", node),
        api_version=4,
        client_id="controller",
        client_host="127.0.0.1",
        is_broker=True,
    )
    answer = await stop_replica.handle(request, call)
    return [error.error_code for error in answer.partition_errors]


async def test_many_logs_are_deleted_with_a_few_fsyncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = node_with_saved_logs(tmp_path)
    saved = checkpoints.read_offsets(tmp_path / "logs" / RECOVERY_POINTS)
    assert len(saved) == COUNT
    synced: list[int] = []
    fsync = os.fsync

    def counted(descriptor: int) -> None:
        synced.append(descriptor)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", counted)
    assert await delete_all(node) == [ErrorCode.NONE] * COUNT
    assert len(synced) <= 4
    assert not node.logs.logs
    assert not checkpoints.read_offsets(tmp_path / "logs" / RECOVERY_POINTS)
    node.logs.close()


async def test_folders_of_deleted_logs_are_removed_by_who_may_wait(tmp_path: Path) -> None:
    node = node_with_saved_logs(tmp_path)
    await delete_all(node)
    node.logs.tick(NOW_MS + MINUTE_MS)
    doomed = list((tmp_path / "logs").glob("*-delete"))
    assert len(doomed) == COUNT
    node.logs.abandon()
    again = LoneNode(tmp_path, config())
    rounds = [again.logs.tick(NOW_MS), again.logs.tick(NOW_MS), again.logs.tick(NOW_MS)]
    assert [len(due) for due in rounds] == [removal.REMOVED_AT_ONCE, 10, 0]
    for pending in [*rounds[0], *rounds[1]]:
        pending.run()
        pending.finish()
    assert not list((tmp_path / "logs").glob("*-delete"))
    again.logs.close()


async def test_folders_that_somebody_else_removes_are_no_failed_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who needs the room at once does not wait until it is their turn."""
    node = node_with_saved_logs(tmp_path)
    await delete_all(node)
    due = node.logs.tick(NOW_MS + MINUTE_MS)
    first, second, *_ = sorted((tmp_path / "logs").glob("*-delete"))
    shutil.rmtree(first)
    rmdir = os.rmdir

    def too_late(path: str, *, dir_fd: int | None = None) -> None:
        monkeypatch.undo()
        rmdir(path, dir_fd=dir_fd)
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "rmdir", too_late)
    for pending in due:
        pending.run()
        pending.finish()
    assert not second.exists()
    assert not node.logs.offline
    node.logs.close()


def test_a_log_that_begins_anew_leaves_its_segments_to_who_may_wait(tmp_path: Path) -> None:
    """As a follower's that was away for longer than its leader keeps records."""
    manager = opened(tmp_path)
    log = partition_of(manager)
    for _ in range(30):
        log.append(batch(b"v" * 100), leader_epoch=1, now_ms=NOW_MS)
    count = len(log.segment_bases)
    log.truncate_fully_and_start_at(100, now_ms=NOW_MS)
    assert len(list(log.folder.glob("*.log.deleted"))) == count > 1
    for pending in manager.tick(NOW_MS):
        pending.run()
        pending.finish()
    assert not list(log.folder.glob("*.deleted"))
    assert log.segment_bases == (100,)
    manager.close()


def test_segments_that_retention_takes_are_removed_by_who_may_wait(tmp_path: Path) -> None:
    """A gigabyte takes a disk a while, and nobody is answered in the meantime."""
    manager = opened(tmp_path)
    log = partition_of(manager)
    for _ in range(30):
        log.append(batch(b"v" * 100), leader_epoch=1, now_ms=NOW_MS)
    count = len(log.segment_bases) - 2
    min(log.folder.glob("*.log")).unlink()  # by hand, as the disk was full
    log.advance_log_start(log.segment_bases[-1])
    manager.tick(NOW_MS)
    due = manager.tick(NOW_MS + 5 * MINUTE_MS)
    assert len(log.segment_bases) == 1
    assert len(list(log.folder.glob("*.log.deleted"))) == count
    assert len(list(log.folder.glob("*index"))) == 2
    assert not manager.offline
    for pending in due[:-1]:
        pending.run()
        pending.finish()
    assert len(list(log.folder.glob("*.log.deleted"))) == 1
    manager.abandon()
    again = partition_of(opened(tmp_path))
    assert not list(again.folder.glob("*.deleted"))
    assert (again.log_start_offset, again.log_end_offset) == (log.log_start_offset, 30)
