"""The pages of partitions and groups, of which there may be ten thousand: a part at a time.

All at once would hold up the mirror. Ten thousand partitions are 100,000 lines of gauges, and
prometheus_client takes 12 us for each. So the lines are written by hand, with a turn for all others
every hundred partitions.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

import trio

from mirror.flow.engine import Engine
from mirror.flow.runner import FlowRunner
from mirror.report.status import (
    GroupReport,
    PartitionReport,
    flow_head,
    partition_report,
    placed_group_report,
)
from mirror.state.partition import MirroredPartition
from runtime.process.clock import now_ms

AT_ONCE: Final = 100
"""Partitions, or groups, between two turns of all others: a millisecond or two."""

_PARTITION_GAUGES: Final = (
    ("mirror_lag_records", "Source offsets that are not mirrored yet", "lag_records"),
    ("mirror_lag_seconds", "Seconds since the target last had everything", "lag_seconds"),
    ("mirror_source_end_offset", "The source's high watermark", "source_end"),
    (
        "mirror_mirrored_source_offset",
        "Everything before this source offset is mirrored",
        "mirrored_source_end",
    ),
    (
        "mirror_mirrored_target_offset",
        "The target offset at which the mirrored part ends",
        "mirrored_target_end",
    ),
    (
        "mirror_partition_in_flight_bytes",
        "Bytes that are fetched and not yet acknowledged",
        "in_flight_bytes",
    ),
    ("mirror_lost_records", "Offsets deleted before they were mirrored", "lost_records"),
    ("mirror_skipped_records", "Offsets left out by a policy or a command", "skipped_records"),
    (
        "mirror_looped_batches",
        "Batches left out because a mirror has brought them from the target",
        "looped_batches",
    ),
)
_GROUP_GAUGES: Final = (
    ("mirror_group_source_offset", "A group's position on the source", "source_offset"),
    ("mirror_group_target_offset", "A group's position on the target", "target_offset"),
    ("mirror_group_source_lag_records", "Offsets behind the source's end", "source_lag"),
    ("mirror_group_target_lag_records", "Offsets behind the mirrored end", "target_lag"),
)
_STATE: Final = ("mirror_partition_state", "1 for the state that the partition is in")
_AGE: Final = ("mirror_partition_state_age_seconds", "Seconds since the partition took its state")
_OF_PARTITION: Final = ("flow", "partition", "topic")

GAUGES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = MappingProxyType(
    {
        _STATE[0]: (_STATE[1], ("flow", "partition", "state", "topic")),
        _AGE[0]: (_AGE[1], _OF_PARTITION),
        **{name: (text, _OF_PARTITION) for name, text, _ in _PARTITION_GAUGES},
        **{
            name: (text, ("flow", "group", "partition", "topic")) for name, text, _ in _GROUP_GAUGES
        },
    }
)
"""The help text of each gauge here, and its labels."""


Lines: TypeAlias = dict[str, list[str]]
"""By the gauge's name."""
T = TypeVar("T")


async def many_gauges(runners: Sequence[FlowRunner]) -> str:
    """Return the lines of all partitions and groups; what is unknown is absent, not zero."""
    now = now_ms()
    lines = {
        name: [f"# HELP {name} {text}\n# TYPE {name} gauge\n"] for name, (text, _) in GAUGES.items()
    }
    for runner in runners:
        flow, engine = _quoted(runner.config.name), runner.engine
        if engine is None:
            continue
        for partitions in _parts(sorted(engine.flow.partitions.own.items())):
            await trio.lowlevel.checkpoint()
            for _, partition in partitions:
                report = _partition(runner, engine, partition, now)
                _tell_partition(lines, flow, report, now)
        for groups in _parts(sorted(engine.groups.status.items())):
            await trio.lowlevel.checkpoint()
            for group_partition, status in groups:
                _tell_group(lines, flow, placed_group_report(group_partition, status, engine))
    return "".join(["".join(of_one) for of_one in lines.values()])


async def status_page(runners: Sequence[FlowRunner], *, pid: int, started_ms: int) -> bytes:
    """Return the JSON of a `StatusReport` about all flows of this process."""
    now = now_ms()
    flows = ", ".join([await _flow(runner, now) for runner in runners])
    head = {"program": "mirror", "pid": pid, "started_ms": started_ms, "now_ms": now}
    return f'{_open(head)}, "flows": [{flows}]}}'.encode()


async def _flow(runner: FlowRunner, now: int) -> str:
    head, engine = flow_head(runner), runner.engine
    partitions: list[str] = []
    groups: list[str] = []
    if engine is not None:
        for some in _parts(sorted(engine.flow.partitions.own.items())):
            await trio.lowlevel.checkpoint()
            reports = (_partition(runner, engine, one, now) for _, one in some)
            partitions += map(json.dumps, reports)
        for many in _parts(sorted(engine.groups.status.items())):
            await trio.lowlevel.checkpoint()
            groups += (json.dumps(placed_group_report(*one, engine)) for one in many)
    lists = f'"partitions": [{", ".join(partitions)}], "groups": [{", ".join(groups)}]'
    return f"{_open(head)}, {lists}}}"


def _partition(
    runner: FlowRunner, engine: Engine, partition: MirroredPartition, now: int
) -> PartitionReport:
    known = engine.open_transactions.known
    return partition_report(
        partition,
        now,
        is_left=runner.is_left,
        transactions=known,
        topic_set=runner.config.topic_set,
    )


def _open(head: Mapping[str, object]) -> str:
    """Return the JSON of an object that goes on."""
    return json.dumps(head)[:-1]


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE))


def _tell_partition(lines: Lines, flow: str, report: PartitionReport, now: int) -> None:
    labelled = f'flow="{flow}",partition="{report["partition"]}"'
    topic = f'topic="{report["topic"]}"'
    lines[_STATE[0]].append(f'{_STATE[0]}{{{labelled},state="{report["state"]}",{topic}}} 1.0\n')
    labels = f"{{{labelled},{topic}}}"
    lines[_AGE[0]].append(f"{_AGE[0]}{labels} {(now - report['since_ms']) / 1000}\n")
    _tell(lines, _PARTITION_GAUGES, labels, report)


def _tell_group(lines: Lines, flow: str, report: GroupReport) -> None:
    labels = (
        f'{{flow="{flow}",group="{_quoted(report["group"])}",'
        f'partition="{report["partition"]}",topic="{report["topic"]}"}}'
    )
    _tell(lines, _GROUP_GAUGES, labels, report)


def _tell(
    lines: Lines, gauges: Sequence[tuple[str, str, str]], labels: str, report: Mapping[str, object]
) -> None:
    for name, _, field in gauges:
        value = report[field]
        if isinstance(value, int | float):
            lines[name].append(f"{name}{labels} {float(value)!r}\n")


def _quoted(text: str) -> str:
    """Return a label's value; a group's name may hold anything, a topic's may not."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
