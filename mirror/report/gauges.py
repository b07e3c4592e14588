"""The metrics of partitions and groups, of which there may be ten thousand: a part at a time.

What has a line of its own is `metrics.granularity`: a flow, a topic, or a partition. Values of one
line are added up, or the greatest counts; what is unknown of one of them is left out, and
`mirror_unknown_lag_partitions` says of how many that is so.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from mirror.flow.engine import Engine
from mirror.flow.runner import FlowRunner
from mirror.report.status import partition_report, placed_group_report
from mirror.state.partition_state import PartitionState
from runtime.configuration.metrics_section import Granularity
from runtime.pages.exposition import ManyFamily, ManyLines, label
from runtime.process.clock import now_ms
from wire.values import frozen

AT_ONCE: Final = 100
"""Partitions, or groups, between two turns of all others: a millisecond or two."""

T = TypeVar("T")


@frozen(kw_only=False)
class _Measure:
    """One value of a report as a metric."""

    name: str
    text: str
    field: str
    of_several: str = ""
    """What several have together: "sum" or "greatest"; empty where that would say nothing."""


_OF_PARTITIONS: Final = (
    _Measure(
        "mirror_lag_records", "Source offsets that are not mirrored yet", "lag_records", "sum"
    ),
    _Measure(
        "mirror_lag_seconds",
        "Seconds since the target last had everything",
        "lag_seconds",
        "greatest",
    ),
    _Measure("mirror_source_end_offset", "The source's high watermark", "source_end"),
    _Measure(
        "mirror_mirrored_source_offset",
        "Everything before this source offset is mirrored",
        "mirrored_source_end",
    ),
    _Measure(
        "mirror_mirrored_target_offset",
        "The target offset at which the mirrored part ends",
        "mirrored_target_end",
    ),
    _Measure(
        "mirror_in_flight_bytes",
        "Bytes that are fetched and not yet acknowledged",
        "in_flight_bytes",
        "sum",
    ),
    _Measure(
        "mirror_lost_records",
        "Offsets deleted before they were mirrored, which has stopped the partition",
        "lost_records",
        "sum",
    ),
    _Measure(
        "mirror_skipped_records_total",
        "Offsets left out by a policy or a command",
        "skipped_records",
        "sum",
    ),
    _Measure(
        "mirror_looped_batches_total",
        "Batches left out because a mirror has brought them from the target",
        "looped_batches",
        "sum",
    ),
)
_OF_GROUPS: Final = (
    _Measure("mirror_group_source_offset", "A group's position on the source", "source_offset"),
    _Measure("mirror_group_target_offset", "A group's position on the target", "target_offset"),
    _Measure(
        "mirror_group_source_lag_records", "Offsets behind the source's end", "source_lag", "sum"
    ),
    _Measure(
        "mirror_group_source_lag_seconds",
        "Seconds since the group last had everything that the source has",
        "source_lag_seconds",
        "greatest",
    ),
    _Measure(
        "mirror_group_target_lag_records", "Offsets behind the mirrored end", "target_lag", "sum"
    ),
)
_PARTITIONS: Final = ManyFamily(
    name="mirror_partitions",
    text="Partitions of the flow that this daemon mirrors, by their state",
    labels=("flow", "state"),
)
_UNKNOWN: Final = ManyFamily(
    name="mirror_unknown_lag_partitions",
    text="Partitions of the flow whose lag in seconds is not known; no lag holds theirs",
    labels=("flow",),
)
_STATE: Final = ManyFamily(
    name="mirror_partition_state",
    text="1 for the state that the partition is in",
    labels=("flow", "topic", "partition", "state"),
)
_AGE: Final = ManyFamily(
    name="mirror_partition_state_age_seconds",
    text="Seconds since the partition took its state",
    labels=("flow", "topic", "partition"),
)
_LABELS: Final[Mapping[Granularity, tuple[str, ...]]] = {
    Granularity.FLOW: (),
    Granularity.TOPIC: ("topic",),
    Granularity.PARTITION: ("topic", "partition"),
}


def families(granularity: Granularity) -> tuple[ManyFamily, ...]:
    """Return what there is at this granularity."""
    of_partition = ("flow", *_LABELS[granularity])
    of_group = ("flow", "group", *_LABELS[granularity])
    return (
        _PARTITIONS,
        _UNKNOWN,
        *((_STATE, _AGE) if granularity is Granularity.PARTITION else ()),
        *_families(_OF_PARTITIONS, of_partition, granularity),
        *_families(_OF_GROUPS, of_group, granularity),
    )


def _families(
    measures: Sequence[_Measure], labels: tuple[str, ...], granularity: Granularity
) -> Iterator[ManyFamily]:
    for one in _shown(measures, granularity):
        yield ManyFamily(
            name=one.name,
            kind="counter" if one.name.endswith("_total") else "gauge",
            text=one.text,
            labels=labels,
        )


def _shown(measures: Sequence[_Measure], granularity: Granularity) -> list[_Measure]:
    return [one for one in measures if granularity is Granularity.PARTITION or one.of_several]


async def many_gauges(runners: Sequence[FlowRunner], granularity: Granularity) -> ManyLines:
    """Return the lines of all partitions and groups; what is unknown is absent, not zero."""
    lines, now = ManyLines(families(granularity)), now_ms()
    for runner in runners:
        if runner.engine is not None:
            await _tell_partitions(lines, runner, runner.engine, granularity, now)
            await _tell_groups(lines, runner, runner.engine, granularity, now)
    return lines


async def _tell_partitions(
    lines: ManyLines, runner: FlowRunner, engine: Engine, granularity: Granularity, now: int
) -> None:
    flow = f'flow="{label(runner.config.name)}"'
    known, is_left = engine.open_transactions.known, runner.is_left
    states, unknown = dict.fromkeys(PartitionState, 0), 0
    sums = _Sums(lines, _OF_PARTITIONS, granularity)
    for some in parts(sorted(engine.flow.partitions.own.items())):
        await lines.give_turn()
        for _, partition in some:
            report = partition_report(
                partition, now, engine=engine, is_left=is_left, transactions=known
            )
            states[partition.state] += 1
            unknown += report["lag_seconds"] is None
            topic, index = f'topic="{report["topic"]}"', f'partition="{report["partition"]}"'
            labels = _cut((flow, topic, index), granularity)
            sums.take(labels, report)
            if granularity is Granularity.PARTITION:
                lines.add(_STATE.name, f'{labels},state="{report["state"]}"', 1)
                lines.add(_AGE.name, labels, (now - report["since_ms"]) / 1000)
    await sums.tell()
    for state, count in states.items():
        lines.add(_PARTITIONS.name, f'{flow},state="{state.value}"', count)
    lines.add(_UNKNOWN.name, flow, unknown)


async def _tell_groups(
    lines: ManyLines, runner: FlowRunner, engine: Engine, granularity: Granularity, now: int
) -> None:
    flow = f'flow="{label(runner.config.name)}"'
    sums = _Sums(lines, _OF_GROUPS, granularity)
    for some in parts(sorted(engine.groups.status.items())):
        await lines.give_turn()
        for group_partition, status in some:
            report = placed_group_report(group_partition, status, engine, now)
            group = f'{flow},group="{label(report["group"])}"'
            topic, index = f'topic="{report["topic"]}"', f'partition="{report["partition"]}"'
            sums.take(_cut((group, topic, index), granularity), report)
    await sums.tell()


def _cut(labels: tuple[str, str, str], granularity: Granularity) -> str:
    return ",".join(labels[: 1 + len(_LABELS[granularity])])


class _Sums:
    """The values of each line, of one partition or of several."""

    def __init__(
        self, lines: ManyLines, measures: Sequence[_Measure], granularity: Granularity
    ) -> None:
        self._lines = lines
        self._measures = _shown(measures, granularity)
        self._is_single = granularity is Granularity.PARTITION
        self._values: dict[str, dict[str, float]] = {}

    def take(self, labels: str, report: Mapping[str, object]) -> None:
        """Take what is known of one partition."""
        for one in self._measures:
            value = report.get(one.field)
            if not isinstance(value, int | float):
                continue
            if self._is_single:
                self._lines.add(one.name, labels, value)
                continue
            of_line = self._values.setdefault(labels, {})
            before = of_line.get(one.name, 0.0)
            of_line[one.name] = (
                max(before, value) if one.of_several == "greatest" else before + value
            )

    async def tell(self) -> None:
        """Add the lines of several partitions."""
        for some in parts(list(self._values.items())):
            await self._lines.give_turn()
            for labels, values in some:
                for name, value in values.items():
                    self._lines.add(name, labels, value)


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut what is many so that others have their turns in between."""
    return (items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE))
