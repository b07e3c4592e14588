"""Which workloads there are, how much each moves, who runs when."""

import pytest

from tests.bench.estimate import estimate_s, told_time
from tests.bench.plans import CATCHING_UP_RUNS, QUICK_S, Extent, plan_for
from tests.bench.results import MM2_DEFAULT, OURS
from tests.bench.workloads import (
    BASE,
    DATA_BYTES,
    DEFAULT_PARTS,
    GIB,
    KIB,
    MIB,
    Part,
    Workload,
    every_combination,
    one_at_a_time,
    parse_parts,
    rotated,
    stored_mb,
    wants_another_round,
)
from wire.compression import Compression


def test_each_value_of_the_issue_is_tried_and_differs_from_the_base_in_one_respect() -> None:
    workloads = one_at_a_time()
    assert workloads[0] == BASE
    assert {each.record_bytes for each in workloads} == {100, KIB, 10 * KIB}
    assert {each.codec for each in workloads} == {
        Compression.NONE,
        Compression.LZ4,
        Compression.ZSTD,
    }
    assert {each.batch_bytes for each in workloads} == {0, 16 * KIB, 100 * KIB}
    assert {each.partitions for each in workloads} == {1, 12, 120}
    assert len({each.name for each in workloads}) == len(workloads) == 9


def test_every_combination_has_a_name_and_a_topic_of_its_own() -> None:
    workloads = every_combination()
    assert len(workloads) == len({each.name for each in workloads}) == 81
    assert len({each.topic for each in workloads}) == 81


def test_a_workload_is_whole_batches_in_every_partition() -> None:
    assert BASE.records_per_batch == 16
    assert BASE.batches_per_partition == DATA_BYTES // (16 * KIB * 12)
    assert BASE.records == BASE.batches_per_partition * 16 * 12
    assert DATA_BYTES * 0.99 < BASE.value_bytes <= DATA_BYTES


def test_a_batch_of_one_record_holds_one_whatever_its_size() -> None:
    workload = Workload(record_bytes=100, batch_bytes=0, partitions=1, data_bytes=MIB)
    assert (workload.records_per_batch, workload.records) == (1, MIB // 100)
    assert workload.name == "100 B, none, batch 1 record, 1p"


def test_records_larger_than_the_batch_travel_alone() -> None:
    assert Workload(record_bytes=10 * KIB, batch_bytes=KIB).records_per_batch == 1


def test_many_partitions_still_get_a_few_batches_each() -> None:
    workload = Workload(batch_bytes=100 * KIB, partitions=120, data_bytes=MIB)
    assert workload.batches_per_partition == 4


def test_tiny_batches_move_less_data() -> None:
    by_name = {each.name: each for each in one_at_a_time()}
    assert by_name["1 KiB, none, batch 1 record, 12p"].data_bytes == 3 * GIB // 2
    assert by_name["100 B, none, batch 16 KiB, 12p"].data_bytes == 1_200_000_000
    assert by_name["10 KiB, none, batch 16 KiB, 12p"].data_bytes == DATA_BYTES


def test_everyone_comes_first_once() -> None:
    orders = [rotated(["a", "b", "c"], turn) for turn in range(4)]
    assert orders == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]]
    assert rotated([], 3) == []


def test_rounds_end_when_there_are_enough_or_the_slowest_would_not_fit_again() -> None:
    assert wants_another_round([], wanted=3, limit_s=0.0)
    assert wants_another_round([10.0, 20.0], wanted=3)
    assert not wants_another_round([10.0, 20.0, 10.0], wanted=3)
    assert wants_another_round([10.0, 20.0], wanted=3, limit_s=50.0)
    assert not wants_another_round([10.0, 20.0], wanted=3, limit_s=49.9)


def test_only_picks_parts_and_names_what_it_does_not_know() -> None:
    assert parse_parts(None) == parse_parts("") == [Part.MIRROR, Part.BROKER, Part.OFFSETS]
    assert parse_parts("drain,replicated") == [Part.DRAIN, Part.REPLICATED]
    assert parse_parts("broker") == [Part.BROKER]
    assert parse_parts("offsets, mirror,offsets") == [Part.OFFSETS, Part.MIRROR]
    with pytest.raises(ValueError, match=r"ONLY=disk: unknown part 'disk'; there are mirror, "):
        parse_parts("disk")


def test_the_full_plan_measures_all_mirrors_three_times_or_more() -> None:
    plan = plan_for(Extent.FULL)
    assert min(plan.rounds.runs, plan.latency_rounds.runs, plan.kill_rounds.runs) == 3
    assert plan.rounds.runs == CATCHING_UP_RUNS
    assert plan.rounds.limit_s is None
    assert {OURS, MM2_DEFAULT} < set(plan.catching_up_systems)
    assert set(plan.reread_systems) < set(plan.catching_up_systems)


def test_the_quick_plan_leaves_time_to_start_clusters_within_five_minutes() -> None:
    plan = plan_for(Extent.QUICK)
    assert sum(QUICK_S.values()) < 240
    assert MM2_DEFAULT not in plan.reread_systems
    alone = plan_for(Extent.QUICK, parts=[Part.BROKER])
    assert alone.brokers.rounds.limit_s == sum(QUICK_S.values())


def test_there_must_be_room_for_the_largest_workload_on_both_sides() -> None:
    assert stored_mb(one_at_a_time()) > 2 * DATA_BYTES // MIB


def test_the_full_plan_is_estimated_at_about_an_hour_and_a_half() -> None:
    estimated = estimate_s(plan_for(Extent.FULL))
    assert set(estimated) == set(Part)
    assert sum(estimated[part] for part in DEFAULT_PARTS) < 95 * 60
    twice = estimate_s(plan_for(Extent.FULL, runs=6))
    assert all(estimated[part] < twice[part] < 2 * estimated[part] + 1 for part in Part)
    assert told_time(plan_for(Extent.FULL), [Part.OFFSETS]) == "about 6 min (offsets 6)"
    assert told_time(plan_for(Extent.QUICK), DEFAULT_PARTS) == "at most 5 min"
