"""A partition's leadership, high watermark and those who wait for it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from broker.led_partition import NotLeader
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.results import AppendResult, BatchRefused
from broker.replication.in_sync import IsrRules
from broker.replication.partition import Partition, Surroundings
from broker.replication.partitions import Partitions
from broker.replication.watching import Waiter
from tests.broker.replication.clocks import HandClock
from tests.broker.rig import NOW_MS, batch, leadership
from wire.errors import ErrorCode


class Listener:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def on_leader(self, partition: object) -> None:
        assert isinstance(partition, Partition)
        self.told.append(("leader", partition.index))

    def on_resigned(self, topic: str, index: int) -> None:
        assert topic == "t"
        self.told.append(("resigned", index))


@pytest.fixture
def alive() -> set[int]:
    return {0, 1, 2}


@pytest.fixture
def partitions(tmp_path: Path, alive: set[int]) -> Iterator[Partitions]:
    logs = LogManager.open(
        [tmp_path],
        broker_id=0,
        cluster_id="c",
        config_of=lambda _: LogConfig(),
        now_ms=NOW_MS,
    )
    rules = IsrRules(lag_time_max_ms=30_000, is_alive=alive.__contains__)
    yield Partitions(0, logs, lambda _: LogConfig(), HandClock(), Surroundings(rules=rules))
    logs.close()


def led(partitions: Partitions) -> Partition:
    partition = partitions.led("t", 0)
    assert partition is not None
    return partition


def append(partition: Partition, value: bytes = b"x") -> int:
    appended = partition.append_from_client(
        memoryview(bytearray(batch(value))), acks=-1, is_fenced=False
    )
    assert isinstance(appended, AppendResult)
    return appended.base_offset


def test_alone_in_sync_everything_written_is_committed(partitions: Partitions) -> None:
    assert partitions.take(leadership(0)) is ErrorCode.NONE
    partition = led(partitions)
    assert [append(partition) for _ in range(3)] == [0, 1, 2]
    assert (partition.high_watermark, partition.log_end_offset) == (3, 3)
    assert partition.leader_epoch == 5


def test_with_another_in_sync_nothing_is_committed_before_it_has_it(
    partitions: Partitions, alive: set[int]
) -> None:
    partitions.take(replace(leadership(0), isr=(0, 1)))
    partition = led(partitions)
    append(partition)
    assert (partition.high_watermark, partition.log_end_offset) == (0, 1)
    partitions.take(replace(leadership(0), isr=(0,), partition_epoch=1))
    assert partition.high_watermark == 0, "it may join again any moment"
    alive.remove(1)
    partition.look_after_isr()
    assert partition.high_watermark == 1


async def test_who_waits_is_woken_when_the_record_is_committed(
    partitions: Partitions,
    alive: set[int],
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001 - a fixture that works by being there
) -> None:
    partitions.take(replace(leadership(0), isr=(0, 1)))
    partition = led(partitions)
    append(partition)
    with trio.move_on_after(60) as patience:
        await partition.wait_committed(0)
    assert patience.cancelled_caught
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partition.wait_committed, 0)
        await trio.testing.wait_all_tasks_blocked()
        alive.remove(1)
        partitions.take(replace(leadership(0), isr=(0,), partition_epoch=1))


async def test_who_waits_learns_that_leadership_is_lost(partitions: Partitions) -> None:
    partitions.take(replace(leadership(0), isr=(0, 1)))
    partition = led(partitions)
    append(partition)
    with pytest.RaisesGroup(NotLeader):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partition.wait_committed, 0)
            await trio.testing.wait_all_tasks_blocked()
            partitions.take(leadership(0, leader=1, epoch=6))
    assert partitions.led("t", 0) is None
    with pytest.raises(NotLeader):
        partition.append_own(batch(b"x"))


async def test_one_wakeup_serves_many_partitions(partitions: Partitions) -> None:
    for index in range(3):
        partitions.take(leadership(index))
    waiter = Waiter()
    held = [partitions.get("t", index) for index in range(3)]
    third = held[2]
    assert third is not None
    with third.waking(waiter):
        append(third)
        with trio.fail_after(60):
            await waiter.wait()
    append(third)
    with trio.move_on_after(0.01) as patience:
        await waiter.wait()
    assert patience.cancelled_caught


def test_an_older_word_of_the_controller_is_ignored(partitions: Partitions) -> None:
    partitions.take(leadership(0, epoch=5))
    assert partitions.take(leadership(0, leader=1, epoch=4)) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert led(partitions).leader_epoch == 5
    assert partitions.obeys(3)
    assert not partitions.obeys(2)
    assert partitions.obeys(3)


def test_a_listener_hears_of_its_topic_only_and_of_every_change(partitions: Partitions) -> None:
    listener = Listener()
    partitions.listen("t", listener)
    partitions.take(leadership(0))
    partitions.take(replace(leadership(0), topic="other"))
    partitions.take(leadership(0, leader=1, epoch=6))
    partitions.take(leadership(0, epoch=7))
    partitions.stop("t", 0, delete=True)
    assert listener.told == [("leader", 0), ("resigned", 0), ("leader", 0), ("resigned", 0)]


def test_a_deleted_partition_leaves_nothing(partitions: Partitions, tmp_path: Path) -> None:
    partitions.take(leadership(0))
    append(led(partitions))
    assert partitions.stop("t", 0, delete=True) is ErrorCode.NONE
    assert partitions.get("t", 0) is None
    assert partitions.stop("t", 0, delete=True) is ErrorCode.NONE
    assert not (tmp_path / "t-0").exists()
    partitions.take(leadership(0, epoch=0))
    assert led(partitions).log_end_offset == 0


def test_a_follower_takes_nothing_from_clients(partitions: Partitions) -> None:
    partitions.take(leadership(0, leader=1))
    assert partitions.led("t", 0) is None
    partition = partitions.get("t", 0)
    assert partition is not None
    assert not partition.is_led_here


def test_a_corrupt_batch_meets_the_fence_before_its_crc_is_looked_at(
    partitions: Partitions,
) -> None:
    partitions.take(leadership(0))
    corrupt = memoryview(bytearray(batch(b"x")[:-1] + b"?"))
    for is_fenced, error in (
        (True, ErrorCode.NOT_ENOUGH_REPLICAS),
        (False, ErrorCode.CORRUPT_MESSAGE),
    ):
        refused = led(partitions).append_from_client(corrupt, acks=1, is_fenced=is_fenced)
        assert isinstance(refused, BatchRefused)
        assert refused.error is error


def test_a_log_found_at_the_start_gets_the_settings_of_now(tmp_path: Path) -> None:
    """They may have changed while the logs were opened, before any replica was held."""
    then, now = LogConfig(), LogConfig(min_insync_replicas=2, retention_ms=-1)
    for settings in (then, now):
        logs = LogManager.open(
            [tmp_path], broker_id=0, cluster_id="c", config_of=lambda _: then, now_ms=NOW_MS
        )
        partitions = Partitions(0, logs, {"t": settings}.__getitem__, HandClock())
        assert partitions.take(leadership(0)) is ErrorCode.NONE
        assert led(partitions).log.config == settings
        logs.close()
