"""The summaries of flows every few seconds, and the mirror's own console."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from mirror.report.console import MirrorConsole
from mirror.report.flow_summaries import KEPT, FlowSummaries
from mirror.report.pages import flow_report
from runtime.console.flow_summary import FlowSummary, LagSample, decode_summary, merged_summary
from runtime.pages.browsing import PageRequest
from tests.mirror.report.many_partitions import ODD, runner_with


async def test_a_lag_that_nobody_knows_is_no_zero_and_is_kept_as_such(tmp_path: Path) -> None:
    runner = await runner_with(tmp_path, 3)
    summaries = FlowSummaries([runner])
    for _ in range(KEPT + 5):
        await summaries.sample(runner)
    [told] = summaries.newest()
    assert sum(told.states.values()) == 3
    assert told.groups == 1
    assert told.lag_records is None
    assert len(told.history) == KEPT
    assert told.history[-1].records is None
    _, page = await summaries.page(pid=7, started_ms=9)
    document = json.loads(page)
    assert (document["pid"], document["started_ms"]) == (7, 9)
    [again] = map(decode_summary, document["flows"])
    assert (again.states, again.lag_records, again.history[0]) == (
        told.states,
        None,
        told.history[0],
    )


async def test_the_mirror_shows_its_partitions_and_groups(tmp_path: Path) -> None:
    runner = await runner_with(tmp_path, 250)
    console = MirrorConsole([runner], FlowSummaries([runner]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(console.run)
        partitions = await console.browse(PageRequest("/console/partitions"))
        groups = await console.browse(PageRequest("/console/groups"))
        overview = await console.browse(PageRequest("/console"))
        nursery.cancel_scope.cancel()
    assert partitions is not None
    assert groups is not None
    assert overview is not None
    assert b"250 partitions, page 1 of 3" in partitions.body
    assert b"not known" in partitions.body
    assert ODD.replace("\n", "\\x0a").encode() not in groups.body, "a quotation mark is escaped"
    assert b"a &quot;group&quot;\\of\\x0alines" in groups.body
    assert b"The first look at them is under way" in overview.body


@pytest.mark.parametrize(("there", "reread"), [(None, None), (3, 0), (1, 2), (5, 0)])
async def test_what_a_group_would_read_again_counts_from_its_position_on_the_target(
    tmp_path: Path, there: int | None, reread: int | None
) -> None:
    runner = await runner_with(tmp_path, 1)
    assert runner.engine is not None
    groups = runner.engine.groups.status
    groups.update({name: one._replace(target_offset=there) for name, one in groups.items()})
    report: Any = await flow_report(runner)
    assert [one["reread"] for one in report["groups"]] == [reread]


def share(records: int | None, at_ms: int, worker: int) -> FlowSummary:
    return FlowSummary(
        flow="f",
        role="running",
        reason="",
        faults=(),
        taken_ms=at_ms,
        states={"streaming": worker},
        groups=worker,
        lag_records=records,
        lag_seconds=None if records is None else records / 10,
        lost_records=worker,
        history=[LagSample(at_ms, records, 1.0)],
    )


def test_what_one_worker_does_not_know_of_its_share_nobody_knows() -> None:
    both = merged_summary([share(5, 10, 1), share(7, 8, 2)])
    assert (both.lag_records, both.lag_seconds, both.states, both.groups) == (
        12,
        0.7,
        {"streaming": 3},
        1,
    )
    assert (both.taken_ms, both.lost_records, both.history) == (8, 3, [LagSample(10, 12, 1.0)])
    unknown = merged_summary([share(5, 10, 1), share(None, 8, 2)])
    assert (unknown.lag_records, unknown.lag_seconds) == (None, None)
    assert unknown.history[0].records is None
