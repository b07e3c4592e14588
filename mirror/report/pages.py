"""The page `/status`, of perhaps ten thousand partitions and groups: a part at a time."""

import json
from collections.abc import Mapping, Sequence

import trio

from mirror.flow.engine import Engine
from mirror.flow.runner import FlowRunner
from mirror.report.gauges import parts
from mirror.report.status import (
    GroupReport,
    PartitionReport,
    flow_head,
    partition_report,
    placed_group_report,
    with_begin,
)
from mirror.start.begins import known_begin
from mirror.state.partition import MirroredPartition
from runtime.process.clock import now_ms


async def status_page(runners: Sequence[FlowRunner], *, pid: int, started_ms: int) -> bytes:
    """Return the JSON of a `StatusReport` about all flows of this process."""
    now = now_ms()
    flows = ", ".join([await _flow(runner, now) for runner in runners])
    head = {"program": "mirror", "pid": pid, "started_ms": started_ms, "now_ms": now}
    return f'{_open(head)}, "flows": [{flows}]}}'.encode()


async def _flow(runner: FlowRunner, now: int) -> str:
    head, engine = flow_head(runner), runner.engine
    partitions: list[str] = []
    groups: list[str] = []
    if engine is not None:
        for some in parts(sorted(engine.flow.partitions.own.items())):
            await trio.lowlevel.checkpoint()
            reports = (_partition(runner, engine, one, now) for _, one in some)
            partitions += map(json.dumps, reports)
        for many in parts(sorted(engine.groups.status.items())):
            await trio.lowlevel.checkpoint()
            groups += (json.dumps(placed_group_report(*one, engine, now)) for one in many)
    lists = f'"partitions": [{", ".join(partitions)}], "groups": [{", ".join(groups)}]'
    return f"{_open(head)}, {lists}}}"


async def flow_report(runner: FlowRunner) -> Mapping[str, object]:
    """Return a `FlowReport` of a flow of this process, with turns for all others."""
    now, engine = now_ms(), runner.engine
    partitions: list[PartitionReport] = []
    groups: list[GroupReport] = []
    if engine is not None:
        for some in parts(sorted(engine.flow.partitions.own.items())):
            await trio.lowlevel.checkpoint()
            partitions += [_partition(runner, engine, one, now) for _, one in some]
        for many in parts(sorted(engine.groups.status.items())):
            await trio.lowlevel.checkpoint()
            groups += [placed_group_report(*one, engine, now) for one in many]
    return {**flow_head(runner), "partitions": partitions, "groups": groups}


def _partition(
    runner: FlowRunner, engine: Engine, partition: MirroredPartition, now: int
) -> PartitionReport:
    known = engine.open_transactions.known
    report = partition_report(
        partition,
        now,
        is_left=runner.is_left,
        transactions=known,
        engine=engine,
    )
    return with_begin(report, known_begin(engine.map_log.state, partition))


def _open(head: Mapping[str, object]) -> str:
    """Return the JSON of an object that goes on."""
    return json.dumps(head)[:-1]
