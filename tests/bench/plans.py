"""What `make bench` and `QUICK=1` do, and how long each part may take. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.bench.measure.ledger import Cell, cells
from tests.bench.measure.results import (
    DUPLICATES,
    MM2_DEFAULT,
    MM2_TUNED,
    OURS,
    OURS_EARLIER,
    OURS_IN_PYTHON,
    RELAY,
    REREAD,
)
from tests.bench.measure.workloads import BASE, GIB, KIB, MIB, Part, Workload, one_at_a_time, quick
from tests.bench.rows import (
    auditing,
    brokers,
    catching_up,
    draining,
    forwarding,
    latency,
    replicated,
    rereading,
)
from tests.bench.rows.auditing import AuditPlan
from tests.bench.rows.brokers import BrokerPlan
from tests.bench.rows.draining import DrainPlan
from tests.bench.rows.killing import Kill
from tests.bench.rows.latency import Rate
from tests.bench.rows.replicated import ReplicatedPlan
from tests.bench.rows.rereading import LAGS, Reread, lag_name
from wire.compression import Compression

RUNS: Final = 3
QUICK_RUNS: Final = 2
WARM_UP_COPIES: Final = 3
"""Of all systems: what brokers' Java has compiled for one of them is not what all need."""
WARM_UP_AT_RATE_S: Final = 10.0
"""With 3 s at 5,000 records/s the slowest hundredth of MirrorMaker at its defaults took between 12
and 40 ms, a start each: Java was still compiling."""
DRAINED: Final = tuple(
    replace(BASE, **different)
    for different in ({}, {"codec": Compression.LZ4}, {"batch_bytes": 100 * KIB})
)
MIRRORS: Final = (OURS, MM2_DEFAULT, MM2_TUNED)
BUNDLED: Final = ", bundled brokers"

FULL_MIN: Final[Mapping[Part, float]] = {
    Part.MIRROR: 50,
    Part.BROKER: 12,
    Part.OFFSETS: 7,
    Part.REPLICATED: 8,
    Part.DRAIN: 35,
    Part.AUDIT: 9,
    Part.GROWTH: 5,
    Part.FORWARD: 4,
}
"""Minutes that a part takes on two processors with little else to do."""
QUICK_MIN: Final[Mapping[Part, float]] = {
    Part.MIRROR: 9,
    Part.BROKER: 1,
    Part.OFFSETS: 1.5,
    Part.REPLICATED: 1.5,
    Part.DRAIN: 3,
    Part.AUDIT: 2,
    Part.GROWTH: 1,
    Part.FORWARD: 1,
}
PATIENCE: Final = 3.0
"""Times these minutes: no run of a part begins later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is run, by whom, and how often."""

    runs: int
    minutes: Mapping[Part, float]
    catching_up: Sequence[Workload]
    mirrors: Sequence[str]
    """Who copies these."""
    on_bundled: Sequence[Workload]
    warm_up: Sequence[Sequence[str]]
    """Copies that do not count, so that the brokers become as fast as they get."""
    rates: Sequence[Rate]
    kill: Kill
    steady_systems: Sequence[str]
    """Who takes part in latency and kills."""
    rereads: Reread
    reread_systems: Sequence[str]
    brokers: BrokerPlan
    replicated: ReplicatedPlan
    drain: DrainPlan
    audit: AuditPlan

    def limit_s(self, part: Part) -> float:
        """Return how long after its start a part begins nothing more."""
        return self.minutes[part] * 60 * PATIENCE

    def rows(self, part: Part) -> dict[str, list[Cell]]:
        """Return the rows of a part by system."""
        rows: Mapping[Part, Callable[[], dict[str, list[Cell]]]] = {
            Part.MIRROR: self._mirror_rows,
            Part.OFFSETS: lambda: {
                system: [(lag_name(lag), REREAD) for lag in LAGS] for system in self.reread_systems
            },
            Part.BROKER: lambda: dict.fromkeys(brokers.SYSTEMS, brokers.all_cells(self.brokers)),
            Part.REPLICATED: lambda: dict.fromkeys(
                replicated.SYSTEMS, replicated.all_cells(self.replicated)
            ),
            Part.DRAIN: lambda: dict.fromkeys(draining.SYSTEMS, draining.all_cells(self.drain)),
            Part.AUDIT: lambda: auditing.audit_cells(self.audit),
            Part.GROWTH: lambda: auditing.growth_cells(self.audit),
            Part.FORWARD: lambda: dict.fromkeys(
                forwarding.SYSTEMS, forwarding.all_cells(self.brokers)
            ),
        }
        return rows[part]()

    def _mirror_rows(self) -> dict[str, list[Cell]]:
        full = [
            cell
            for workload in self.catching_up
            for cell in cells(workload.name, catching_up.BENCHES)
        ]
        rows = {system: list(full) for system in self.mirrors}
        for system in self.steady_systems:
            for rate in self.rates:
                rows[system] += cells(rate.name, latency.BENCHES)
            rows[system].append((self.kill.name, DUPLICATES))
        rows[OURS] += self.bundled_rows(self.on_bundled)
        return rows

    def bundled_rows(self, workloads: Sequence[Workload]) -> list[Cell]:
        """Return the rows of ours between bundled brokers."""
        return [
            cell
            for workload in workloads
            for cell in cells(f"{workload.name}{BUNDLED}", catching_up.BENCHES)
        ]


