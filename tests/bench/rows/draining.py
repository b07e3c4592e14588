"""The part `drain`: the same backlog, mirrors pinned to one processor, the source near and far."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench.measure.ledger import Cell, Ledger, cells
from tests.bench.measure.racers import last_core
from tests.bench.measure.results import MM2_TUNED, OURS
from tests.bench.measure.workloads import Workload, stored_mb
from tests.bench.rows.catching_up import BENCHES, run_catching_up, warm_up_mirrored
from tests.bench.stage.clusters import Stage, apache_stage
from tests.bench.stage.distance import run_far_apache

SYSTEMS: Final = (OURS, MM2_TUNED)
WARM_UP: Final = (SYSTEMS,) * 5
"""Behind one copy by both and four of ours alone brokers took 358, 400 and 448 MB/s of ours beside
MirrorMaker, round by round: what their Java had compiled for one is not what both need. Behind five
of both: 463, 511 and 528; seven were no better."""
ROUND_TRIPS_MS: Final = (0, 80)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPlan:
    """What to mirror and how often, at each distance."""

    workloads: Sequence[Workload]
    runs: int
    warm_up: Sequence[Sequence[str]] = WARM_UP
    """Copies that do not count."""


def row_name(workload: Workload, round_trip_ms: int) -> str:
    """Return what the tables call it."""
    away = f", {round_trip_ms} ms away" if round_trip_ms else ""
    return f"{workload.name}, one core{away}"


@contextmanager
def _pinned_stage(folder: Path, plan: DrainPlan, round_trip_ms: int) -> Iterator[Stage]:
    """Run a stage with mirrors on one processor and the source's broker so far away."""
    source = partial(run_far_apache, round_trip_ms=round_trip_ms) if round_trip_ms else None
    with apache_stage(folder, stored_mb(plan.workloads), source) as stage:
        yield replace(stage, mirror_cores=last_core(), round_trip_s=round_trip_ms / 1000)


def run_draining(folder: Path, plan: DrainPlan, ledger: Ledger) -> None:
    """Run the part."""
    for round_trip_ms in ROUND_TRIPS_MS:
        rows = [row_name(workload, round_trip_ms) for workload in plan.workloads]
        running = _pinned_stage(folder / f"{round_trip_ms}-ms", plan, round_trip_ms)
        tell = partial(_miss_all, ledger, [cell for row in rows for cell in cells(row, BENCHES)])
        with ledger.started(running, tell) as stage:
            if stage is None:
                continue
            warm_up_mirrored(stage, plan.workloads[0], plan.warm_up, ledger)
            for row, workload in zip(rows, plan.workloads, strict=True):
                run_catching_up(stage, workload, SYSTEMS, plan.runs, ledger, row)


def all_cells(plan: DrainPlan) -> list[Cell]:
    """Return every row of the part."""
    return [
        cell
        for round_trip_ms in ROUND_TRIPS_MS
        for workload in plan.workloads
        for cell in cells(row_name(workload, round_trip_ms), BENCHES)
    ]


def _miss_all(ledger: Ledger, missing: Sequence[Cell], fault: BaseException) -> None:
    for system in SYSTEMS:
        ledger.miss(system, missing, fault)
