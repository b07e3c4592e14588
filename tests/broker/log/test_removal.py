"""Logs that are deleted together go without holding the broker up."""

import os
import shutil
from pathlib import Path
from typing import cast

import pytest

from broker.apis import stop_replica
from broker.context import Call, Node
from broker.log import checkpoints, removal
from broker.log.results import TopicPartition
from tests.broker.rig import NOW_MS, LoneNode, batch, config
from wire.errors import ErrorCode
from wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)

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
        node=cast("Node", node), api_version=4, client_id="controller", client_host="127.0.0.1"
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