def plan_for(*, is_quick: bool, runs: int | None = None, is_against: bool = False) -> Plan:
    """Return the plan; each figure `runs` times, where time allows.

    `is_against` an earlier commit: of the mirrors that one and this, and nothing but full topics.
    """
    if not is_against:
        return _quick(runs or QUICK_RUNS) if is_quick else _full(runs or RUNS)
    plan = _quick(runs or RUNS)
    return replace(plan, mirrors=(OURS, OURS_EARLIER), rates=(), steady_systems=())


def _full(runs: int) -> Plan:
    return Plan(
        runs=runs,
        minutes=FULL_MIN,
        catching_up=one_at_a_time(),
        mirrors=(OURS, OURS_IN_PYTHON, MM2_DEFAULT, MM2_TUNED, RELAY),
        on_bundled=(BASE, replace(BASE, codec=Compression.LZ4)),
        warm_up=(MIRRORS,) * WARM_UP_COPIES,
        rates=(
            Rate(per_s=100, measured_s=12),
            Rate(per_s=5000, per_batch=10, measured_s=10, warm_up_s=WARM_UP_AT_RATE_S),
        ),
        kill=Kill(after_s=10),
        steady_systems=MIRRORS,
        rereads=rereading.FULL,
        reread_systems=MIRRORS,
        brokers=BrokerPlan(
            workloads=brokers.FULL, rates=(Rate(per_s=200, measured_s=10),), runs=runs
        ),
        replicated=ReplicatedPlan(
            codecs=("none", "lz4"), data_bytes=256 * MIB, trickle_s=15, runs=runs
        ),
        drain=DrainPlan(workloads=DRAINED, runs=runs),
        audit=AuditPlan(
            workloads=auditing.FULL,
            increment=auditing.INCREMENT,
            far=auditing.FAR,
            differing=auditing.DIFFERING,
            runs=runs,
        ),
    )


def _quick(runs: int) -> Plan:
    """MirrorMaker's defaults take no part where they would wait a minute for their own timers."""
    return Plan(
        runs=runs,
        minutes=QUICK_MIN,
        catching_up=quick(),
        mirrors=(OURS, OURS_IN_PYTHON, MM2_TUNED, RELAY),
        on_bundled=(),
        warm_up=[(OURS,)],
        rates=(Rate(per_s=100, measured_s=4),),
        kill=Kill(after_s=3),
        steady_systems=(OURS,),
        rereads=rereading.QUICK,
        reread_systems=(OURS, MM2_TUNED),
        brokers=BrokerPlan(
            workloads=brokers.QUICK,
            rates=(Rate(per_s=200, measured_s=3),),
            runs=runs,
            warm_up_passes=0,
            passes=3,
            latency_passes=1,
        ),
        replicated=ReplicatedPlan(codecs=("lz4",), data_bytes=64 * MIB, trickle_s=5, runs=runs),
        drain=DrainPlan(workloads=(replace(BASE, data_bytes=GIB),), runs=runs, warm_up=()),
        audit=AuditPlan(
            workloads=auditing.QUICK,
            increment=auditing.QUICK_INCREMENT,
            grown_bytes=(GIB,),
            runs=runs,
        ),
    )
