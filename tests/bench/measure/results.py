"""What was measured, and build/bench.json made of it. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

from tests.bench.measure.figures import spread

OURS: Final = "ours"
OURS_IN_PYTHON: Final = "ours-in-python"
"""Ours without its chunk kernel."""
OURS_EARLIER: Final = "ours-earlier"
"""Ours of another commit: `make bench AGAINST=REV`."""
MM2_DEFAULT: Final = "mm2-default"
MM2_TUNED: Final = "mm2-tuned"
RELAY: Final = "relay"
APACHE: Final = "apache-kafka"
CONNECTOR: Final = "spark-connector"
READER: Final = "reader"
DIRECT: Final = "direct"
OF_OURS: Final = frozenset({OURS, OURS_IN_PYTHON, OURS_EARLIER})
SYSTEMS: Final = (
    *(OURS, OURS_IN_PYTHON, OURS_EARLIER, MM2_DEFAULT, MM2_TUNED, RELAY, APACHE, CONNECTOR),
    *(READER, DIRECT),
)
LIMITS: Final = frozenset({RELAY, READER, DIRECT})
"""Systems that do next to nothing: what the machine allows."""

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
AUDIT_RATE: Final = "audit_mb_s_per_core"
AUDIT_RECORDS: Final = "audit_records_s_per_core"
AUDIT_START: Final = "audit_start_cpu_s"
AUDIT_RSS: Final = "audit_reader_rss_mb"
AUDIT_CPU: Final = "audit_cpu_s"
AUDIT_INCREMENT: Final = "audit_increment_percent"
AUDIT_REREAD: Final = "audit_reread_percent"
AUDIT_FAR: Final = "audit_far_mb_s"

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
    AUDIT_RATE: "MB/s",
    AUDIT_RECORDS: "records/s",
    AUDIT_START: "CPU-s",
    AUDIT_RSS: "MB",
    AUDIT_CPU: "CPU-s",
    AUDIT_INCREMENT: "%",
    AUDIT_REREAD: "%",
    AUDIT_FAR: "MB/s",
}
"""All benches, in the order of the tables."""

RATIO_OF_HIGHEST: Final = frozenset({MIRROR_RSS})
"""Benches whose ratio is that of the highest of all workloads: Java's heap becomes one of two sizes
in each start (measured: 1.5 or 1.75 GB, half of the starts each), and so would a ratio."""
WITHOUT_RATIO: Final = frozenset({MIRROR_WARM_CPU})
"""Benches of which rows alone are shown. How good Java's code is in the end differs by start: tuned
MirrorMaker took 10.2 and 6.8 CPU-s/GiB for the third and fourth GiB of the same topic."""
NO_FIGURE: Final = "no figure: "
MISSED: Final = "missed"
"""Key of a row that lacks some rounds."""
DIGITS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class RowId:
    """Which row."""

    bench: str
    workload: str
    system: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One figure of one run; figures of the same `run` were taken side by side."""

    row: RowId
    run: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A round that left a row without a figure, and why."""

    row: RowId
    reason: str


def report(
    machine: Mapping[str, Any], measured: Sequence[Measured], missed: Sequence[Missed] = ()
) -> dict[str, Any]:
    """Return the content of build/bench.json.

    A row without a figure has the reason in place of its median and no extremes. One that has
    some rounds shows those, and what became of the others.
    """
    found = _by_row(measured)
    highest = _highest(found)
    values = found | highest
    no_ratios = RATIO_OF_HIGHEST | WITHOUT_RATIO
    compared = {row: found[row] for row in found if row.bench not in no_ratios}
    reasons: dict[RowId, list[str]] = {}
    for each in missed:
        reasons.setdefault(each.row, []).append(each.reason)
    rows = list(dict.fromkeys([*values, *reasons]))
    return {
        "machine": dict(machine),
        "rows": [
            _row(row, list(values.get(row, {}).values()), reasons.get(row, ()))
            for row in sorted(rows, key=_order_of(rows))
        ],
        "ratios": _ratios(compared | highest),
    }


def told_ratios(content: Mapping[str, Any], bench: str) -> list[str]:
    """Return a line for each ratio of one bench: the median of all runs, and its extremes."""
    found = [ratio for ratio in content["ratios"] if ratio["bench"] == bench]
    return [
        f"{one['workload']}: {one['of']} / {one['to']} {one['median']:.3f}"
        f" ({one['min']:.3f} to {one['max']:.3f})"
        for one in found
    ]


def has_no_figure(row: Mapping[str, Any]) -> bool:
    """Return whether this row has a reason instead of figures."""
    return isinstance(row["median"], str)


def _by_row(measured: Iterable[Measured]) -> dict[RowId, dict[int, float]]:
    values: dict[RowId, dict[int, float]] = {}
    for each in measured:
        values.setdefault(each.row, {})[each.run] = each.value
    return values


def _order_of(rows: Iterable[RowId]) -> Callable[[RowId], tuple[int, int, int]]:
    """Return a sort key: benches and systems as listed here, workloads as they were run."""
    workloads = list(dict.fromkeys(row.workload for row in rows))

    def order(row: RowId) -> tuple[int, int, int]:
        bench, system = list(UNITS).index(row.bench), SYSTEMS.index(row.system)
        return bench, workloads.index(row.workload), system

    return order


def _row(row: RowId, values: Sequence[float], reasons: Sequence[str]) -> dict[str, Any]:
    figures: dict[str, Any]
    if values:
        figures = dict(_spread(values))
    else:
        figures = {"min": None, "median": f"{NO_FIGURE}{reasons[-1]}", "max": None}
    if values and reasons:
        rounds = len(reasons) + len(values)
        figures[MISSED] = f"{len(reasons)} of {rounds} rounds: {NO_FIGURE}{reasons[-1]}"
    return {
        "bench": row.bench,
        "workload": row.workload,
        "system": row.system,
        "unit": UNITS[row.bench],
        **figures,
    }


def _highest(values: Mapping[RowId, Mapping[int, float]]) -> dict[RowId, dict[int, float]]:
    """Return each system's highest value of each run, over the workloads that all systems had."""
    found: dict[RowId, dict[int, float]] = {}
    for bench in RATIO_OF_HIGHEST:
        of_bench = [row for row in values if row.bench == bench]
        systems = {row.system for row in of_bench}
        had = Counter(row.workload for row in of_bench)
        common = {workload for workload, count in had.items() if count == len(systems)}
        for row in of_bench:
            if row.workload in common:
                name = f"highest of {len(common)} workloads"
                highest = found.setdefault(replace(row, workload=name), {})
                for run, value in values[row].items():
                    highest[run] = max(value, highest.get(run, value))
    return found


def _ratios(values: Mapping[RowId, Mapping[int, float]]) -> list[dict[str, Any]]:
    """Return ours against each other system, run by run; where the other is 0 there is none."""
    found = []
    mine = [row for row in values if row.system == OURS]
    for ours in sorted(mine, key=_order_of(values)):
        for system in SYSTEMS:
            other = RowId(bench=ours.bench, workload=ours.workload, system=system)
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


def _quotients(values: Mapping[RowId, Mapping[int, float]], other: RowId) -> list[float]:
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
