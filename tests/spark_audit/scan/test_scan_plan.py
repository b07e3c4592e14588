"""Tasks cover what they should."""

from dataclasses import replace
from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from spark_audit.scan.scan_plan import (
    GROUP_OFFSETS,
    GROUPS_A_CORE,
    MOST_TOGETHER,
    RANGE_SPLIT_OFFSETS,
    Planner,
    dealt,
    each_of,
    read_once,
    read_together,
)
from spark_audit.scan.windows import LOG_START, LOG_STOP
from spark_audit.snapshot.bounds import LogBounds, PartitionBounds, Snapshot
from spark_audit.snapshot.origins import Brought, Part
from spark_audit.snapshot.seals import Seal
from spark_audit.snapshot.side import Side
from wire.topic_partition import TopicPartition

TO_SOURCE = Brought(producer_ids=frozenset({1}))
TO_TARGET = Brought(producer_ids=frozenset({2}))


def _planner(
    seal: Seal | None = None, *, both: bool = False, target_topic: str | None = None
) -> Planner:
    source = LogBounds(start=5, stop=2_500_000, topic_id=UUID(int=7), is_compacted=False)
    target = LogBounds(start=0, stop=900, topic_id=UUID(int=8), is_compacted=False)
    bounds = PartitionBounds(
        topic="t",
        partition=3,
        source=source,
        target=target,
        seal=seal,
        to_source=TO_SOURCE if both else None,
        to_target=TO_TARGET if both else None,
        target_topic=target_topic,
    )
    snapshot = Snapshot(
        flow="dc1->dc2",
        source="dc1",
        target="dc2",
        taken_ms=0,
        promotion=None,
        partitions=(bounds,),
        only_on_target=(),
    )
    return Planner(snapshot, {"dc1": (("a", 1),), "dc2": (("b", 2),)})


def test_a_large_log_is_split_without_gaps() -> None:
    tasks = [task for task in _planner().ranges() if task.log.side is Side.SOURCE]
    assert (tasks[0].start, tasks[-1].stop) == (5, 2_500_000)
    assert all(before.stop == after.start for before, after in pairwise(tasks))
    assert all(task.stop - task.start <= RANGE_SPLIT_OFFSETS for task in tasks)
    assert [task.starts_log for task in tasks] == [True] + [False] * (len(tasks) - 1)
    assert {task.log_stop for task in tasks} == {2_500_000}


def test_a_task_names_its_own_cluster_and_topic_id() -> None:
    found = {(task.log.side, task.bootstrap, task.topic_id) for task in _planner().ranges()}
    assert found == {
        (Side.SOURCE, (("a", 1),), UUID(int=7)),
        (Side.TARGET, (("b", 2),), UUID(int=8)),
    }


def test_a_task_reads_its_log_by_the_name_of_its_own_cluster() -> None:
    planner = _planner(target_topic="dc1.t")
    found = {(task.log.side, task.place, task.log.topic) for task in planner.ranges()}
    assert found == {
        (Side.SOURCE, TopicPartition("t", 3), "t"),
        (Side.TARGET, TopicPartition("dc1.t", 3), "t"),
    }


def test_a_stretch_is_read_within_the_bounds() -> None:
    planner = _planner()
    (bounds,) = planner.partitions
    spans = [
        (task.start, task.stop)
        for side, start, stop in (
            (Side.SOURCE, LOG_START, 100),
            (Side.SOURCE, 2_499_000, LOG_STOP),
            (Side.TARGET, 40, LOG_STOP),
            (Side.TARGET, 1_000, 2_000),
        )
        for task in [planner.stretch(bounds, side, start, stop)]
    ]
    assert spans == [(5, 100), (2_499_000, 2_500_000), (40, 900), (900, 900)]


def test_a_planner_of_one_partition_plans_as_that_of_all() -> None:
    planner = _planner()
    assert planner.alone("t", 3).ranges() == planner.ranges()


