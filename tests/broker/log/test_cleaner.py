"""Which log is compacted when, and that compacting gives way to everything else."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.log.checkpoints import CLEANER_OFFSETS, read_offsets
from broker.log.cleaner import CleanerSettings, LogCleaner
from broker.log.cleaning_plan import SegmentShape, cleanable, first_dirty_offset, grouped
from broker.log.compaction import CleaningRules, compact_batch
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.partition_log import PartitionLog
from broker.log.segment import Segment
from broker.log.skimpy_offset_map import ENTRY_BYTES
from broker.log.swapping import sync_cleaned
from tests.broker.log.cleaning import COMPACTED, add, records_of
from tests.broker.log.logs import NOW_MS, SMALL, batch
from wire.record_batch import BatchHeader
from wire.topic_partition import TopicPartition

RATIO = replace(COMPACTED, segment_bytes=10_000, min_cleanable_dirty_ratio=0.5)


def opened(folder: Path, configs: Mapping[str, LogConfig]) -> LogManager:
    return LogManager.open(
        [folder], broker_id=1, cluster_id="test", config_of=configs.__getitem__, now_ms=NOW_MS
    )


def created(manager: LogManager, topic: str, config: LogConfig) -> PartitionLog:
    return manager.create(topic, 0, topic_id=None, config=config, now_ms=NOW_MS)


def fill(log: PartitionLog, count: int) -> None:
    for number in range(count):
        add(log, batch([b"v" * 20], keys=[b"%d" % (number % 3)]))
    log.roll(NOW_MS)
    add(log, batch([b"end"], keys=[b"end"]))


def damage(log: PartitionLog) -> None:
    path = log.sealed_segments()[0].path
    data = bytearray(path.read_bytes())
    data[61] = 0xFF
    path.write_bytes(data)


def cleaner(manager: LogManager, settings: CleanerSettings | None = None) -> LogCleaner:
    return LogCleaner(
        manager,
        settings or CleanerSettings(),
        high_watermark=lambda name: manager.logs[name].log_end_offset,
        now_ms=lambda: NOW_MS,
    )


async def test_the_dirtiest_log_is_compacted_first_and_each_once(tmp_path: Path) -> None:
    configs = {"half": RATIO, "all": RATIO, "plain": SMALL}
    manager = opened(tmp_path, configs)
    half, every, plain = (created(manager, name, config) for name, config in configs.items())
    fill(half, 10)
    manager.note_cleaned(half, 10)
    for log in (half, every, plain):
        fill(log, 20)
    compacting = cleaner(manager)
    assert await compacting.clean_filthiest()
    assert len(records_of(every)) == 4
    assert len(records_of(half)) == 32
    assert await compacting.clean_filthiest()
    # Records of a clean part that the dirty part superseded are gone as well.
    assert len(records_of(half)) == 1 + 4
    assert not await compacting.clean_filthiest()
    assert len(records_of(plain)) == 21
    assert read_offsets(tmp_path / CLEANER_OFFSETS) == {("half", 0): 31, ("all", 0): 20}
    manager.close()


async def test_a_restart_goes_on_where_the_last_cleaning_ended(tmp_path: Path) -> None:
    manager = opened(tmp_path, {"all": RATIO})
    fill(created(manager, "all", RATIO), 20)
    assert await cleaner(manager).clean_filthiest()
    manager.close()
    again = opened(tmp_path, {"all": RATIO})
    assert not await cleaner(again).clean_filthiest()
    again.get("all", 0).truncate_to(10, now_ms=NOW_MS)  # type: ignore[union-attr]
    assert read_offsets(tmp_path / CLEANER_OFFSETS)[TopicPartition("all", 0)] <= 10
    again.close()


async def test_a_log_that_changes_meanwhile_is_left_and_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.log.cleaner.SLICE_S", 0.0)
    manager = opened(tmp_path, {"all": COMPACTED})
    log = created(manager, "all", COMPACTED)
    fill(log, 60)
    compacting = cleaner(manager)
    results: list[bool] = []

    async def clean() -> None:
        results.append(await compacting.clean_filthiest())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(clean)
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        log.truncate_to(40, now_ms=NOW_MS)
    assert results == [False]
    assert not list(tmp_path.glob("*/*.cleaned"))
    before = len(records_of(log))
    log.roll(NOW_MS)
    assert await compacting.clean_filthiest()
    assert len(records_of(log)) < before
    manager.close()


async def test_a_deleted_log_ends_its_cleaning_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.log.cleaner.SLICE_S", 0.0)
    manager = opened(tmp_path, {"all": COMPACTED})
    fill(created(manager, "all", COMPACTED), 60)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cleaner(manager).clean_filthiest)
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        manager.delete("all", 0)
    assert not manager.offline
    manager.close()


@pytest.mark.parametrize("is_made_anew", [False, True])
async def test_a_log_deleted_during_an_fsync_takes_nothing_else_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_made_anew: bool
) -> None:
    manager = opened(tmp_path, {"all": COMPACTED})
    fill(created(manager, "all", COMPACTED), 60)

    def delete() -> None:
        manager.delete("all", 0)
        if is_made_anew:
            created(manager, "all", COMPACTED)

    def sync_late(segment: Segment, modified_ns: int) -> None:
        trio.from_thread.run_sync(delete)
        sync_cleaned(segment, modified_ns)

    monkeypatch.setattr("broker.log.cleaning.sync_cleaned", sync_late)
    assert not await cleaner(manager).clean_filthiest()
    assert not manager.offline
    manager.close()


async def test_others_run_between_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.log.cleaner.SLICE_S", 0.0)
    manager = opened(tmp_path, {"all": RATIO})
    fill(created(manager, "all", RATIO), 100)
    turns = 0
    is_done = False

    async def count() -> None:
        nonlocal turns
        while not is_done:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        assert await cleaner(manager).clean_filthiest()
        is_done = True
    assert turns >= 100
    manager.close()


async def test_bytes_per_second_are_kept(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.log.cleaner.SLICE_S", 0.0)
    assert autojump_clock.autojump_threshold == 0
    manager = opened(tmp_path, {"all": RATIO})
    fill(created(manager, "all", RATIO), 60)
    slow = CleanerSettings(io_max_bytes_per_second=1000)
    began = trio.current_time()
    assert await cleaner(manager, slow).clean_filthiest()
    assert trio.current_time() - began > 5
    fill(manager.logs[TopicPartition("all", 0)], 60)
    compacting = cleaner(manager, slow)
    compacting.change_settings(CleanerSettings())
    began = trio.current_time()
    assert await compacting.clean_filthiest()
    assert trio.current_time() - began < 5
    manager.close()


async def test_a_damaged_batch_makes_a_partition_uncleanable_and_no_other(tmp_path: Path) -> None:
    configs = {"bad": RATIO, "good": RATIO}
    manager = opened(tmp_path, configs)
    bad, good = (created(manager, name, config) for name, config in configs.items())
    fill(bad, 20)
    fill(good, 20)
    damage(bad)
    compacting = cleaner(manager)
    done = [await compacting.clean_filthiest() for _ in range(3)]
    assert sorted(done) == [False, False, True]
    assert compacting.uncleanable == {TopicPartition("bad", 0): bad}
    assert len(records_of(good)) == 4
    assert not manager.offline
    state = compacting.state()
    dirty_bytes = sum(one.size for one in bad.sealed_segments())
    assert state.uncleanable == {tmp_path: (1, dirty_bytes)}
    assert state.gauges["max_dirty_percent"] == 0, "of what can be cleaned"
    manager.close()


async def test_what_nobody_foresaw_makes_a_partition_uncleanable_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configs = {"bad": RATIO, "good": replace(RATIO, delete_retention_ms=5)}
    manager = opened(tmp_path, configs)
    bad, good = (created(manager, name, config) for name, config in configs.items())
    fill(bad, 20)
    fill(good, 20)

    def fails_on_one(
        batch: memoryview, header: BatchHeader, rules: CleaningRules, *rest: Any
    ) -> Any:
        if rules.delete_retention_ms != 5:
            raise OverflowError("a number that no field holds")
        return compact_batch(batch, header, rules, *rest)

    monkeypatch.setattr("broker.log.cleaning.compact_batch", fails_on_one)
    compacting = cleaner(manager)
    done = [await compacting.clean_filthiest() for _ in range(3)]
    assert sorted(done) == [False, False, True]
    assert compacting.uncleanable == {TopicPartition("bad", 0): bad}
    assert len(records_of(good)) == 4
    assert not list(tmp_path.glob("*/*.cleaned"))
    assert "a number that no field holds" in caplog.text, "with the traceback"
    manager.close()


async def test_a_topic_made_anew_under_the_name_of_a_damaged_one_is_compacted(
    tmp_path: Path,
) -> None:
    manager = opened(tmp_path, {"t": RATIO})
    log = created(manager, "t", RATIO)
    fill(log, 20)
    damage(log)
    compacting = cleaner(manager)
    assert not await compacting.clean_filthiest()
    manager.delete("t", 0)
    log = created(manager, "t", RATIO)
    fill(log, 20)
    assert compacting.state().uncleanable == {tmp_path: (0, 0)}
    assert await compacting.clean_filthiest()
    assert len(records_of(log)) == 4
    assert not compacting.uncleanable
    manager.close()


async def test_the_cleaner_tells_kafkas_gauges(tmp_path: Path) -> None:
    manager = opened(tmp_path, {"all": RATIO})
    log = created(manager, "all", RATIO)
    fill(log, 20)
    compacting = cleaner(manager, CleanerSettings(dedupe_buffer_size=6 * ENTRY_BYTES))
    assert compacting.state().gauges["max_dirty_percent"] == 0
    assert await compacting.clean_filthiest()
    gauges = compacting.state().gauges
    assert gauges["max_dirty_percent"] == 100
    assert gauges["max_buffer_utilization_percent"] == 50, "three keys of six"
    # 20 records are read twice, 3 of them are written.
    assert gauges["cleaner_recopy_percent"] == 100 * 3 // 40
    assert gauges["time_since_last_run_ms"] == 0
    assert not await compacting.clean_filthiest()
    assert compacting.state().gauges["max_dirty_percent"] == 0
    manager.close()


async def test_what_is_clean_is_not_cleaned_again_however_low_the_ratio(tmp_path: Path) -> None:
    config = replace(RATIO, min_cleanable_dirty_ratio=0.0, max_compaction_lag_ms=1)
    manager = opened(tmp_path, {"all": config})
    fill(created(manager, "all", config), 20)
    compacting = cleaner(manager)
    assert [await compacting.clean_filthiest() for _ in range(2)] == [True, False]
    manager.close()


async def test_the_task_cleans_what_becomes_due(tmp_path: Path, autojump_clock: MockClock) -> None:
    assert autojump_clock.autojump_threshold == 0
    manager = opened(tmp_path, {"all": RATIO})
    log = created(manager, "all", RATIO)
    is_compacted = trio.Event()

    def now_ms() -> int:
        if len(records_of(log)) == 4:
            is_compacted.set()
        return NOW_MS

    compacting = LogCleaner(
        manager, CleanerSettings(), high_watermark=lambda _: log.log_end_offset, now_ms=now_ms
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(compacting.run)
        await trio.sleep(20)
        fill(log, 20)
        await is_compacted.wait()
        nursery.cancel_scope.cancel()
    manager.close()


# -- what is due


def shape(base: int, size: int = 100, *, newest_ms: int = 0, first_ms: int = -1) -> SegmentShape:
    return SegmentShape(base, size, 8, 12, first_ms, newest_ms)


plan_of = partial(cleanable, active_base=40, last_stable_offset=50, now_ms=1000)
SEALED = [shape(0), shape(10), shape(20, newest_ms=950), shape(30, newest_ms=990)]


def test_everything_before_the_active_segment_may_be_cleaned() -> None:
    plan = plan_of(SEALED, COMPACTED, first_dirty=10)
    assert (plan.first_dirty, plan.first_uncleanable) == (10, 40)
    assert (plan.clean_bytes, plan.cleanable_bytes) == (100, 300)
    assert plan.ratio == 0.75


def test_young_segments_are_spared() -> None:
    config = replace(COMPACTED, min_compaction_lag_ms=100)
    assert plan_of(SEALED, config, first_dirty=0).first_uncleanable == 20
    assert plan_of(SEALED, config, first_dirty=30).cleanable_bytes == 0


def test_a_segment_with_something_undecided_is_spared() -> None:
    plan = cleanable(
        SEALED, COMPACTED, first_dirty=0, active_base=40, last_stable_offset=25, now_ms=1000
    )
    assert plan.first_uncleanable == 20


def test_records_that_wait_too_long_are_due_at_any_ratio() -> None:
    config = replace(COMPACTED, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=100)
    late = [shape(0, first_ms=899), shape(10, first_ms=950)]
    assert plan_of(late, config, first_dirty=0).is_due(config)
    assert not plan_of(late, config, first_dirty=10).is_due(config)


def test_the_ratio_must_be_exceeded() -> None:
    config = replace(COMPACTED, min_cleanable_dirty_ratio=0.5)
    assert not plan_of(SEALED, config, first_dirty=20).is_due(config)
    assert plan_of(SEALED, config, first_dirty=10).is_due(config)
    assert not plan_of([], config, first_dirty=0).is_due(config)


def test_a_checkpoint_outside_the_log_counts_for_nothing() -> None:
    assert first_dirty_offset(None, 5, 9) == 5
    assert first_dirty_offset(4, 5, 9) == 5
    assert first_dirty_offset(10, 5, 9) == 5
    assert first_dirty_offset(7, 5, 9) == 7


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ([], []),
        ([shape(0, 300), shape(10, 300), shape(20, 200)], [2, 1]),
        ([shape(0, 0), shape(2**31, 100)], [1, 1]),
        ([shape(0, 100), shape(2**31, 0)], [2]),
        ([shape(0, 900), shape(10, 10)], [1, 1]),
    ],
)
def test_groups_stay_below_a_segments_size(
    segments: list[SegmentShape], expected: list[int]
) -> None:
    groups = grouped(segments, COMPACTED, 2**31 + 5)
    assert [len(group) for group in groups] == expected
