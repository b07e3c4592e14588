"""The part `drain`: the same backlog, mirrors pinned to one processor, the source near and far."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench.catching_up import BENCHES
from tests.bench.distance import run_far_apache
from tests.bench.ledger import Cell, Ledger, cells, started
from tests.bench.mirrors import run_catching_up, warm_up_mirrored
from tests.bench.pinning import last_core
from tests.bench.results import MM2_TUNED, OURS
from tests.bench.rounds import Rounds
from tests.bench.stage import Room, Stage, apache_stage
from tests.bench.workloads import Workload, stored_mb

SYSTEMS: Final = (OURS, MM2_TUNED)
WARM_UP: Final = (SYSTEMS,) * 5
"""What is measured before that is how far the brokers' Java has come. Behind one heat of both and
four of ours alone, at 561 MB/s by then, they took 358, 400 and 448 MB/s of ours beside MirrorMaker:
what was compiled for one of them is not what both need. Behind five of both: 463, 511 and 528, and
seven were no better."""
ROUND_TRIPS_MS: Final = (0, 80)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPlan:
    """What to mirror and how often, at each distance."""

    workloads: Sequence[Workload]
    rounds: Rounds
    is_prepared: bool = True
    """Whether free memory is held, and brokers serve some passes before anybody is measured."""


def row_name(workload: Workload, round_trip_ms: int) -> str:
    """Return what the tables call it."""
    away = f", {round_trip_ms} ms away" if round_trip_ms else ""
    return f"{workload.name}, one core{away}"


@contextmanager
def pinned_stage(folder: Path, plan: DrainPlan, round_trip_ms: int) -> Iterator[Stage]:
    """Run a stage with mirrors on one processor and the source's broker so far away."""
    source = partial(run_far_apache, round_trip_ms=round_trip_ms) if round_trip_ms else None
    room = Room(data_mb=stored_mb(plan.workloads), is_steady=plan.is_prepared)
    with apache_stage(folder, room, source) as stage:
        yield replace(stage, mirror_cores=last_core(), round_trip_s=round_trip_ms / 1000)


def run_draining(folder: Path, plan: DrainPlan, ledger: Ledger) -> None:
    """Run the part."""
    for round_trip_ms in ROUND_TRIPS_MS:
        rows = [row_name(workload, round_trip_ms) for workload in plan.workloads]
        missing = [cell for row in rows for cell in cells(row, BENCHES)]
        running = pinned_stage(folder / f"{round_trip_ms}-ms", plan, round_trip_ms)
        with started(running, partial(_miss_all, ledger, missing), ledger.require_time) as stage:
            if stage is None:
                continue
            ledger.data_places[f"drain, {round_trip_ms} ms away"] = stage.data_is
            if plan.is_prepared:
                warm_up_mirrored(stage, WARM_UP, ledger)
            for row, workload in zip(rows, plan.workloads, strict=True):
                run_catching_up(stage, workload, SYSTEMS, plan.rounds, ledger, row)


def _miss_all(ledger: Ledger, missing: Sequence[Cell], fault: BaseException) -> None:
    for system in SYSTEMS:
        ledger.miss(system, missing, fault)
