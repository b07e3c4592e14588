"""`make bench`: measure, write build/bench.json, and the page made of it.

Exit status: 0 everything ran, 2 bad input or some row was not run (its reason stands in the row).
"""

import argparse
import fcntl
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, process_time
from typing import Any, Final

import trio

from tests.bench.brokers import run_brokers
from tests.bench.catching_up import BENCHES as CATCH_UP_BENCHES
from tests.bench.draining import run_draining
from tests.bench.estimate import told_time
from tests.bench.heat import LOOK_S
from tests.bench.latency import BENCHES as LATENCY_BENCHES
from tests.bench.ledger import Cell, Ledger, cells, say, started
from tests.bench.machine import ROOT, describe
from tests.bench.mirrors import (
    BUNDLED,
    run_catching_up,
    run_killing,
    run_latency,
    run_relay_alone,
    run_rereading,
    warm_up_mirrored,
)
from tests.bench.neighbours import watched
from tests.bench.page import CHARTS, publish
from tests.bench.plans import RUNS, Extent, Plan, plan_for
from tests.bench.processes import cpu_and_memory
from tests.bench.replicated import run_replicated
from tests.bench.rereading import LAGS, lag_name
from tests.bench.results import DUPLICATES, OURS, RELAY, REREAD, report, was_cut_short
from tests.bench.stage import Room, Stage, apache_stage, bundled_stage
from tests.bench.workloads import DEFAULT_PARTS, Part, Workload, parse_parts, stored_mb

BUILD: Final = ROOT / "build"
OUTPUT: Final = BUILD / "bench.json"
PAGE: Final = BUILD / "benchmarks.md"
LOGS: Final = BUILD / "failed"
"""What systems said that failed in the last benchmark."""
DOCUMENT: Final = ROOT / "docs" / "benchmarks.md"
RECORD: Final = ROOT / "docs" / CHARTS / "full-run.json"
"""The last full run, for others to hold theirs against."""
BAD_INPUT: Final = 2
STOPPED: Final = 130
"""As a shell says of SIGINT; SIGTERM does the same: clusters end, and their data is removed."""
IDLE_S: Final = 1.0
PARTS_HELP: Final = (
    f"some of: {', '.join(part.value for part in Part)}; "
    f"usually {', '.join(part.value for part in DEFAULT_PARTS)}"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        parts = parse_parts(options.only)
    except ValueError as error:
        sys.stderr.write(f"bench: {error}\n")
        return BAD_INPUT
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "bench.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write("bench: another benchmark runs here; two would measure each other\n")
            return BAD_INPUT
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup's shell has it ignored
        status = STOPPED
        try:
            status = _run(options, parts)
        except* KeyboardInterrupt:
            sys.stderr.write("bench: stopped\n")
        return status


def _run(options: argparse.Namespace, parts: Sequence[Part]) -> int:
    plan = plan_for(options.extent, runs=options.runs, parts=parts)
    if LOGS.exists():
        shutil.rmtree(LOGS)
    ledger = Ledger(ends_at=monotonic() + plan.limit_s, logs=LOGS)
    bench = Bench(plan=plan, extent=options.extent, ledger=ledger, machine=describe())
    bench.ledger.harness["share of one processor, doing nothing"] = round(_idle_share(), 3)
    began = monotonic()
    say(f"{options.extent.value}: {told_time(plan, parts)} on two quiet processors")
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder,
        watched(ledger.neighbours, Path(folder) / "neighbours"),
    ):
        for part in parts:
            with ledger.timed(f"part {part.value}"):
                bench.run(part, Path(folder) / part.value)
            bench.save()
    bench.ledger.close()
    content = bench.save()
    say(f"{len(content['rows'])} rows in {monotonic() - began:.0f} s: {OUTPUT}")
    if not bench.is_saved:
        return BAD_INPUT
    if options.extent is not Extent.QUICK and set(parts) >= set(DEFAULT_PARTS):
        publish(content, DOCUMENT)
        RECORD.write_text(OUTPUT.read_text())
    return BAD_INPUT if was_cut_short(content) else 0


