"""What `make bench`, `QUICK=1` and `ALL=1` do. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import Final

from tests.bench import brokers, rereading
from tests.bench.brokers import BrokerPlan
from tests.bench.draining import DrainPlan
from tests.bench.killing import Kill
from tests.bench.latency import Rate
from tests.bench.replicated import ReplicatedPlan
from tests.bench.rereading import Reread
from tests.bench.results import MM2_DEFAULT, MM2_TUNED, OURS, RELAY
from tests.bench.rounds import Rounds
from tests.bench.workloads import (
    BASE,
    DEFAULT_PARTS,
    GIB,
    KIB,
    MIB,
    Part,
    Workload,
    every_combination,
    one_at_a_time,
    quick,
)
from wire.compression import Compression

RUNS: Final = 3
CATCHING_UP_RUNS: Final = 4
"""A round's ratio lies 10 % from the next one's (standard deviation, over two whole runs of three
rounds), and medians of three differed by as much from run to run: too much for 15 %."""
LATENCY_RUNS: Final = 5
"""The slowest hundredth differs more from start to start than within one."""
BROKER_RUNS: Final = 4
"""Each starts both brokers; three starts lay 20-26 % apart at single records and 100 KiB."""
WARM_UP_HEATS: Final = 3
"""Of all systems: what brokers' Java has compiled for one of them is not what all need."""
WARM_UP_AT_RATE_S: Final = 10.0
"""With 3 s at 5,000 records/s the slowest hundredth of MirrorMaker at its defaults took between 12
and 40 ms, a start each: Java was still compiling."""
DRAINED: Final = tuple(
    replace(BASE, **different)
    for different in ({}, {"codec": Compression.LZ4}, {"batch_bytes": 100 * KIB})
)
MIRRORS: Final = (OURS, MM2_DEFAULT, MM2_TUNED)


class Extent(Enum):
    """How much is measured: minutes, about an hour, a night."""

    QUICK = "quick"
    FULL = "full"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is run, by whom, and how often."""

    rounds: Rounds
    catching_up: Sequence[Workload]
    on_bundled: Sequence[Workload]
    catching_up_systems: Sequence[str]
    warm_up: Sequence[Sequence[str]]
    """Heats that do not count, so that the brokers become as fast as they get."""
    rates: Sequence[Rate]
    kills: Sequence[Kill]
    latency_rounds: Rounds
    steady_systems: Sequence[str]
    """Who takes part in latency and kills."""
    kill_rounds: Rounds
    rereads: Reread
    reread_systems: Sequence[str]
    reread_rounds: Rounds
    brokers: BrokerPlan
    replicated: ReplicatedPlan
    drain: DrainPlan
    is_memory_held: bool = True
    """Where mirrors are measured with brokers' data in memory."""
    limit_s: float = inf
    """No run begins later than so long after the first."""


def plan_for(extent: Extent, *, runs: int = RUNS, parts: Sequence[Part] = DEFAULT_PARTS) -> Plan:
    """Return the plan of that extent; each figure `runs` times, where time allows."""
    return _quick(runs, parts) if extent is Extent.QUICK else _full(extent, runs)


def _full(extent: Extent, runs: int) -> Plan:
    rounds = Rounds(runs=runs)
    return Plan(
        rounds=Rounds(runs=max(runs, CATCHING_UP_RUNS)),
        catching_up=every_combination() if extent is Extent.ALL else one_at_a_time(),
        on_bundled=(BASE, replace(BASE, codec=Compression.LZ4)),
        catching_up_systems=(*MIRRORS, RELAY),
        warm_up=(MIRRORS,) * WARM_UP_HEATS,
        rates=(
            Rate(per_s=100, measured_s=12),
            Rate(per_s=5000, per_batch=10, measured_s=10, warm_up_s=WARM_UP_AT_RATE_S),
        ),
        latency_rounds=Rounds(runs=max(runs, LATENCY_RUNS)),
        kills=(Kill(after_s=10),),
        steady_systems=MIRRORS,
        kill_rounds=rounds,
        rereads=rereading.FULL,
        reread_systems=MIRRORS,
        reread_rounds=rounds,
        brokers=BrokerPlan(
            workloads=brokers.FULL,
            rates=(Rate(per_s=200, measured_s=10),),
            rounds=Rounds(runs=max(runs, BROKER_RUNS)),
        ),
        replicated=ReplicatedPlan(
            codecs=("none", "lz4"), data_bytes=256 * MIB, trickle_s=15, rounds=rounds
        ),
        drain=DrainPlan(workloads=DRAINED, rounds=rounds),
    )


QUICK_S: Final = {Part.MIRROR: 130.0, Part.OFFSETS: 45.0, Part.BROKER: 45.0}
"""What a part may take of the five minutes; starting and stopping clusters comes on top."""
LAST_BEGINS_S: Final = 225.0
"""Of 300: what is under way by then, and stopping everything, has the rest."""


def _quick(runs: int, parts: Sequence[Part]) -> Plan:
    """Return a plan whose further rounds are dropped when the first took too long.

    MirrorMaker's defaults take no part where they would wait a minute for their own timers.
    """
    spare = sum(limit for part, limit in QUICK_S.items() if part not in parts)
    limits = {part: limit + spare / len(parts) for part, limit in QUICK_S.items()}
    steady = Rounds(runs=runs, limit_s=limits[Part.MIRROR] * 0.2)
    return Plan(
        rounds=Rounds(runs=runs, limit_s=limits[Part.MIRROR] * 0.6),
        catching_up=quick(),
        on_bundled=(),
        catching_up_systems=(*MIRRORS, RELAY),
        warm_up=[(OURS,)],
        rates=(Rate(per_s=100, measured_s=4),),
        kills=(Kill(after_s=3),),
        steady_systems=(OURS,),
        latency_rounds=steady,
        kill_rounds=steady,
        rereads=rereading.QUICK,
        reread_systems=(OURS, MM2_TUNED),
        reread_rounds=Rounds(runs=runs, limit_s=limits[Part.OFFSETS]),
        brokers=BrokerPlan(
            workloads=brokers.QUICK,
            rates=(Rate(per_s=200, measured_s=3),),
            rounds=Rounds(runs=runs, limit_s=limits[Part.BROKER]),
            warm_up_passes=0,
            passes=3,
            latency_passes=1,
        ),
        replicated=ReplicatedPlan(
            codecs=("lz4",), data_bytes=64 * MIB, trickle_s=5, rounds=Rounds(runs=1)
        ),
        drain=DrainPlan(
            workloads=(replace(BASE, data_bytes=GIB),),
            rounds=Rounds(runs=1),
            is_prepared=False,
        ),
        is_memory_held=False,
        limit_s=LAST_BEGINS_S,
    )
