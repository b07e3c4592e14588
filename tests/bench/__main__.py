"""`make bench`: measure, write build/bench.json, and the page made of it.

Exit status: 0 everything ran, 2 bad input or some round has no figure (its reason stands in the
row).
"""

import argparse
import fcntl
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from tests.bench.measure.ledger import Ledger, reason_of, say
from tests.bench.measure.machine import KIND, MM2_VERSION, ROOT, describe, load
from tests.bench.measure.results import MIRROR_CPU, OURS, RELAY, report, told_ratios
from tests.bench.measure.workloads import DEFAULT_PARTS, Part, Workload, parse_parts, stored_mb
from tests.bench.page.publish import publish
from tests.bench.plans import (
    BUNDLED,
    FULL_MIN,
    PATIENCE,
    QUICK_MIN,
    QUICK_RUNS,
    RUNS,
    Plan,
    plan_for,
)
from tests.bench.rows.auditing import run_auditing, run_growth
from tests.bench.rows.brokers import run_brokers
from tests.bench.rows.catching_up import run_catching_up, run_relay_alone, warm_up_mirrored
from tests.bench.rows.draining import run_draining
from tests.bench.rows.forwarding import run_forwarded
from tests.bench.rows.killing import run_killing
from tests.bench.rows.latency import run_latency
from tests.bench.rows.replicated import run_replicated
from tests.bench.rows.rereading import run_rereading
from tests.bench.stage.clusters import apache_stage, bundled_stage
from tests.bench.stage.earlier import UnknownRevision, check_out
from tests.interop.peers import PeerUnavailable
from tests.interop.peers.artifacts import class_path, mirror_maker_class_path

