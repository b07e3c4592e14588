"""The parts `mirror` and `offsets`: ours and MirrorMaker 2 by turns between the same clusters."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from tests.bench.catching_up import BENCHES as CATCH_UP_BENCHES
from tests.bench.catching_up import Outcome, catch_up, figures, relay_alone
from tests.bench.filling import fill
from tests.bench.killing import Kill, kill_and_count
from tests.bench.latency import BENCHES as LATENCY_BENCHES
from tests.bench.latency import Place, Rate, measure, mirror_for_rates
from tests.bench.ledger import (
    Cell,
    Ledger,
    cells,
    is_expected,
    is_unavailable,
    reason_of,
    say,
    started,
)
from tests.bench.rereading import LAGS, Reread, lag_name, reread_after_failover
from tests.bench.results import (
    DUPLICATES,
    MIRROR_P50,
    MIRROR_P99,
    RELAY,
    REREAD,
)
from tests.bench.rounds import Rounds, all_at_once, in_turns, repeat
from tests.bench.served import create_topic
from tests.bench.stage import Stage
from tests.bench.workloads import BASE, Workload

BUNDLED: Final = ", bundled brokers"
DIRECT: Final = "bench-direct"


def run_catching_up(
    stage: Stage,
    workload: Workload,
    systems: Sequence[str],
    rounds: Rounds,
    ledger: Ledger,
    name: str | None = None,
) -> None:
    """Fill a topic once and let the systems mirror it; `name` if it is not the workload's own."""
    row = name or workload.name

    def one_round(usable: Sequence[str], turn: int) -> list[str]:
        race = partial(catch_up, stage, usable, workload, turn, ledger)
        return _take(race, row, usable, turn, ledger)

    with ledger.guard(systems, cells(row, CATCH_UP_BENCHES)), _filled(stage, workload):
        repeat(row, systems, rounds, one_round)


def run_relay_alone(folder: Path, workload: Workload, rounds: Rounds, ledger: Ledger) -> None:
    """Measure the relay where there are no clusters for the others."""

    def one_round(usable: Sequence[str], turn: int) -> list[str]:
        race = partial(relay_alone, folder, workload, ledger)
        return _take(race, workload.name, usable, turn, ledger)

    repeat(workload.name, (RELAY,), rounds, one_round)


def _take(
    race: Callable[[], Mapping[str, Outcome]],
    row: str,
    systems: Sequence[str],
    turn: int,
    ledger: Ledger,
) -> list[str]:
    """Take what each system gave; return those that can be had on this machine."""
    try:
        ledger.require_time()
        found = race()
    except Exception as fault:
        if not is_expected(fault):
            raise
        found = dict.fromkeys(systems, fault)
    for system, outcome in found.items():
        if isinstance(outcome, Exception):
            ledger.miss(system, cells(row, CATCH_UP_BENCHES), outcome)
        else:
            ledger.add(system, turn, figures(row, outcome))
    return [
        system
        for system, outcome in found.items()
        if not (isinstance(outcome, Exception) and is_unavailable(outcome))
    ]


def warm_up_mirrored(stage: Stage, heats: Iterable[Sequence[str]], ledger: Ledger) -> None:
    """Let both clusters serve heats that do not count: Java's brokers become twice as fast."""
    try:
        with _filled(stage, BASE):
            for systems in heats:
                catch_up(stage, systems, BASE, 0, ledger)
    except Exception as fault:
        if not is_expected(fault):
            raise
        say(f"not warmed up: {reason_of(fault)}")  # whoever cannot run will say so in its row


def run_latency(
    stage: Stage, rates: Sequence[Rate], systems: Sequence[str], rounds: Rounds, ledger: Ledger
) -> None:
    """Measure each system's latency at the rates, and what of it is the harness and the brokers."""
    all_rates = [cell for rate in rates for cell in cells(rate.name, LATENCY_BENCHES)]

    def attempt(system: str, turn: int) -> bool:
        faults: list[BaseException] = []
        running = mirror_for_rates(stage, system, rates)
        with (
            ledger.guard([system], all_rates),
            started(running, faults.append, ledger.require_time) as places,
        ):
            for rate, (source, target) in zip(rates, places or (), strict=places is not None):
                run = partial(_latency, rate, source, target, ledger)
                ledger.try_run(system, turn, cells(rate.name, LATENCY_BENCHES), run)
        for fault in faults:
            ledger.miss(system, all_rates, fault)
        return not any(map(is_unavailable, faults))

    with ledger.guard(systems, all_rates):
        for rate in rates:
            _measure_without_mirror(stage, rate, ledger)
        in_turns("latency", systems, rounds, attempt)


def _latency(rate: Rate, source: Place, target: Place, ledger: Ledger) -> Mapping[Cell, float]:
    found = measure(rate, source, target, ledger)
    return {(rate.name, MIRROR_P50): found.p50, (rate.name, MIRROR_P99): found.p99}


def run_killing(
    stage: Stage, kill: Kill, systems: Sequence[str], rounds: Rounds, ledger: Ledger
) -> None:
    """Kill each system in mid-stream and count what is there twice.

    All systems are at it at once: what is counted does not depend on speed.
    """

    def attempt(system: str, turn: int) -> bool:
        def run() -> Mapping[Cell, float]:
            return {(kill.name, DUPLICATES): kill_and_count(stage, system, kill, ledger)}

        return ledger.try_run(system, turn, [(kill.name, DUPLICATES)], run)

    with ledger.guard(systems, [(kill.name, DUPLICATES)]):
        all_at_once(kill.name, systems, rounds, attempt, stage.clean)


def run_rereading(
    stage: Stage, reread: Reread, systems: Sequence[str], rounds: Rounds, ledger: Ledger
) -> None:
    """Let groups fail over behind each system, at each lag; all systems are at it at once."""
    all_lags = [(lag_name(lag), REREAD) for lag in LAGS]

    def attempt(system: str, turn: int) -> bool:
        def run() -> Mapping[Cell, float]:
            found = reread_after_failover(stage, system, reread, ledger)
            return {(lag_name(lag), REREAD): records for lag, records in found.items()}

        return ledger.try_run(system, turn, all_lags, run)

    with ledger.guard(systems, all_lags):
        all_at_once("re-read after failover", systems, rounds, attempt, stage.clean)


def _measure_without_mirror(stage: Stage, rate: Rate, ledger: Ledger) -> None:
    """Note what of every latency is the harness and one broker."""
    create_topic(stage.source, DIRECT, 1)
    at_source = (stage.source, DIRECT)
    direct = measure(rate, at_source, at_source, ledger)
    ledger.harness[f"without a mirror, {rate.name}, p50 ms"] = round(direct.p50, 2)
    ledger.harness[f"without a mirror, {rate.name}, p99 ms"] = round(direct.p99, 2)
    stage.clean()


@contextmanager
def _filled(stage: Stage, workload: Workload) -> Iterator[None]:
    """Keep a topic full of a workload on the source until the block ends."""
    stage.kept.add(workload.topic)
    try:
        create_topic(stage.source, workload.topic, workload.partitions)
        trio.run(fill, stage.source, workload.topic, workload)
        os.sync()  # or it is written to the disk while the first system is measured
        yield
    finally:
        stage.kept.discard(workload.topic)
        stage.clean()
