"""Lay a status report out as text for a terminal. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from mirror.report.status import (
    NOT_RUNNING,
    FlowReport,
    GroupReport,
    PartitionReport,
    RefusedSettingReport,
    SpeedReport,
    StatusReport,
    WorkerReport,
)
from runtime.process.output import escaped
from runtime.program.table import UNKNOWN, duration, lined_up

PARTITION_HEAD: Final = (
    "TOPIC", "PART", "STATE", "SINCE", "SOURCE END", "MIRRORED", "TARGET END", "LAG", "LAG TIME",
    "REASON",
)  # fmt: skip
GROUP_HEAD: Final = (
    "GROUP", "TOPIC", "PART", "SOURCE POS", "LAG", "TARGET POS", "LAG", "STATE",
)  # fmt: skip
NAMED_TOPICS: Final = 5
LEFT: Final = frozenset({"TOPIC", "WORKER", "STATE", "REASON", "GROUP"})


def render(report: StatusReport) -> str:
    """Return the whole page."""
    return "\n".join(
        escaped(line) for flow in report["flows"] for line in (*_flow(flow, report["now_ms"]), "")
    )


def _flow(flow: FlowReport, now_ms: int) -> Iterable[str]:
    since = "" if flow["role"] == NOT_RUNNING else f" for {duration(now_ms - flow['since_ms'])}"
    head = f"flow {flow['flow']}: {flow['role']}{since}"
    yield f"{head} ({flow['reason']})" if flow["reason"] else head
    yield from _workers(flow.get("workers", ()))
    for fault in flow["faults"]:
        yield f"  fault: {fault}"
    for warning in _warnings(flow):
        yield f"  warning: {warning}"
    if walked_by := flow.get("walked_by"):
        yield f"  what is fetched is walked by {walked_by}"
    partitions = flow["partitions"]
    if not partitions:
        yield "  no partitions"
    else:
        yield f"  {_summary(partitions)}"
        if flow["speed"] is not None:
            yield f"  {_speed(flow['speed'])}"
        yield ""
        yield from _partitions(partitions, now_ms)
        for state, advice in sorted({(p["state"], p["advice"]) for p in partitions if p["advice"]}):
            yield f"  {state}: {advice}"
    if flow["groups_by"].startswith("polled"):
        yield f"  group positions are {flow['groups_by']}"
    if flow["groups"]:
        yield ""
        yield from table(GROUP_HEAD, [_group(one) for one in flow["groups"]])


def _warnings(flow: FlowReport) -> Iterable[str]:
    """Yield what does not keep the flow from working, and somebody should know."""
    yield from flow.get("foreign_records", ())
    if refused := flow.get("refused_after_switch"):
        yield refused
    yield from flow.get("withheld_rights", ())
    yield from _refused(flow["refused_settings"])


def _workers(workers: Sequence[WorkerReport]) -> Iterable[str]:
    """Yield a line for each of several workers."""
    for index, one in enumerate(workers):
        does = f"{'leads, ' if index == 0 else ''}{one['role']}, {one['partitions']} partitions"
        rate = one["bytes_per_second"]
        speed = "" if rate is None else f", {rate / 1e6:.1f} MB/s"
        reason = f" ({one['reason']})" if one["reason"] else ""
        yield f"  worker {one['worker']}: {does}, lag {number(one['lag_records'])}{speed}{reason}"


def _partitions(partitions: Sequence[PartitionReport], now_ms: int) -> Iterable[str]:
    """Yield the table, with who has what where several share it."""
    rows = [_partition(one, now_ms) for one in partitions]
    if not any("worker" in one for one in partitions):
        return table(PARTITION_HEAD, rows)
    shared = [
        (*row[:2], one.get("worker", ""), *row[2:])
        for row, one in zip(rows, partitions, strict=True)
    ]
    return table((*PARTITION_HEAD[:2], "WORKER", *PARTITION_HEAD[2:]), shared)


def _refused(settings: Sequence[RefusedSettingReport]) -> Iterable[str]:
    """Yield a line for each setting that the target refuses, with the topics that lack it."""
    topics: dict[tuple[str, str, str], list[str]] = {}
    for one in settings:
        topics.setdefault((one["setting"], one["value"], one["reason"]), []).append(one["topic"])
    for (setting, value, reason), lacking in topics.items():
        more = len(lacking) - NAMED_TOPICS
        names = ", ".join(lacking[:NAMED_TOPICS]) + (f" and {more} more" if more > 0 else "")
        yield f"mirrored without {setting}={value}: {names} (the target says: {reason})"


def _summary(partitions: Sequence[PartitionReport]) -> str:
    lags = [one["lag_records"] for one in partitions]
    known = sum(lag for lag in lags if lag is not None)
    unknown = lags.count(None)
    states = sorted({one["state"] for one in partitions})
    counts = ", ".join(f"{sum(p['state'] == s for p in partitions)} {s}" for s in states)
    return (
        f"{len(partitions)} partitions ({counts}), lag {known} records"
        f"{f' and unknown for {unknown} partitions' if unknown else ''}"
    )


def _speed(speed: SpeedReport) -> str:
    megabytes = speed["bytes_per_second"] / 1e6
    told = f"{speed['records_per_second']:,.0f} records/s, {megabytes:.1f} MB/s"
    if not speed["lag_records"]:
        return told
    done_in_s = speed["done_in_seconds"]
    left = f"{told}; {speed['lag_records']:,} records left"
    if done_in_s is None:
        return f"{left}, and they do not become fewer"
    return f"{left}, level in {duration(round(done_in_s * 1000))} at this rate"


def _partition(one: PartitionReport, now_ms: int) -> Sequence[str]:
    lag_s = one["lag_seconds"]
    reasons = (
        f"{one['lost_records']} offsets lost" if one["lost_records"] else "",
        f"{one['skipped_records']} offsets left out" if one["skipped_records"] else "",
        f"{one['looped_batches']} batches from the target left out"
        if one.get("looped_batches")
        else "",
        one["reason"],
    )
    return (
        one["topic"],
        str(one["partition"]),
        one["state"],
        duration(now_ms - one["since_ms"]),
        number(one["source_end"]),
        number(one["mirrored_source_end"]),
        number(one["mirrored_target_end"]),
        number(one["lag_records"]),
        UNKNOWN if lag_s is None else duration(round(lag_s * 1000)),
        "; ".join(filter(None, reasons)),
    )


def _group(one: GroupReport) -> Sequence[str]:
    return (
        one["group"],
        one["topic"],
        str(one["partition"]),
        str(one["source_offset"]),
        number(one["source_lag"]),
        "none" if one["target_offset"] is None else str(one["target_offset"]),
        number(one["target_lag"]),
        one["state"],
    )


def number(value: int | None) -> str:
    """Return a number, or the sign for one that is not known."""
    return UNKNOWN if value is None else str(value)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Return the lines of a table below a heading."""
    return lined_up(head, rows, LEFT, indent="  ")