@dataclass(slots=True, kw_only=True)
class Bench:
    """One `make bench`."""

    plan: Plan
    extent: Extent
    ledger: Ledger
    machine: dict[str, Any]
    is_saved: bool = True

    def run(self, part: Part, folder: Path) -> None:
        """Run one part; what cannot be run leaves its reason."""
        match part:
            case Part.MIRROR:
                self._mirror(folder)
                self._mirror_between_bundled(folder / "bundled", self.plan.on_bundled)
            case Part.OFFSETS:
                self._offsets(folder)
            case Part.BROKER:
                run_brokers(folder, self.plan.brokers, self.ledger)
            case Part.REPLICATED:
                run_replicated(folder, self.plan.replicated, self.ledger)
            case Part.DRAIN:
                run_draining(folder, self.plan.drain, self.ledger)

    def save(self) -> dict[str, Any]:
        """Write build/bench.json, and the page beside it; return the content."""
        machine = {
            **self.machine,
            "extent": self.extent.value,
            "rounds_wanted": self.plan.rounds.runs,
            "brokers_data": {part: tell() for part, tell in self.ledger.data_places.items()},
            "harness": self.ledger.harness,
        }
        content = report(machine, self.ledger.measured, self.ledger.not_run)
        try:
            OUTPUT.write_text(json.dumps(content, indent=1) + "\n")
            publish(content, PAGE)
        except OSError as fault:  # a full disk; the next part may have cleaned up
            self.is_saved = False
            sys.stderr.write(f"bench: cannot write the results: {fault}\n")
        else:
            self.is_saved = True
        return content

    def _mirror(self, folder: Path) -> None:
        plan, ledger = self.plan, self.ledger
        room = Room(data_mb=stored_mb(plan.catching_up), is_steady=plan.is_memory_held)
        with self._stage(apache_stage(folder, room), Part.MIRROR) as stage:
            if stage is None:
                self._without_apache(folder)
                return
            ledger.data_places["mirror"] = stage.data_is
            warm_up_mirrored(stage, plan.warm_up, ledger)
            with ledger.timed("catching up"):
                for workload in plan.catching_up:
                    run_catching_up(stage, workload, plan.catching_up_systems, plan.rounds, ledger)
                    self.save()
            with ledger.timed("latency"):
                run_latency(stage, plan.rates, plan.steady_systems, plan.latency_rounds, ledger)
            with ledger.timed("kills"):
                for kill in plan.kills:
                    run_killing(stage, kill, plan.steady_systems, plan.kill_rounds, ledger)

    def _without_apache(self, folder: Path) -> None:
        """Run what needs no Apache Kafka: the relay, and ours between bundled brokers."""
        plan = self.plan
        for workload in plan.catching_up:
            run_relay_alone(folder / "relay", workload, plan.rounds, self.ledger)
        if not plan.on_bundled:
            self._mirror_between_bundled(folder / "instead", plan.catching_up)

    def _mirror_between_bundled(self, folder: Path, workloads: Sequence[Workload]) -> None:
        if not workloads:
            return
        plan, ledger = self.plan, self.ledger
        rows = [f"{workload.name}{BUNDLED}" for workload in workloads]
        missing = [cell for row in rows for cell in cells(row, CATCH_UP_BENCHES)]
        running = bundled_stage(folder, Room(data_mb=stored_mb(workloads)))
        with started(running, partial(ledger.miss, OURS, missing)) as stage:
            if stage is not None:
                ledger.data_places["mirror, bundled brokers"] = stage.data_is
            for row, workload in zip(rows, workloads, strict=True):
                if stage is not None:
                    run_catching_up(stage, workload, (OURS,), plan.rounds, ledger, row)

    def _offsets(self, folder: Path) -> None:
        plan = self.plan
        room = Room(data_mb=stored_mb([plan.rereads.workload]))
        with self._stage(apache_stage(folder, room), Part.OFFSETS) as stage:
            if stage is not None:
                self.ledger.data_places["offsets"] = stage.data_is
                run_rereading(
                    stage, plan.rereads, plan.reread_systems, plan.reread_rounds, self.ledger
                )

    def _stage(
        self, running: AbstractContextManager[Stage], part: Part
    ) -> AbstractContextManager[Stage | None]:
        """Start the clusters of a part; without them each of its rows has the reason."""

        def tell(fault: BaseException) -> None:
            for system, rows in rows_of(self.plan, part).items():
                self.ledger.miss(system, rows, fault)

        return started(running, tell, self.ledger.require_time)


def rows_of(plan: Plan, part: Part) -> dict[str, list[Cell]]:
    """Return the rows of a part that need Apache Kafka, by system."""
    if part is Part.OFFSETS:
        return {system: [(lag_name(lag), REREAD) for lag in LAGS] for system in plan.reread_systems}
    mirrors = [system for system in plan.catching_up_systems if system != RELAY]
    rows: dict[str, list[Cell]] = {system: [] for system in mirrors}
    for workload in plan.catching_up:
        for system in mirrors:
            rows[system] += cells(workload.name, CATCH_UP_BENCHES)
    for system in plan.steady_systems:
        for rate in plan.rates:
            rows[system] += cells(rate.name, LATENCY_BENCHES)
        rows[system] += [(kill.name, DUPLICATES) for kill in plan.kills]
    return rows


def _idle_share() -> float:
    """Return what the harness takes while it only waits and looks, as beside an empty run."""
    used = process_time()
    trio.run(_look_at_nothing)
    return (process_time() - used) / IDLE_S


async def _look_at_nothing() -> None:
    deadline = trio.current_time() + IDLE_S
    while trio.current_time() < deadline:
        cpu_and_memory(os.getpid())
        await trio.sleep(LOOK_S)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description="Measure ours beside the others.")
    extent = parser.add_mutually_exclusive_group()
    for each in (Extent.QUICK, Extent.ALL):
        extent.add_argument(f"--{each.value}", dest="extent", action="store_const", const=each)
    parser.set_defaults(extent=Extent.FULL)
    parser.add_argument("--only", metavar="PART", help=PARTS_HELP)
    told = "rounds, at least 1; unless --quick, some parts take four or five in any case"
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=told)
    return parser


if __name__ == "__main__":
    sys.exit(main())
