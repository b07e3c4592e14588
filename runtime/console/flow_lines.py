"""Partitions and groups of flows as the console lists them, from what mirrors report of them. Pure.

The reports are those of `/status` (`mirror.report.status`), of this process or of another one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import trio

from runtime.untrusted_json import LARGEST, rate, text, whole_number
from wire.values import frozen

AT_ONCE: Final = 500
"""Rows between two turns of all others: about a millisecond."""

T = TypeVar("T")


class PartitionLine(NamedTuple):
    """One partition of a flow; None is not known, and not zero."""

    flow: str
    topic: str
    partition: int
    state: str
    since_ms: int
    reason: str
    advice: str
    lag_records: int | None
    lag_seconds: float | None
    lost: int
    skipped: int
    worker: str

    @property
    def name(self) -> str:
        """Return it as Kafka names its folder."""
        return f"{self.topic}-{self.partition}"


class GroupLine(NamedTuple):
    """One group in one flow, all its partitions together; None is not known, and not zero."""

    flow: str
    group: str
    partitions: int
    lag: int | None
    """Records that it has not read on the source."""
    lag_seconds: float | None
    """Since when it has not had everything, of the partition of which that is longest."""
    reread: int | None
    """Records that it would read again on the target now."""
    unknown: int
    """Partitions of which that is not known."""
    waiting: tuple[str, ...]
    """States other than settled."""


@frozen
class FlowsSeen:
    """All lines of one look, and why some of them are not known."""

    looked_ms: int
    partitions: Sequence[PartitionLine]
    groups: Sequence[GroupLine]
    faults: Sequence[str] = ()


async def lines_of(
    reports: Iterable[tuple[str, Mapping[str, Any]]], looked_ms: int, faults: Sequence[str] = ()
) -> FlowsSeen:
    """Return the lines of flows as workers report them, each under the worker's name.

    Of a flow whose leader comes first. Lets others run meanwhile. Raises ValueError, KeyError and
    TypeError for what is no such report.
    """
    partitions: list[PartitionLine] = []
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for worker, report in reports:
        flow = text(report["flow"])
        for some in _parts(report["partitions"]):
            await trio.lowlevel.checkpoint()
            partitions += [_partition(flow, worker, found) for found in some]
        for some in _parts(report["groups"]):
            await trio.lowlevel.checkpoint()
            for found in some:
                groups.setdefault((flow, text(found["group"])), []).append(found)
    lines: list[GroupLine] = []
    for several in _parts(list(groups.items())):
        await trio.lowlevel.checkpoint()
        lines += [_group(flow, group, rows) for (flow, group), rows in several]
    return FlowsSeen(looked_ms=looked_ms, partitions=partitions, groups=lines, faults=faults)


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE))


def _partition(flow: str, worker: str, found: Mapping[str, Any]) -> PartitionLine:
    return PartitionLine(
        flow=flow,
        topic=text(found["topic"]),
        partition=whole_number(found["partition"]),
        state=text(found["state"]),
        since_ms=whole_number(found["since_ms"]),
        reason=text(found["reason"]),
        advice=text(found["advice"]),
        lag_records=_number(found["lag_records"]),
        lag_seconds=_seconds(found["lag_seconds"]),
        lost=whole_number(found["lost_records"]),
        skipped=whole_number(found["skipped_records"]),
        worker=worker,
    )


def _group(
    flow: str,
    group: str,
    rows: Sequence[Mapping[str, Any]],
) -> GroupLine:
    rereads = [_number(row.get("reread")) for row in rows]
    behind = [_seconds(row.get("source_lag_seconds")) for row in rows]
    known = [one for one in rereads if one is not None]
    return GroupLine(
        flow=flow,
        group=group,
        partitions=len(rows),
        lag=_sum([_number(row["source_lag"]) for row in rows]),
        lag_seconds=None
        if None in behind
        else max((one for one in behind if one is not None), default=None),
        reread=sum(known) if len(known) == len(rows) else None,
        unknown=len(rows) - len(known),
        waiting=tuple(sorted({text(row["state"]) for row in rows} - {"settled"})),
    )


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [one for one in numbers if one is not None]
    return sum(known) if len(known) == len(numbers) else None


def _number(value: Any) -> int | None:  # noqa: ANN401 - JSON
    return None if value is None else whole_number(value, LARGEST)


def _seconds(value: Any) -> float | None:  # noqa: ANN401 - JSON
    return None if value is None else rate(value)
