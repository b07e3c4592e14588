"""A summary of each flow every few seconds, with its lag over the last hour: `/status/flows`.

Whoever reads it costs the mirror nothing: it is made whether or not anybody does.
"""

import json
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import trio

from mirror.flow.run_decision import Role
from mirror.flow.runner import FlowRunner
from mirror.report.gauges import parts
from mirror.report.status import flow_head
from runtime.console.flow_summary import FlowSummary, LagSample
from runtime.process.clock import now_ms, wall_ms
from runtime.process.fault_note import FaultNote
from runtime.process.unforeseen import keep_at_work

EVERY_S: Final = 5.0
KEPT: Final = 720
"""Samples of each flow: an hour."""


class FlowSummaries:
    """The newest summary of each flow, and its history."""

    def __init__(self, runners: Sequence[FlowRunner]) -> None:
        self._runners = runners
        self._histories: dict[str, deque[LagSample]] = {}
        self._newest: dict[str, FlowSummary] = {}

    async def run(self) -> None:
        """Take a sample of each flow again and again, until cancelled."""
        await keep_at_work(self._run, FaultNote("summaries of flows"), "a sample")

    async def _run(self) -> None:
        while True:
            for runner in self._runners:
                await self.sample(runner)
            await trio.sleep(EVERY_S)

    async def sample(self, runner: FlowRunner) -> None:
        """Take a sample of one flow, with turns for all others."""
        summary = await _summary(runner)
        history = self._histories.setdefault(summary.flow, deque(maxlen=KEPT))
        history.append(LagSample(summary.taken_ms, summary.lag_records, summary.lag_seconds))
        self._newest[summary.flow] = summary

    def newest(self) -> list[FlowSummary]:
        """Return the newest summaries, each with its history."""
        return [
            replace(one, history=tuple(self._histories[name])) for name, one in self._newest.items()
        ]

    async def page(self, *, pid: int, started_ms: int) -> tuple[str, bytes]:
        """Return the page of `/status/flows`: which process tells, and its flows."""
        await trio.lowlevel.checkpoint()
        flows = [one.document() for one in self.newest()]
        document = {"pid": pid, "started_ms": started_ms, "flows": flows}
        return "application/json", json.dumps(document).encode()


async def _summary(runner: FlowRunner) -> FlowSummary:
    """Return what there is to say of a flow; its lag is known if that of each partition is."""
    head, engine, now = flow_head(runner), runner.engine, now_ms()
    states: Counter[str] = Counter()
    lags: list[int | None] = []
    waits: list[int | None] = []
    lost = 0
    partitions = [] if engine is None else list(engine.flow.partitions.own.values())
    for some in parts(partitions):
        await trio.lowlevel.checkpoint()
        for one in some:
            states[one.state.value] += 1
            lags.append(one.lag_records(now))
            waits.append(None if runner.is_left else one.lag_ms(now))
            lost += one.skips.lost
    is_known = engine is not None and runner.role is Role.RUNNING
    known_lags = [one for one in lags if one is not None]
    known_waits = [one for one in waits if one is not None]
    return FlowSummary(
        flow=head["flow"],
        role=head["role"],
        reason=head["reason"],
        faults=tuple(head["faults"]),
        taken_ms=wall_ms(),
        states=dict(states),
        groups=0 if engine is None else len({group for group, _, _ in engine.groups.status}),
        lag_records=sum(known_lags) if is_known and len(known_lags) == len(lags) else None,
        lag_seconds=max(known_waits, default=0) / 1_000
        if is_known and len(known_waits) == len(waits)
        else None,
        lost_records=lost,
    )
