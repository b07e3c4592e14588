"""What was measured, and build/bench.json made of it. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

from tests.bench.figures import spread

OURS: Final = "ours"
MM2_DEFAULT: Final = "mm2-default"
MM2_TUNED: Final = "mm2-tuned"
RELAY: Final = "relay"
APACHE: Final = "apache-kafka"
SYSTEMS: Final = (OURS, MM2_DEFAULT, MM2_TUNED, RELAY, APACHE)

MIRROR_CPU: Final = "mirror_cpu_s_per_gib"
MIRROR_WARM_CPU: Final = "mirror_warm_cpu_s_per_gib"
MIRROR_RATE: Final = "mirror_mb_s"
MIRROR_P50: Final = "mirror_latency_ms_p50"
MIRROR_P99: Final = "mirror_latency_ms_p99"
MIRROR_RSS: Final = "mirror_rss_mb"
DUPLICATES: Final = "mirror_duplicates_after_kill"
REREAD: Final = "reread_after_failover"
BROKER_PRODUCE: Final = "broker_produce_mb_s"
BROKER_CONSUME: Final = "broker_consume_mb_s"
BROKER_P99: Final = "broker_latency_ms_p99"
BROKER_RSS: Final = "broker_rss_mb"

UNITS: Final[Mapping[str, str]] = {
    MIRROR_CPU: "CPU-s/GiB",
    MIRROR_WARM_CPU: "CPU-s/GiB",
    MIRROR_RATE: "MB/s",
    MIRROR_P50: "ms",
    MIRROR_P99: "ms",
    MIRROR_RSS: "MB",
    DUPLICATES: "records",
    REREAD: "records",
    BROKER_PRODUCE: "MB/s",
    BROKER_CONSUME: "MB/s",
    BROKER_P99: "ms",
    BROKER_RSS: "MB",
}
"""All benches, in the order of the tables."""

NOISE: Final[Mapping[str, float]] = {DUPLICATES: 0.01, REREAD: 0.01}
"""Ratios of counts up to this mean the same, nothing: how many records MirrorMaker repeats is a
matter of luck, and 0 beside any of that is 0. A median of 0 on its side leaves no ratio at all."""

RATIO_OF_HIGHEST: Final = frozenset({MIRROR_RSS})
"""Benches whose ratio is that of the highest of all workloads: Java's heap becomes one of two sizes
in each start (measured: 1.5 or 1.75 GB, half of the starts each), and so would a ratio."""
WITHOUT_RATIO: Final = frozenset({MIRROR_WARM_CPU})
"""Benches of which rows alone are shown. How good Java's code is in the end differs by start: tuned
MirrorMaker took 10.2 and 6.8 CPU-s/GiB for the third and fourth GiB of the same topic."""
NOT_RUN: Final = "not run: "
MISSED: Final = "missed"
"""Key of a row that lacks some rounds."""
DIGITS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which row."""

    bench: str
    workload: str
    system: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One figure of one run; figures of the same `run` were taken side by side."""

    place: Place
    run: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """A row that could not be measured, and why."""

    place: Place
    reason: str


def report(
    machine: Mapping[str, Any], measured: Sequence[Measured], not_run: Sequence[NotRun] = ()
) -> dict[str, Any]:
    """Return the content of build/bench.json.

    A row that was not run has the reason in place of its median and no extremes. One that has
    some runs shows those, and what became of the others.
    """
    found = _by_place(measured)
    highest = _highest(found)
    values = found | highest
    no_ratios = RATIO_OF_HIGHEST | WITHOUT_RATIO
    compared = {place: found[place] for place in found if place.bench not in no_ratios}
    reasons = {each.place: each.reason for each in not_run if each.place not in values}
    missed: dict[Place, list[str]] = {}
    for each in not_run:
        missed.setdefault(each.place, []).append(each.reason)
    places = sorted([*values, *reasons], key=_order_of([*values, *reasons]))
    return {
        "machine": dict(machine),
        "rows": [
            _row(place, list(values[place].values()), missed.get(place, ()))
            if place in values
            else _reason_row(place, reasons[place])
            for place in places
        ],
        "ratios": _ratios(compared | highest),
    }


def was_cut_short(content: Mapping[str, Any]) -> bool:
    """Return whether a row was not run."""
    return any(is_not_run(row) for row in content["rows"])


def is_not_run(row: Mapping[str, Any]) -> bool:
    """Return whether this row has a reason instead of figures."""
    return isinstance(row["median"], str)


def _by_place(measured: Iterable[Measured]) -> dict[Place, dict[int, float]]:
    values: dict[Place, dict[int, float]] = {}
    for each in measured:
        values.setdefault(each.place, {})[each.run] = each.value
    return values


def _order_of(places: Iterable[Place]) -> Callable[[Place], tuple[int, int, int]]:
    """Return a sort key: benches and systems as listed here, workloads as they were run."""
    workloads = list(dict.fromkeys(place.workload for place in places))

    def order(place: Place) -> tuple[int, int, int]:
        bench, system = list(UNITS).index(place.bench), SYSTEMS.index(place.system)
        return bench, workloads.index(place.workload), system

    return order


def _row(place: Place, values: Sequence[float], missed: Sequence[str]) -> dict[str, Any]:
    rounds = f"{len(missed)} of {len(missed) + len(values)} rounds"
    return {
        "bench": place.bench,
        "workload": place.workload,
        "system": place.system,
        "unit": UNITS[place.bench],
        **_spread(values),
        **({MISSED: f"{rounds} {NOT_RUN}{missed[-1]}"} if missed else {}),
    }


def _reason_row(place: Place, reason: str) -> dict[str, Any]:
    return {
        "bench": place.bench,
        "workload": place.workload,
        "system": place.system,
        "unit": UNITS[place.bench],
        "min": None,
        "median": f"{NOT_RUN}{reason}",
        "max": None,
    }


def _highest(values: Mapping[Place, Mapping[int, float]]) -> dict[Place, dict[int, float]]:
    """Return each system's highest value of each run, over the workloads that all systems had."""
    found: dict[Place, dict[int, float]] = {}
    for bench in RATIO_OF_HIGHEST:
        of_bench = [place for place in values if place.bench == bench]
        systems = {place.system for place in of_bench}
        had = Counter(place.workload for place in of_bench)
        common = {workload for workload, count in had.items() if count == len(systems)}
        for place in of_bench:
            if place.workload in common:
                name = f"highest of {len(common)} workloads"
                highest = found.setdefault(replace(place, workload=name), {})
                for run, value in values[place].items():
                    highest[run] = max(value, highest.get(run, value))
    return found


