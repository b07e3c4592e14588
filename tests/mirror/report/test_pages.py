"""Pages about many partitions and groups: as they are read, and made in turns."""

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
import trio
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as read_open_metrics,
)
from prometheus_client.parser import text_string_to_metric_families

from mirror.flow.runner import FlowRunner
from mirror.report.gauges import AT_ONCE, families, many_gauges
from mirror.report.pages import status_page
from mirror.report.status import FlowReport, StatusReport
from mirror.state.partition_state import PartitionState
from runtime.configuration.metrics_section import Granularity
from runtime.pages.exposition import ManyLines
from runtime.process.clock import now_ms
from tests.mirror.building import runner_in
from tests.mirror.report.many_partitions import ODD, runner_with


async def gauges_of(runners: Sequence[FlowRunner]) -> ManyLines:
    return await many_gauges(runners, Granularity.PARTITION)


def read(lines: ManyLines) -> dict[str, Metric]:
    """Return what a reader makes of the page, by the names of the samples."""
    text = b"".join(lines.body()).decode()
    return {
        f"{one.name}_total" if one.type == "counter" else one.name: one
        for one in text_string_to_metric_families(text)
    }


@pytest.mark.parametrize("granularity", Granularity)
async def test_every_line_has_the_labels_of_its_family(
    tmp_path: Path, granularity: Granularity
) -> None:
    lines = await many_gauges([await runner_with(tmp_path, 2), runner_in(tmp_path)], granularity)
    found, meant = read(lines), {one.name: one for one in families(granularity)}
    assert found.keys() == meant.keys()
    for name, family in found.items():
        assert family.type == meant[name].kind
        assert all(set(one.labels) == set(meant[name].labels) for one in family.samples)
    texts = b"".join([*lines.body(is_open=True), b"# EOF\n"]).decode()
    assert len(list(read_open_metrics(texts))) == len(meant)  # type: ignore[no-untyped-call]


async def test_a_line_of_several_partitions_has_the_sum_or_the_greatest(tmp_path: Path) -> None:
    runner = await runner_with(tmp_path, 3)
    assert runner.engine is not None
    for number, one in enumerate(runner.engine.flow.partitions.own.values()):
        if number != 1:
            one.target.find_position()
            one.source.hear(5, 5, 5, now_ms() - 8_000)  # level then
            one.source.hear(7 + number, 7 + number, 5, now_ms())
        one.skips.leave_out_looped(number + 1)
    for granularity, topic in ((Granularity.FLOW, {}), (Granularity.TOPIC, {"topic": "t"})):
        found = read(await many_gauges([runner], granularity))
        [lag] = found["mirror_lag_records"].samples
        assert (lag.labels, lag.value) == ({"flow": "dc1->dc2", **topic}, 2 + 4)
        [seconds] = found["mirror_lag_seconds"].samples
        assert 8 <= seconds.value < 60
        [looped] = found["mirror_looped_batches_total"].samples
        assert looped.value == 1 + 2 + 3
        assert [one.value for one in found["mirror_unknown_lag_partitions"].samples] == [1]
        states = {one.labels["state"]: one.value for one in found["mirror_partitions"].samples}
        assert states == {state.value: 0.0 for state in PartitionState} | {
            "record too large": 1,
            "discovering": 2,
        }
        assert found["mirror_group_source_lag_records"].samples[0].labels == {
            "flow": "dc1->dc2",
            "group": ODD,
            **topic,
        }


async def test_every_line_of_a_partition_is_read_as_it_was_meant(tmp_path: Path) -> None:
    found = read(await gauges_of([await runner_with(tmp_path, 2), runner_in(tmp_path)]))
    flow = {"flow": "dc1->dc2", "topic": "t"}
    [stopped, other] = found["mirror_partition_state"].samples
    assert stopped.labels == {**flow, "partition": "0", "state": "record too large"}
    assert (stopped.value, other.labels["state"]) == (1, "discovering")
    ends = found["mirror_mirrored_source_offset"].samples
    assert [(one.labels, one.value) for one in ends] == [
        ({**flow, "partition": "0"}, 5),
        ({**flow, "partition": "1"}, 5),
    ]
    assert found["mirror_lag_records"].samples == []
    [position] = found["mirror_group_source_offset"].samples
    assert position.labels == {**flow, "group": ODD, "partition": "0"}
    assert found["mirror_group_target_offset"].samples == []


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


@pytest.mark.parametrize("page", [gauges_of, status_of])
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