BUILD: Final = ROOT / "build"
OUTPUT: Final = BUILD / "bench.json"
PAGE: Final = BUILD / "benchmarks.md"
LOGS: Final = BUILD / "failed"
"""What systems said that failed in the last benchmark."""
EARLIER: Final = BUILD / "earlier"
"""Checkouts of other commits."""
BAD_INPUT: Final = 2
FURTHER_PARTS: Final = tuple(part for part in Part if part not in DEFAULT_PARTS)
STOPPED: Final = 130
"""As a shell says of SIGINT; SIGTERM does the same: clusters end, and their data is removed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        parts = [Part.MIRROR] if options.against else parse_parts(options.only)
        earlier = check_out(options.against, EARLIER) if options.against else None
    except (ValueError, UnknownRevision) as error:
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
            status = _run(options, parts, earlier)
        except* KeyboardInterrupt:
            sys.stderr.write("bench: stopped\n")
        return status


def _run(options: argparse.Namespace, parts: Sequence[Part], earlier: Path | None) -> int:
    plan = plan_for(is_quick=options.quick, runs=options.runs, is_against=earlier is not None)
    if LOGS.exists():
        shutil.rmtree(LOGS)
    bench = Bench(plan=plan, ledger=Ledger(logs=LOGS), machine=describe(), earlier=earlier)
    began = monotonic()
    say(f"{plan.runs} rounds each; {_minutes(plan.minutes, parts)}")
    _fetch_peers()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        for part in parts:
            bench.run(part, Path(folder) / part.value)
            bench.save()
    bench.ledger.close()
    content = bench.save()
    for line in told_ratios(content, MIRROR_CPU):
        say(f"processor time, {line}")
    say(f"{len(content['rows'])} rows in {monotonic() - began:.0f} s: {OUTPUT}")
    if not bench.is_saved:
        return BAD_INPUT
    if not (options.quick or earlier) and set(parts) >= set(DEFAULT_PARTS):
        publish(content)
    return bench.ledger.status


def _fetch_peers() -> None:
    """Have the peers on this machine before the time of a part runs."""
    try:
        class_path(KIND.version)
        mirror_maker_class_path(MM2_VERSION)
    except (OSError, PeerUnavailable) as fault:
        say(f"no peers: {reason_of(fault)}")  # as the rows of the peers will say


@dataclass(slots=True, kw_only=True)
class Bench:
    """One `make bench`."""

    plan: Plan
    ledger: Ledger
    machine: dict[str, Any]
    earlier: Path | None = None
    """The checkout of another commit, which takes part."""
    is_saved: bool = True

    def run(self, part: Part, folder: Path) -> None:
        """Run one part; what has no figure leaves its reason."""
        with self.ledger.part(part.value, self.plan.rows(part), self.plan.limit_s(part)):
            match part:
                case Part.MIRROR:
                    self._mirror(folder)
                case Part.OFFSETS:
                    self._offsets(folder)
                case Part.BROKER:
                    run_brokers(folder, self.plan.brokers, self.ledger)
                case Part.REPLICATED:
                    run_replicated(folder, self.plan.replicated, self.ledger)
                case Part.DRAIN:
                    run_draining(folder, self.plan.drain, self.ledger)
                case Part.AUDIT:
                    run_auditing(folder, self.plan.audit, self.ledger)
                case Part.GROWTH:
                    run_growth(folder, self.plan.audit, self.ledger)
                case Part.FORWARD:
                    run_forwarded(folder, self.plan.brokers, self.ledger)

    def save(self) -> dict[str, Any]:
        """Write build/bench.json, and the page beside it; return the content."""
        machine = {
            **self.machine,
            "load_at_end": load(),
            "rounds_wanted": self.plan.runs,
            "harness": self.ledger.harness,
        }
        content = report(machine, self.ledger.measured, self.ledger.missed)
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
        """Run what takes a known time first: full topics take what is left of the part."""
        plan, ledger = self.plan, self.ledger
        running = apache_stage(folder, stored_mb(plan.catching_up))
        with ledger.started(running, partial(self._tell, Part.MIRROR)) as stage:
            if stage is not None:
                stage.earlier = self.earlier
                warm_up_mirrored(stage, plan.catching_up[0], plan.warm_up, ledger)
                with ledger.timed("latency"):
                    run_latency(stage, plan.rates, plan.steady_systems, plan.runs, ledger)
                with ledger.timed("kills"):
                    run_killing(stage, plan.kill, plan.steady_systems, plan.runs, ledger)
                with ledger.timed("catching up"):
                    for workload in plan.catching_up:
                        run_catching_up(stage, workload, plan.mirrors, plan.runs, ledger)
                        self._tell_ratios(workload)
        on_bundled = plan.on_bundled
        if stage is None:
            for workload in plan.catching_up:
                run_relay_alone(folder / "relay", workload, plan.runs, ledger)
            on_bundled = on_bundled or plan.catching_up
        if on_bundled:
            self._mirror_between_bundled(folder / "bundled", on_bundled)

    def _tell_ratios(self, workload: Workload) -> None:
        for line in told_ratios(self.save(), MIRROR_CPU):
            if line.startswith(f"{workload.name}:"):
                say(f"  {line}")

    def _mirror_between_bundled(self, folder: Path, workloads: Sequence[Workload]) -> None:
        plan, ledger = self.plan, self.ledger
        tell = partial(ledger.miss, OURS, plan.bundled_rows(workloads))
        with ledger.started(bundled_stage(folder, stored_mb(workloads)), tell) as stage:
            if stage is not None:
                for workload in workloads:
                    row = f"{workload.name}{BUNDLED}"
                    run_catching_up(stage, workload, (OURS,), plan.runs, ledger, row)

    def _offsets(self, folder: Path) -> None:
        plan = self.plan
        running = apache_stage(folder, stored_mb([plan.rereads.workload]))
        with self.ledger.started(running, partial(self._tell, Part.OFFSETS)) as stage:
            if stage is not None:
                run_rereading(stage, plan.rereads, plan.reread_systems, plan.runs, self.ledger)

    def _tell(self, part: Part, fault: BaseException) -> None:
        """Give the reason why the clusters of a part did not start to the rows that need them."""
        for system, rows in self.plan.rows(part).items():
            if system != RELAY:
                needing = [cell for cell in rows if not cell[0].endswith(BUNDLED)]
                self.ledger.miss(system, needing, fault)


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1 round is needed")
    return int(text)


def _minutes(minutes: Mapping[Part, float], parts: Sequence[Part]) -> str:
    each = ", ".join(f"{part.value} {minutes[part]:g}" for part in parts)
    usual = sum(minutes[part] for part in parts)
    return f"about {usual:g} minutes ({each}), at most about {usual * PATIENCE:g}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Measure ours beside the others: the same machine, data and run.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"On two processors with little else to do, {RUNS} rounds take\n"
        f"  {_minutes(FULL_MIN, DEFAULT_PARTS)};\n"
        f"  {_minutes(FULL_MIN, FURTHER_PARTS)};\n"
        f"with --quick, {QUICK_RUNS} rounds take\n"
        f"  {_minutes(QUICK_MIN, DEFAULT_PARTS)};\n"
        f"  {_minutes(QUICK_MIN, FURTHER_PARTS)}.\n"
        "A round that does not fit into the time of its part leaves `no figure: <why>`.",
    )
    parser.add_argument("--quick", action="store_true", help="one workload of each part")
    known = ", ".join(part.value for part in Part)
    usual = ", ".join(part.value for part in DEFAULT_PARTS)
    parser.add_argument("--only", metavar="PART", help=f"some of: {known}; usually {usual}")
    parser.add_argument("--against", metavar="REV", help="beside this commit, and nobody else")
    parser.add_argument("--runs", type=_count, metavar="N", help="rounds, at least 1")
    return parser


if __name__ == "__main__":
    sys.exit(main())
