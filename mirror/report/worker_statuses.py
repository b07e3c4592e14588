"""One report of a flow out of those of its workers. Pure."""

from collections.abc import Sequence

from mirror.report.status import FlowReport, GroupReport, PartitionReport, SpeedReport, WorkerReport


def merged(reports: Sequence[tuple[str, FlowReport]]) -> FlowReport:
    """Return what all workers say together, each under its name; who leads comes first.

    The leader reports work that is done once for all, as group positions are. A partition is in the
    report of the worker that has it.
    """
    _, first = reports[0]
    if len(reports) == 1:
        return first
    partitions = [_named(one, name) for name, report in reports for one in report["partitions"]]
    partitions.sort(key=lambda one: (one["topic"], one["partition"]))
    return {
        **first,
        "faults": [f"{name}: {fault}" for name, report in reports for fault in report["faults"]],
        "speed": _sum([report["speed"] for _, report in reports]),
        "partitions": partitions,
        "groups": [_with_lag(one, partitions) for one in first["groups"]],
        "workers": [_worker(name, report) for name, report in reports],
    }


def _named(partition: PartitionReport, worker: str) -> PartitionReport:
    return {**partition, "worker": worker}


def _worker(name: str, report: FlowReport) -> WorkerReport:
    lags = [one["lag_records"] for one in report["partitions"]]
    return {
        "worker": name,
        "role": report["role"],
        "reason": report["reason"],
        "partitions": len(report["partitions"]),
        "lag_records": None if None in lags else sum(lag for lag in lags if lag is not None),
        "bytes_per_second": None
        if report["speed"] is None
        else report["speed"]["bytes_per_second"],
    }


def _sum(speeds: Sequence[SpeedReport | None]) -> SpeedReport | None:
    """Add up what is known; all are level when the last one is."""
    known = [speed for speed in speeds if speed is not None]
    if not known:
        return None
    times = [speed["done_in_seconds"] for speed in known]
    return {
        "records_per_second": sum(speed["records_per_second"] for speed in known),
        "bytes_per_second": sum(speed["bytes_per_second"] for speed in known),
        "lag_records": sum(speed["lag_records"] for speed in known),
        "done_in_seconds": None if None in times else max(one for one in times if one is not None),
    }


def _with_lag(group: GroupReport, partitions: Sequence[PartitionReport]) -> GroupReport:
    """Add the source's lag where another worker than the leader knows the source's end."""
    if group["source_lag"] is not None:
        return group
    for one in partitions:
        if (one["topic"], one["partition"]) == (group["topic"], group["partition"]):
            end = one["source_end"]
            lag = None if end is None else max(0, end - group["source_offset"])
            return {**group, "source_lag": lag}
    return group
