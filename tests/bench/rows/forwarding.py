"""The part `forward`: a broker itself, and the same through `failover bootstrap`, by turns."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from runtime.coordination.witness import ActiveSite, WitnessPaths
from tests.bench.measure.figures import MEGABYTE
from tests.bench.measure.ledger import Cell, Ledger, cells
from tests.bench.measure.results import BROKER_CONSUME, BROKER_P99, BROKER_PRODUCE, DIRECT, OURS
from tests.bench.measure.rounds import repeat
from tests.bench.measure.workloads import Workload
from tests.bench.rows.brokers import BrokerPlan, Pass, by_turns, latency_at, write_and_read
from tests.bench.rows.latency import Latency, Rate
from tests.bench.stage.clusters import run_bundled, scratch, warm_up
from tests.bench.stage.served import Served
from tests.dc_yaml import dc_yaml
from tests.failover.bootstrap.served import run_forwarding
from tests.zookeeper import look, run_witness

SYSTEMS: Final = (OURS, DIRECT)
RATES: Final = (BROKER_PRODUCE, BROKER_CONSUME)
LATENCIES: Final = (BROKER_P99,)
FORWARDED: Final = ", forwarded"
"""What the names of these rows end with."""
PATH: Final = "/bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Through:
    """A broker as clients of an endpoint see it."""

    bootstrap: str
    pids: dict[int, int]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        host, _, port = self.bootstrap.rpartition(":")
        return [(host, int(port))]


def run_forwarded(folder: Path, plan: BrokerPlan, ledger: Ledger) -> None:
    """Run the part: a fresh broker and a fresh endpoint in each round."""

    def one_round(usable: Sequence[str], turn: int) -> list[str]:
        with scratch(folder / f"round-{turn}") as place:
            tell = partial(_miss, ledger, usable, all_cells(plan))
            with ledger.started(_both(place), tell) as both:
                running = {system: both[system] for system in usable} if both else {}
                _measure(running, plan, turn, ledger)
        return list(running)

    repeat(plan.runs, SYSTEMS, all_cells(plan), one_round, ledger)


def _miss(
    ledger: Ledger, systems: Sequence[str], missing: Sequence[Cell], why: BaseException
) -> None:
    for system in systems:
        ledger.miss(system, missing, why)


def all_cells(plan: BrokerPlan) -> list[Cell]:
    """Return every row of the part."""
    rows = [cells(f"{each.name}{FORWARDED}", RATES) for each in plan.workloads]
    rows += [cells(f"{each.name}{FORWARDED}", LATENCIES) for each in plan.rates]
    return [cell for row in rows for cell in row]


@contextmanager
def _both(folder: Path) -> Iterator[dict[str, Served]]:
    """Run a broker that has worked a little, and an endpoint that forwards to it."""
    with run_bundled(folder, "dc1") as broker, run_witness(folder / "witness") as witness:
        file = folder / "dc.yaml"
        file.write_text(dc_yaml(dc1=broker.bootstrap, witness=witness, path=PATH, failover={}))
        client = look(witness)
        client.start()
        active = ActiveSite(site="dc1", epoch=1)
        client.create(WitnessPaths(root=PATH).active, active.encode(), makepath=True)
        client.stop()
        with run_forwarding(file, folder) as (address, pid):
            through = Through(bootstrap=address, pids={0: pid})
            warm_up(through)
            warm_up(broker)
            yield {OURS: through, DIRECT: broker}


def _measure(running: Mapping[str, Served], plan: BrokerPlan, turn: int, ledger: Ledger) -> None:
    for workload in plan.workloads:
        _serve(running, workload, turn, plan.passes, ledger)
    for rate in plan.rates:
        _answer(running, rate, turn, plan.latency_passes, ledger)


def _serve(
    running: Mapping[str, Served], workload: Workload, turn: int, passes: int, ledger: Ledger
) -> None:
    name = f"{workload.name}{FORWARDED}"

    def once(system: str) -> Pass:
        return write_and_read(running[system], workload, ledger)

    megabytes = workload.value_bytes / MEGABYTE
    for system, found in by_turns(passes, running, cells(name, RATES), once, ledger).items():
        figures = {
            (name, BROKER_PRODUCE): megabytes / median(each.written_s for each in found),
            (name, BROKER_CONSUME): megabytes / median(each.read_s for each in found),
        }
        ledger.add(system, turn, figures)


def _answer(
    running: Mapping[str, Served], rate: Rate, turn: int, passes: int, ledger: Ledger
) -> None:
    name = f"{rate.name}{FORWARDED}"

    def once(system: str) -> Latency:
        return latency_at(running[system], rate, ledger)

    for system, found in by_turns(passes, running, cells(name, LATENCIES), once, ledger).items():
        ledger.add(system, turn, {(name, BROKER_P99): median(each.p99 for each in found)})
