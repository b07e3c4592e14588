"""One broker under load: ours beside Apache Kafka, each alone with the same clients."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Final

from tests.bench.calm import calmest, share_of
from tests.bench.figures import MEGABYTE
from tests.bench.filling import drain, fill
from tests.bench.latency import Latency, Rate, measure
from tests.bench.ledger import Cell, Ledger, cells, started
from tests.bench.processes import cpu_and_memory
from tests.bench.results import (
    APACHE,
    BROKER_CONSUME,
    BROKER_P99,
    BROKER_PRODUCE,
    BROKER_RSS,
    OURS,
)
from tests.bench.rounds import Rounds, in_turns
from tests.bench.served import Served, create_topic, delete_topics
from tests.bench.stage import run_apache, run_bundled, warm_up
from tests.bench.workloads import BASE, GIB, KIB, MIB, Workload, disk_mb
from tests.interop.peers.resources import require_disk
from wire.compression import Compression

SYSTEMS: Final = (OURS, APACHE)
RATE_BENCHES: Final = (BROKER_PRODUCE, BROKER_CONSUME, BROKER_RSS)
LATENCY_BENCHES: Final = (BROKER_P99,)
LATENCY_TOPIC: Final = "bench-latency"
PASSES: Final = 3
"""How often everything is done in one round, for the median: one hiccup of the machine in the
second that it takes would be the figure."""
WARM_UP_PASSES: Final = 12
"""A broker on Java falls to half its speed some 15 s after its first record, for about 10 s, in
each start (measured: 675 MB/s written, then 245 and 347, then 670 for good)."""

FULL: Final = (
    replace(BASE, batch_bytes=100 * KIB, data_bytes=GIB),
    replace(BASE, codec=Compression.LZ4, data_bytes=GIB),
    replace(BASE, batch_bytes=0, data_bytes=64 * MIB),
)
QUICK: Final = (replace(BASE, batch_bytes=100 * KIB, data_bytes=256 * MIB),)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlan:
    """What to run and how often."""

    workloads: Sequence[Workload]
    rates: Sequence[Rate]
    rounds: Rounds
    warm_up_passes: int = WARM_UP_PASSES
    """How often a broker is written to and read before anything is measured."""


def run_brokers(folder: Path, plan: BrokerPlan, ledger: Ledger) -> None:
    """Run the part `broker`."""

    def attempt(system: str, turn: int) -> bool:
        return _run_one(folder / f"round-{turn}", system, turn, plan, ledger)

    in_turns("broker", SYSTEMS, plan.rounds, attempt)


def all_cells(plan: BrokerPlan) -> list[Cell]:
    """Return every row of the part."""
    rows = [cells(workload.name, RATE_BENCHES) for workload in plan.workloads]
    rows += [cells(rate.name, LATENCY_BENCHES) for rate in plan.rates]
    return [cell for row in rows for cell in row]


def _run_one(folder: Path, system: str, turn: int, plan: BrokerPlan, ledger: Ledger) -> bool:
    """Run everything on one fresh broker; return whether to try this system again."""
    tell = partial(ledger.miss, system, all_cells(plan))
    with started(_warm(folder, system, plan, ledger), tell, ledger.require_time) as broker:
        if broker is None:
            return False
        for workload in plan.workloads:
            serve = partial(_rates, broker, workload, ledger)
            ledger.try_run(system, turn, cells(workload.name, RATE_BENCHES), serve)
        for rate in plan.rates:
            answer = partial(_latency, broker, rate, ledger)
            ledger.try_run(system, turn, cells(rate.name, LATENCY_BENCHES), answer)
    shutil.rmtree(folder)
    return True


@contextmanager
def _warm(folder: Path, system: str, plan: BrokerPlan, ledger: Ledger) -> Iterator[Served]:
    """Run a broker that has worked a little: Java compiles what it sees often."""
    folder.mkdir(parents=True, exist_ok=True)
    require_disk(folder, disk_mb(plan.workloads))
    running: AbstractContextManager[Served] = (
        run_bundled(folder, system) if system == OURS else run_apache(folder, system)
    )
    with running as broker:
        warm_up(broker)
        for number in range(plan.warm_up_passes):
            _write_and_read(broker, plan.workloads[number % len(plan.workloads)], ledger)
        yield broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What writing a topic and reading it gave once."""

    written_s: float
    read_s: float
    resident_bytes: int
    calm_share: float


def _rates(broker: Served, workload: Workload, ledger: Ledger) -> dict[Cell, float]:
    """Return what writing and then reading topics gives; memory is looked at behind all of it."""
    once = partial(_write_and_read, broker, workload, ledger)
    found = [calmest(once, lambda each: each.calm_share, ledger.tries) for _ in range(PASSES)]
    megabytes = workload.value_bytes / MEGABYTE
    return {
        (workload.name, BROKER_PRODUCE): megabytes / median(each.written_s for each in found),
        (workload.name, BROKER_CONSUME): megabytes / median(each.read_s for each in found),
        (workload.name, BROKER_RSS): found[-1].resident_bytes / MEGABYTE,
    }


def _write_and_read(broker: Served, workload: Workload, ledger: Ledger) -> Pass:
    [pid] = broker.pids.values()
    each = workload.records_per_batch * workload.batches_per_partition
    began = monotonic()
    topic = f"{workload.topic}-{int(began * 1000)}"
    create_topic(broker, topic, workload.partitions)
    try:
        written_s = ledger.run(fill, broker, topic, workload)
        read_s = ledger.run(drain, broker, topic, [each] * workload.partitions)
        ended = monotonic()
        _, resident = cpu_and_memory(pid)
    finally:
        delete_topics(broker)
    return Pass(
        written_s=written_s,
        read_s=read_s,
        resident_bytes=resident,
        calm_share=share_of(ledger.neighbours.calm(began, ended), began, ended),
    )


def _latency(broker: Served, rate: Rate, ledger: Ledger) -> dict[Cell, float]:
    def once() -> Latency:
        place = (broker, f"{LATENCY_TOPIC}-{int(monotonic() * 1000)}")
        create_topic(*place, 1)
        try:
            return measure(rate, place, place, ledger)
        finally:
            delete_topics(broker)

    found = [calmest(once, lambda each: each.calm_share, ledger.tries) for _ in range(PASSES)]
    return {(rate.name, BROKER_P99): median(each.p99 for each in found)}
