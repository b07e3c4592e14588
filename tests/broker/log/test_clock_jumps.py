"""Who sets the machine's clock moves the stamps of records, and no age and no due time."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.results import Appended, AppendResult, Duplicate
from broker.node import SystemClock
from broker.replication.partition import Partition
from broker.replication.partitions import Partitions
from tests.broker.log.logs import NOW_MS, SMALL, batch, batches_of, opened
from tests.broker.replication.clocks import HandClock
from tests.broker.rig import leadership

DAYS_MS = 3 * 86_400_000
STAMPED = replace(SMALL, message_timestamp_type="LogAppendTime")


def led_by(clock: HandClock, manager: LogManager, config: LogConfig = STAMPED) -> Partition:
    """Return the one partition of a broker that goes by that clock."""
    partitions = Partitions(0, manager, lambda _: config, clock)
    partitions.take(leadership(0))
    partition = partitions.led("t", 0)
    assert partition is not None
    return partition


def append(partition: Partition, sequence: int) -> Appended:
    sent = batch([b"v" * 300], producer=(9, 0, sequence))
    return partition.append_from_client(memoryview(sent), acks=1, is_fenced=False)


def tick(manager: LogManager, clock: HandClock, after_ms: int) -> None:
    """Do what a broker does once a second, so much later."""
    clock.passed_ms += after_ms
    manager.tick(clock.now_ms(), wall_ms=clock.age_ms(), high_watermark=lambda _: 100)


@pytest.mark.parametrize("jump_ms", [DAYS_MS, -DAYS_MS])
def test_a_retry_is_told_from_a_new_batch_after_the_clock_was_set(
    tmp_path: Path, jump_ms: int
) -> None:
    clock, manager = HandClock(), opened(tmp_path)
    partition = led_by(clock, manager)
    assert isinstance(append(partition, 0), AppendResult)
    tick(manager, clock, 1_000)
    clock.set_by_ms = jump_ms
    for _ in range(3):
        tick(manager, clock, 30_000)
    assert isinstance(append(partition, 0), Duplicate)
    tick(manager, clock, 86_400_000)
    assert isinstance(append(partition, 0), AppendResult)  # nobody retries after a day
    manager.close()


def test_what_is_due_goes_on_after_the_clock_was_set_back(tmp_path: Path) -> None:
    clock, manager = HandClock(), opened(tmp_path)
    partition = led_by(clock, manager)
    append(partition, 0)
    tick(manager, clock, 1_000)
    clock.set_by_ms = -DAYS_MS
    partition.log.advance_log_start(1)
    tick(manager, clock, 60_000)
    assert "t 0 1" in (tmp_path / "log-start-offset-checkpoint").read_text()
    manager.close()


def test_records_are_stamped_by_the_clock_and_go_by_it_when_it_stays_so(tmp_path: Path) -> None:
    clock, manager = HandClock(), opened(tmp_path)
    partition = led_by(clock, manager)
    clock.set_by_ms = DAYS_MS
    for sequence in range(4):
        append(partition, sequence)
    stamps = [header.max_timestamp for header, _ in batches_of(partition.log)]
    assert stamps == [NOW_MS + DAYS_MS] * 4
    tick(manager, clock, 1_000)
    clock.set_by_ms = DAYS_MS + STAMPED.retention_ms
    for _ in range(12):
        tick(manager, clock, 300_000)
        assert partition.log.log_start_offset == 0
    tick(manager, clock, 300_000)
    assert partition.log.log_start_offset == 4
    manager.close()


def test_records_outlast_a_clock_set_forward_by_mistake(tmp_path: Path) -> None:
    clock, manager = HandClock(), opened(tmp_path)
    partition = led_by(clock, manager)
    append(partition, 0)
    tick(manager, clock, 1_000)
    for set_by_ms in (300 * DAYS_MS, 0):
        clock.set_by_ms = set_by_ms
        for _ in range(11):
            tick(manager, clock, 300_000)
    assert partition.log.log_start_offset == 0
    manager.close()


def test_the_systems_clock_of_ages_stays_when_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    before_ms, true_ns = clock.now_ms(), time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: true_ns + DAYS_MS * 1_000_000)
    assert before_ms <= clock.now_ms() < before_ms + DAYS_MS // 2
    assert clock.wall_ms() == true_ns // 1_000_000 + DAYS_MS
