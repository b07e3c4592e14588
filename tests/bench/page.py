"""docs/benchmarks.md out of build/bench.json: tables, bars, machine and versions. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tests.bench.results import UNITS, is_not_run

BAR: Final = "█"
BAR_WIDTH: Final = 40

TITLES: Final[Mapping[str, str]] = {
    "mirror_cpu_s_per_gib": "Processor time of the mirror for a GiB",
    "mirror_mb_s": "Speed of the mirror on a full topic",
    "mirror_rss_mb": "Memory of the mirror, at its highest",
    "mirror_latency_ms_p50": "Latency through the mirror, median",
    "mirror_latency_ms_p99": "Latency through the mirror, 99th percentile",
    "mirror_duplicates_after_kill": "Records twice on the target after SIGKILL and restart",
    "reread_after_failover": "Records that a group reads again after failover",
    "broker_produce_mb_s": "Broker: writing",
    "broker_consume_mb_s": "Broker: reading",
    "broker_latency_ms_p99": "Broker: from producer to consumer, 99th percentile",
    "broker_rss_mb": "Broker: memory behind each load",
}

HEAD: Final = """\
# Benchmarks

Made by `make bench` out of `build/bench.json`; do not edit. `make bench QUICK=1` takes under five
minutes, `ONLY=mirror|broker|offsets` picks a part, `ALL=1` mirrors every combination, `RUNS=5`
takes more rounds. `make profile WHAT=mirror|broker` draws flame graphs of ours under `build/`.

Figures are minimum / **median** / maximum over the runs. MB are 10^6 and GiB 2^30 bytes of record
values before compression. Processor time is what the kernel accounts to the process itself, all
threads, user and system; speed and processor time are taken from the first tenth of the records to
the last, so that nobody's start counts. `ours` is `mirror run` or `broker run`; `mm2-default` and
`mm2-tuned` are MirrorMaker 2 at its defaults and tuned by people who know it; `relay` takes bytes
from one socket and gives them to another and does nothing else: the limit. Systems take turns
within a round, in an order that changes; ratios are taken within a round. Brokers are single ones,
without a disk's sync, and have worked a little before. MirrorMaker writes what it read without
compression unless told otherwise, which neither setting does; ours writes the bytes that it read.
"""

NOTHING_YET: Final = """\
No full run has been recorded yet: `make bench` measures (about an hour and a half on two processors
with nothing else to do) and writes this page.
"""


def page(content: Mapping[str, Any]) -> str:
    """Return the page."""
    if not content["rows"]:
        return f"{HEAD}\n{NOTHING_YET}"
    parts = [HEAD, _machine(content["machine"])]
    for bench in UNITS:
        rows = [row for row in content["rows"] if row["bench"] == bench]
        ratios = [ratio for ratio in content["ratios"] if ratio["bench"] == bench]
        if rows:
            parts.append(_section(bench, rows, ratios))
    return "\n".join(parts)


def bars(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line with a bar for each row, all on one scale that begins at zero."""
    top = max((row["median"] for row in rows), default=0) or 1
    width = max((len(row["system"]) for row in rows), default=0)
    lines = []
    for row in rows:
        length = round(BAR_WIDTH * row["median"] / top)
        bar = BAR * length or ("▏" if row["median"] > 0 else "")
        lines.append(f"{row['system']:<{width}} {bar} {number(row['median'])}".rstrip())
    return lines


def number(value: float) -> str:
    """Return three digits that matter; whole above a hundred, with thousands apart."""
    if value == round(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _section(
    bench: str, rows: Sequence[Mapping[str, Any]], ratios: Sequence[Mapping[str, Any]]
) -> str:
    of_pair = {(ratio["workload"], ratio["to"]): ratio for ratio in ratios}
    lines = [f"## {TITLES[bench]}", "", f"`{bench}`, {UNITS[bench]}", ""]
    lines += [
        "| workload | system | min | **median** | max | ours : this |",
        "|---|---|---:|---:|---:|---:|",
    ]
    lines += [_line(row, of_pair.get((row["workload"], row["system"]))) for row in rows]
    lines += ["", "```"]
    for workload in dict.fromkeys(row["workload"] for row in rows):
        ran = [row for row in rows if row["workload"] == workload and not is_not_run(row)]
        lines += [workload, *(f"  {bar}" for bar in bars(ran))]
    lines += ["```", ""]
    return "\n".join(lines)


def _line(row: Mapping[str, Any], ratio: Mapping[str, Any] | None) -> str:
    start = f"| {row['workload']} | {row['system']} "
    if is_not_run(row):
        return f"{start}| | {row['median']} | | |"
    figures = [number(row["min"]), f"**{number(row['median'])}**", number(row["max"])]
    of_ours = "" if ratio is None else _ratio(ratio)
    return f"{start}| {' | '.join(figures)} | {of_ours} |"


def _ratio(ratio: Mapping[str, Any]) -> str:
    low, middle, high = (f"{ratio[key]:.3g}" for key in ("min", "median", "max"))
    return f"{low} / **{middle}** / {high}"


def _machine(machine: Mapping[str, Any]) -> str:
    lines = ["## Machine and versions", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in _flat(machine)]
    return "\n".join([*lines, ""])


def _flat(values: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            for inner, inside in _flat(value):
                yield f"{name}: {inner}", inside
        else:
            yield name.replace("_", " "), value