def _ratios(values: Mapping[Place, Mapping[int, float]]) -> list[dict[str, Any]]:
    """Return ours against each other system, run by run; where the other is 0 there is none."""
    found = []
    mine = [place for place in values if place.system == OURS]
    for ours in sorted(mine, key=_order_of(values)):
        for system in SYSTEMS:
            other = Place(bench=ours.bench, workload=ours.workload, system=system)
            if system != OURS and (quotients := _quotients(values, other)):
                found.append(
                    {
                        "bench": ours.bench,
                        "workload": ours.workload,
                        "of": OURS,
                        "to": system,
                        **_spread(quotients),
                    }
                )
    return found


def _quotients(values: Mapping[Place, Mapping[int, float]], other: Place) -> list[float]:
    """Return ours against another, for each run of both in which the other is not 0.

    None where it is 0 in most of them: one odd run is no ratio.
    """
    ours = values.get(replace(other, system=OURS), {})
    theirs = values.get(other, {})
    if not theirs or not median(theirs.values()):
        return []
    return [value / theirs[run] for run, value in ours.items() if theirs.get(run)]


def _spread(values: Sequence[float]) -> dict[str, float]:
    of_all = spread(values)
    return {
        "min": round(of_all.minimum, DIGITS),
        "median": round(of_all.median, DIGITS),
        "max": round(of_all.maximum, DIGITS),
    }
