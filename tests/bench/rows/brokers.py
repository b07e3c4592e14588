"""One broker under load: ours beside Apache Kafka, by turns, with the same clients.

Both run, and one serves at a time: what else runs on the machine is the same for both.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Final, TypeVar

from tests.bench.measure.figures import MEGABYTE
from tests.bench.measure.ledger import Cell, Ledger, cells, expected_faults
from tests.bench.measure.processes import cpu_and_memory
from tests.bench.measure.results import (
    APACHE,
    BROKER_CONSUME,
    BROKER_P99,
    BROKER_PRODUCE,
    BROKER_RSS,
    OURS,
)
from tests.bench.measure.rounds import repeat, rotated
from tests.bench.measure.workloads import BASE, GIB, KIB, MIB, Workload, stored_mb
from tests.bench.rows.latency import Latency, Rate, measure
from tests.bench.stage.clusters import run_apache, run_bundled, scratch, warm_up
from tests.bench.stage.filling import drain, fill
from tests.bench.stage.served import Served, create_topic, delete_topics
from tests.interop.peers.resources import require_disk
from wire.compression import Compression

T = TypeVar("T")

SYSTEMS: Final = (OURS, APACHE)
RATE_BENCHES: Final = (BROKER_PRODUCE, BROKER_CONSUME, BROKER_RSS)
LATENCY_BENCHES: Final = (BROKER_P99,)
LATENCY_TOPIC: Final = "bench-latency"
PASSES: Final = 5
"""How often each does everything in one round, for the median: one hiccup of the machine in the
second that it takes would be the figure."""
LATENCY_PASSES: Final = 3
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
    runs: int
    warm_up_passes: int = WARM_UP_PASSES
    """How often a broker is written to and read before anything is measured."""
    passes: int = PASSES
    latency_passes: int = LATENCY_PASSES


def run_brokers(folder: Path, plan: BrokerPlan, ledger: Ledger) -> None:
    """Run the part `broker`: fresh ones in each round, which serve by turns."""

    def one_round(usable: Sequence[str], turn: int) -> list[str]:
        with scratch(folder / f"round-{turn}") as place, ExitStack() as stack:
            running: dict[str, Served] = {}
            for system in rotated(usable, turn):
                tell = partial(ledger.miss, system, all_cells(plan))
                warm = _warm(place, system, plan, ledger)
                broker = stack.enter_context(ledger.started(warm, tell))
                if broker is not None:
                    running[system] = broker
            for workload in plan.workloads:
                _serve(running, workload, turn, plan.passes, ledger)
            for rate in plan.rates:
                _answer(running, rate, turn, plan.latency_passes, ledger)
        return list(running)

    repeat(plan.runs, SYSTEMS, all_cells(plan), one_round, ledger)


def all_cells(plan: BrokerPlan) -> list[Cell]:
    """Return every row of the part."""
    rows = [cells(workload.name, RATE_BENCHES) for workload in plan.workloads]
    rows += [cells(rate.name, LATENCY_BENCHES) for rate in plan.rates]
    return [cell for row in rows for cell in row]


@contextmanager
def _warm(folder: Path, system: str, plan: BrokerPlan, ledger: Ledger) -> Iterator[Served]:
    """Run a broker that has worked a little: Java compiles what it sees often."""
    require_disk(folder, stored_mb(plan.workloads))
    running: AbstractContextManager[Served] = (
        run_bundled(folder, system) if system == OURS else run_apache(folder, system)
    )
    with running as broker:
        warm_up(broker)
        for number in range(plan.warm_up_passes):
            write_and_read(broker, plan.workloads[number % len(plan.workloads)], ledger)
        yield broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What writing a topic and reading it gave once."""

    written_s: float
    read_s: float
    resident_bytes: int


def _serve(
    running: Mapping[str, Served], workload: Workload, turn: int, passes: int, ledger: Ledger
) -> None:
    """Write and read topics at each broker by turns; memory is looked at behind all of it."""

    def once(system: str) -> Pass:
        return write_and_read(running[system], workload, ledger)

    megabytes = workload.value_bytes / MEGABYTE
    missing = cells(workload.name, RATE_BENCHES)
    for system, found in by_turns(passes, running, missing, once, ledger).items():
        figures = {
            (workload.name, BROKER_PRODUCE): megabytes / median(each.written_s for each in found),
            (workload.name, BROKER_CONSUME): megabytes / median(each.read_s for each in found),
            (workload.name, BROKER_RSS): found[-1].resident_bytes / MEGABYTE,
        }
        ledger.add(system, turn, figures)


def _answer(
    running: Mapping[str, Served], rate: Rate, turn: int, passes: int, ledger: Ledger
) -> None:
    """Write at a rate to each broker by turns."""

    def once(system: str) -> Latency:
        return latency_at(running[system], rate, ledger)

    missing = cells(rate.name, LATENCY_BENCHES)
    for system, found in by_turns(passes, running, missing, once, ledger).items():
        figures = {(rate.name, BROKER_P99): median(each.p99 for each in found)}
        ledger.add(system, turn, figures)


def by_turns(
    count: int,
    systems: Iterable[str],
    missing: Sequence[Cell],
    once: Callable[[str], T],
    ledger: Ledger,
) -> Mapping[str, Sequence[T]]:
    """Let systems do it by turns; who fails once has nothing for these cells."""
    found: dict[str, list[T]] = {system: [] for system in systems}
    for number in range(count):
        for system in rotated(list(found), number):
            faults: list[Exception] = []
            with expected_faults(faults.append):
                ledger.require_time()
                found[system].append(once(system))
            for fault in faults:
                ledger.miss(system, missing, fault)
                del found[system]
    return found


def write_and_read(broker: Served, workload: Workload, ledger: Ledger) -> Pass:
    """Write a new topic and read it, and delete it."""
    [pid] = broker.pids.values()
    each = workload.records_per_batch * workload.batches_per_partition
    topic = f"{workload.topic}-{int(monotonic() * 1000)}"
    create_topic(broker, topic, workload.partitions)
    try:
        written_s = ledger.run(fill, broker, topic, workload)
        read_s = ledger.run(drain, broker, topic, [each] * workload.partitions)
        _, resident = cpu_and_memory(pid)
    finally:
        delete_topics(broker)
    return Pass(written_s=written_s, read_s=read_s, resident_bytes=resident)


def latency_at(broker: Served, rate: Rate, ledger: Ledger) -> Latency:
    """Write a new topic at a rate while it is read, and delete it."""
    place = (broker, f"{LATENCY_TOPIC}-{int(monotonic() * 1000)}")
    create_topic(*place, 1)
    try:
        return measure(rate, place, place, ledger)
    finally:
        delete_topics(broker)