def test_only_what_lies_behind_a_seal_is_native() -> None:
    wanted = frozenset({b"digest"})
    assert _planner().native({"t"}, wanted) == []
    sealed = _planner(Seal(mirrored_source_end=9, target_end=600))
    (task,) = sealed.native({"t"}, wanted)
    assert (task.start, task.stop, task.digests) == (600, 900, wanted)
    assert sealed.native({"other"}, wanted) == []


def test_of_logs_that_both_sites_wrote_to_each_task_reads_a_part() -> None:
    own, arrived = (Part(brought=TO_SOURCE, is_brought=found) for found in (False, True))
    native, mirrored = (Part(brought=TO_TARGET, is_brought=found) for found in (False, True))
    assert {task.part for task in _planner().ranges()} == {None}
    for seal, stop in ((None, 900), (Seal(mirrored_source_end=9, target_end=600), 600)):
        planner = _planner(seal, both=True)
        (bounds,) = planner.partitions
        ranges = {(one.log.side, one.part, one.log_stop) for one in planner.ranges()}
        assert ranges == {(Side.SOURCE, own, 2_500_000), (Side.TARGET, mirrored, stop)}
        written_again = [
            (one.part, one.start, one.stop) for one in planner.native({"t"}, frozenset())
        ]
        assert written_again == ([] if seal is None else [(native, 600, 900)])
        read = {
            (one.part, one.start, one.stop)
            for side, start in (
                (Side.SOURCE, 2_450_000),
                (Side.RETURNED, 2_450_000),
                (Side.TARGET, 500),
                (Side.NATIVE, 500),
            )
            for one in [planner.stretch(bounds, side, start, LOG_STOP)]
        }
        assert read == {
            (own, 2_450_000, 2_500_000),
            (arrived, 2_450_000, 2_500_000),
            (mirrored, 500, stop),
            (native, 500, 900),
        }


@given(st.lists(st.integers(0, RANGE_SPLIT_OFFSETS), max_size=300), st.integers(1, 8))
def test_small_tasks_share_what_a_group_costs_and_large_ones_are_spread(
    sizes: list[int], cores: int
) -> None:
    [first, *_] = _planner().ranges()
    tasks = [replace(first, start=at, stop=at + size) for at, size in enumerate(sizes)]
    groups = dealt(tasks, cores)
    assert sorted(task.start for group in groups for task in group) == list(range(len(sizes)))
    assert all(groups)
    assert len(groups) <= GROUPS_A_CORE * cores + sum(sizes) // GROUP_OFFSETS
    assert len(groups) >= min(len(tasks), GROUPS_A_CORE * cores)
    loads = [sum(task.stop - task.start for task in group) for group in groups]
    assert max(loads, default=0) - min(loads, default=0) <= max(sizes, default=0)


@given(st.lists(st.integers(0, RANGE_SPLIT_OFFSETS), max_size=40), st.integers(0, 1_200))
def test_what_is_read_together_fits_into_a_worker(sizes: list[int], empty: int) -> None:
    [first, *_] = _planner().ranges()
    wanted = [*sizes, *[0] * empty]
    tasks = [replace(first, start=at, stop=at + size) for at, size in enumerate(wanted)]
    runs = list(read_together(tasks))
    assert [task for run in runs for task in run] == tasks
    for run in runs:
        assert 1 <= len(run) <= MOST_TOGETHER
        load = sum(task.stop - task.start for task in run)
        assert load <= GROUP_OFFSETS or len(run) == 1


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["forth", "back"]))))
def test_tasks_that_begin_at_one_place_of_a_log_are_read_once_and_none_is_lost(
    places: list[tuple[int, str]],
) -> None:
    [first, *_] = _planner().ranges()
    tasks = [
        replace(first, start=start, stop=start + number, log=replace(first.log, flow=flow))
        for number, (start, flow) in enumerate(places)
    ]
    once = read_once(tasks)
    assert len(once) == len({start for start, _ in places})
    found = [replace(task, also=()) for task in each_of(once)]
    assert sorted(found, key=lambda task: task.stop - task.start) == tasks
