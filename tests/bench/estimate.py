"""How long a plan takes on two quiet processors, told before it starts. Pure.

The figures are rounded from runs on such a machine; a run notes what each section really took.
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

from tests.bench.draining import ROUND_TRIPS_MS, WARM_UP, DrainPlan
from tests.bench.draining import SYSTEMS as DRAINERS
from tests.bench.latency import Rate
from tests.bench.plans import Plan
from tests.bench.replicated import ReplicatedPlan
from tests.bench.results import MM2_DEFAULT, MM2_TUNED, OURS, RELAY
from tests.bench.workloads import BASE, Part, Workload

STAGE_S: Final = 20.0
"""Two clusters and the witness, started and warmed up."""
HELD_S: Final = 60.0
"""Until all free memory is held, before mirrors are compared."""
START_S: Final[Mapping[str, float]] = {OURS: 1.5, MM2_DEFAULT: 8, MM2_TUNED: 8, RELAY: 0.5}
"""From the command to the first record, and cleaning up."""
MB_S: Final[Mapping[str, float]] = {OURS: 500, MM2_DEFAULT: 220, MM2_TUNED: 220, RELAY: 3100}
"""Over all workloads; small records and single ones take longer and have less data."""
ONE_CORE_MB_S: Final[Mapping[str, float]] = {OURS: 480, MM2_TUNED: 120}
LEAVE_S: Final = 4.0
"""Until the copy of who is done has made room, and that is held."""
FILL_MB_S: Final = 250.0
KILL_S: Final = 45.0
"""All systems at once: start, notice that somebody died, catch up."""
REREAD_S: Final = 120.0
"""All systems at once; the slowest translates once in 60 s, at worst twice that."""
BROKER_S: Final = 15.0
BROKER_MB_S: Final = 700.0
WARM_UP_PASS_S: Final = 2.5
REPLICATED_S: Final = 35.0
"""Three brokers, started and warmed up, and the clients' own starts."""
REPLICATED_MB_S: Final = 60.0
MB: Final = 1_000_000


def estimate_s(plan: Plan) -> dict[Part, float]:
    """Return the seconds that each part will about take; limits of time not counted in."""
    return {
        Part.MIRROR: _mirror(plan),
        Part.OFFSETS: STAGE_S + plan.reread_rounds.runs * REREAD_S,
        Part.BROKER: _broker(plan),
        Part.REPLICATED: _replicated(plan.replicated),
        Part.DRAIN: _drain(plan.drain),
    }


def told_time(plan: Plan, parts: Sequence[Part]) -> str:
    """Return how long these parts will take, in words."""
    if plan.limit_s < inf:
        return "at most 5 min"
    each = {part: seconds / 60 for part, seconds in estimate_s(plan).items() if part in parts}
    told = ", ".join(f"{part.value} {minutes:.0f}" for part, minutes in each.items())
    return f"about {sum(each.values()):.0f} min ({told})"


def _mirror(plan: Plan) -> float:
    catching_up = sum(
        _catch_up(workload, plan.catching_up_systems, plan.rounds.runs)
        for workload in plan.catching_up
    )
    on_bundled = sum(_catch_up(workload, (OURS,), plan.rounds.runs) for workload in plan.on_bundled)
    rates = sum(map(_rate, plan.rates))
    starts = sum(START_S[each] + rates for each in plan.steady_systems)
    latency = rates + plan.latency_rounds.runs * starts
    kills = plan.kill_rounds.runs * sum(KILL_S + kill.after_s for kill in plan.kills)
    before = (HELD_S if plan.is_memory_held else 0.0) + _warm_up(plan.warm_up)
    stages = STAGE_S * (2 if plan.on_bundled else 1)
    return before + stages + catching_up + on_bundled + latency + kills


def _broker(plan: Plan) -> float:
    each = plan.brokers.passes * sum(
        2 * workload.value_bytes / MB / BROKER_MB_S for workload in plan.brokers.workloads
    )
    each += BROKER_S + WARM_UP_PASS_S * plan.brokers.warm_up_passes
    each += plan.brokers.latency_passes * sum(map(_rate, plan.brokers.rates))
    return 2 * plan.brokers.rounds.runs * each


def _replicated(plan: ReplicatedPlan) -> float:
    each = len(plan.codecs) * 3 * plan.data_bytes / MB / REPLICATED_MB_S
    return 2 * plan.rounds.runs * (REPLICATED_S + each + plan.trickle_s)


def _drain(plan: DrainPlan) -> float:
    speeds = ONE_CORE_MB_S
    copies = sum(
        _catch_up(workload, DRAINERS, plan.rounds.runs, speeds) for workload in plan.workloads
    )
    before = HELD_S + _warm_up(WARM_UP, speeds) if plan.is_prepared else 0.0
    return len(ROUND_TRIPS_MS) * (STAGE_S + before + copies)


def _catch_up(
    workload: Workload,
    systems: Sequence[str],
    runs: int,
    speeds: Mapping[str, float] = MB_S,
) -> float:
    copying = sum(workload.value_bytes / MB / speeds[system] for system in systems)
    around = sum(START_S[each] + (LEAVE_S if each != RELAY else 0.0) for each in systems)
    return _fill(workload) + runs * (copying + around)


def _warm_up(heats: Sequence[Sequence[str]], speeds: Mapping[str, float] = MB_S) -> float:
    return sum(_catch_up(BASE, systems, 1, speeds) for systems in heats)


def _fill(workload: Workload) -> float:
    return workload.value_bytes / MB / FILL_MB_S


def _rate(rate: Rate) -> float:
    return rate.warm_up_s + rate.measured_s + 1
