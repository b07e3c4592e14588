"""Pages about many partitions and groups: as they are read, and made in turns."""

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import UUID

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from mirror.flow.engine import Engine
from mirror.flow.runner import FlowRunner
from mirror.groups.sync import GroupStatus
from mirror.report.pages import AT_ONCE, GAUGES, many_gauges, status_page
from mirror.report.status import FlowReport, StatusReport
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.offset_map import OffsetMap
from tests.doubles.fake_cluster import run_fake_cluster
from tests.mirror.building import anybody, runner_in
from tests.mirror.groups.source_logs import source_of
from wire.topic_partition import TopicPartition

ODD = 'a "group"\\of\nlines'


async def runner_with(folder: Path, partitions: int) -> FlowRunner:
    """A flow with so many partitions, the first of which is placed, and with one group."""
    runner = runner_in(folder)
    async with run_fake_cluster() as fake, source_of(fake) as (_, flow, links):
        runner.engine = engine = Engine(
            flow.config,
            links,
            runner.measurements,
            anybody(),
        )
    for index in range(partitions):
        one = MirroredPartition(
            "t",
            index,
            topic_id=UUID(int=1),
            offset_map=OffsetMap.from_starts([(0, 0)], 5),
            now_ms=0,
        )
        engine.flow.partitions.take(one)
    engine.flow.partitions.own[TopicPartition("t", 0)].target.find_position()
    engine.flow.partitions.own[TopicPartition("t", 0)].stop(
        PartitionState.RECORD_TOO_LARGE, "it is", 1
    )
    status = GroupStatus(source_offset=3, target_offset=None, state="settled", looked_ms=0)
    engine.groups.status[ODD, "t", 0] = status
    return runner


async def test_every_line_is_read_as_it_was_meant(tmp_path: Path) -> None:
    text = await many_gauges([await runner_with(tmp_path, 2), runner_in(tmp_path)])
    families = {one.name: one for one in text_string_to_metric_families(text)}
    assert {one.type for one in families.values()} == {"gauge"}
    assert families.keys() == GAUGES.keys()
    for name, family in families.items():
        assert all(tuple(sorted(one.labels)) == GAUGES[name][1] for one in family.samples)
    flow = {"flow": "dc1->dc2", "topic": "t"}
    [stopped, other] = families["mirror_partition_state"].samples
    assert stopped.labels == {**flow, "partition": "0", "state": "record too large"}
    assert (stopped.value, other.labels["state"]) == (1, "discovering")
    ends = families["mirror_mirrored_source_offset"].samples
    assert [(one.labels, one.value) for one in ends] == [
        ({**flow, "partition": "0"}, 5),
        ({**flow, "partition": "1"}, 5),
    ]
    assert families["mirror_lag_records"].samples == []
    [position] = families["mirror_group_source_offset"].samples
    assert position.labels == {**flow, "group": ODD, "partition": "0"}
    assert families["mirror_group_target_offset"].samples == []


async def status_of(runners: Sequence[FlowRunner]) -> bytes:
    return await status_page(runners, pid=7, started_ms=5)


async def test_the_status_is_read_as_it_was_meant(tmp_path: Path) -> None:
    runners = [await runner_with(tmp_path, 2), runner_in(tmp_path)]
    report: StatusReport = json.loads(await status_of(runners))
    [full, empty] = report["flows"]
    assert (report["program"], report["pid"], report["started_ms"]) == ("mirror", 7, 5)
    assert full.keys() == empty.keys() == FlowReport.__annotations__.keys() - {"workers"}
    assert (empty["partitions"], empty["groups"]) == ([], [])
    assert [(one["partition"], one["state"]) for one in full["partitions"]] == [
        (0, "record too large"),
        (1, "discovering"),
    ]
    [group] = full["groups"]
    assert (group["group"], group["source_offset"], group["target_offset"]) == (ODD, 3, None)


@pytest.mark.parametrize("page", [many_gauges, status_of])
@pytest.mark.parametrize("parts", [1, 5])
async def test_others_have_their_turns_while_a_page_of_many_partitions_is_made(
    tmp_path: Path, page: Callable[[Sequence[FlowRunner]], Awaitable[object]], parts: int
) -> None:
    runner = await runner_with(tmp_path, parts * AT_ONCE)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await page([runner])
        nursery.cancel_scope.cancel()
    assert turns >= parts
