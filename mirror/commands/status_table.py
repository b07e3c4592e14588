"""Lay a status report out as text for a terminal. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mirror.commands.status_choice import StatusChoice
from mirror.commands.status_summary import MOST_ROWS, MOST_STANDING, group_rows, topic_rows
from mirror.report.status import (
    NOT_RUNNING,
    FlowReport,
    GroupReport,
    PartitionReport,
    RefusedSettingReport,
    SpeedReport,
    StatusReport,
    WorkerReport,
    topic_words,
)
from runtime.program.page import Part
from runtime.program.table import UNKNOWN, Table, duration

PARTITION_HEAD: Final = (
    "TOPIC", "PART", "STATE", "SINCE", "SOURCE END", "MIRRORED", "TARGET END", "LAG", "LAG TIME",
    "REASON",
)  # fmt: skip
GROUP_HEAD: Final = (
    "GROUP", "TOPIC", "PART", "SOURCE POS", "LAG", "TARGET POS", "LAG", "STATE",
)  # fmt: skip
SPARE: Final = ("TARGET END", "SINCE", "MIRRORED", "SOURCE END", "WORKER")
NAMED_TOPICS: Final = 5
LEFT: Final = frozenset({"TOPIC", "WORKER", "STATE", "REASON", "GROUP"})


def status_parts(report: StatusReport, choice: StatusChoice) -> Iterator[Part]:
    """Yield the whole page: of each flow what it does, its partitions and groups."""
    for place, flow in enumerate(report["flows"]):
        if place:
            yield ""
        yield from _flow(flow, report["now_ms"], choice)


def _flow(flow: FlowReport, now_ms: int, choice: StatusChoice) -> Iterator[Part]:
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
    if not flow["partitions"]:
        yield "  no partitions"
    else:
        yield f"  {_summary(flow['partitions'])}"
        if begun := [one["begun_by"] for one in flow["partitions"] if "begun_by" in one]:
            starts = ", ".join(f"`start: {one}`" for one in sorted(set(begun)))
            yield f"  {len(begun)} partitions began by {starts}: records before it are not carried"
        if flow["speed"] is not None:
            yield f"  {_speed(flow['speed'])}"
    chosen = choice.of_flow(flow)
    if choice.is_narrow:
        yield (
            f"  chosen of it: {len(chosen['partitions'])} of {len(flow['partitions'])} partitions,"
            f" {len(chosen['groups'])} of {len(flow['groups'])} positions of groups"
        )
    yield from _chosen(chosen, now_ms, lists_all=choice.lists_all)


def _chosen(flow: FlowReport, now_ms: int, *, lists_all: bool) -> Iterator[Part]:
    """Yield rows of partitions and positions, or, where these are many, of topics and groups."""
    partitions, groups = flow["partitions"], flow["groups"]
    if partitions:
        yield ""
        if lists_all or len(partitions) <= MOST_ROWS:
            yield _partitions(partitions, now_ms)
        else:
            yield from topic_rows(partitions)
            yield from _standing([one for one in partitions if one["advice"]], now_ms)
        for state, advice in sorted({(p["state"], p["advice"]) for p in partitions if p["advice"]}):
            yield f"  {state}: {advice}"
    if flow["groups_by"].startswith("polled"):
        yield f"  group positions are {flow['groups_by']}"
    if groups:
        yield ""
        if lists_all or len(groups) <= MOST_ROWS:
            yield table(GROUP_HEAD, [_group(one) for one in groups])
        else:
            yield from group_rows(groups)


def _standing(partitions: Sequence[PartitionReport], now_ms: int) -> Iterator[Part]:
    """Yield rows of partitions that need somebody; the topics before hide them."""
    if not partitions:
        return
    yield ""
    yield _partitions(partitions[:MOST_STANDING], now_ms)
    if len(partitions) > MOST_STANDING:
        yield f"  and {len(partitions) - MOST_STANDING} partitions more that need somebody"


def _warnings(flow: FlowReport) -> Iterable[str]:
    """Yield what does not keep the flow from working, and somebody should know."""
    yield from flow.get("unbelieved_records", ())
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


def _partitions(partitions: Sequence[PartitionReport], now_ms: int) -> Table:
    """Return the table, with who has what where several share it."""
    rows = [_partition(one, now_ms) for one in partitions]
    head: Sequence[str] = PARTITION_HEAD
    if any("worker" in one for one in partitions):
        head = (*PARTITION_HEAD[:2], "WORKER", *PARTITION_HEAD[2:])
        rows = [
            (*row[:2], one.get("worker", ""), *row[2:])
            for row, one in zip(rows, partitions, strict=True)
        ]
    marked = {place for place, one in enumerate(partitions) if one["advice"]}
    return Table(head=head, rows=rows, left=LEFT, indent="  ", marked=marked, spare=SPARE)


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
        f"nothing before offset {one['begun_at']} is carried (`start: {one['begun_by']}`)"
        if "begun_at" in one
        else "",
        one["reason"],
    )
    return (
        topic_words(one),
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
        topic_words(one),
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


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table below a heading."""
    return Table(head=head, rows=rows, left=LEFT, indent="  ")
