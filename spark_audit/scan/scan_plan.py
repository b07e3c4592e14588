"""The plan of a scan: the stretches of logs to read, and which of them together. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from spark_audit.scan.scan_rows import ScannedLog
from spark_audit.scan.windows import LOG_STOP, Window
from spark_audit.snapshot.bounds import PartitionBounds, Snapshot
from spark_audit.snapshot.origins import Part
from spark_audit.snapshot.side import Side

Address: TypeAlias = tuple[str, int]

RANGE_SPLIT_OFFSETS: Final = 1_000_000
"""A task that looks for ranges streams: it holds one range. Splits give more cores work."""
RECORD_SPLIT_OFFSETS: Final = 200_000
"""A task that yields records holds those of its split, some 80 MB."""
MOST_TOGETHER: Final = 500
GROUPS_A_CORE: Final = 8
"""So that cores end at about the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Read offsets [start, stop) of one partition's log.

    With `wants_ranges` the rows are ranges, and reading goes on behind `stop`, up to `log_stop`,
    until the last one is whole; else they are records. Holes and failures come with both. With
    `to_end` reading goes on behind `stop` as well, to where the log ends by then.

    Where brokers want credentials, `configuration` is the file that has them. Tasks themselves hold
    no secret, because Spark passes them to its workers through a file of its own.
    """

    cluster: str
    bootstrap: tuple[Address, ...]
    topic_id: UUID
    log: ScannedLog
    start: int
    stop: int
    log_stop: int
    wants_ranges: bool = False
    starts_log: bool = False
    to_end: bool = False
    configuration: str = ""
    part: Part | None = None
    """The part of the batches there, if not all of them."""


def dealt(tasks: Sequence[ScanTask], cores: int) -> list[list[ScanTask]]:
    """Return the tasks in groups of about equal size, each to be read by one task of Spark's.

    A task of Spark's takes 40 ms of a processor however little is read, and again in each step that
    goes over the rows. Large logs are dealt out in groups of a split's size.
    """
    offsets = sum(task.stop - task.start for task in tasks)
    groups = min(len(tasks), GROUPS_A_CORE * cores + offsets // RECORD_SPLIT_OFFSETS)
    largest_first = sorted(tasks, key=lambda task: task.start - task.stop)
    return [largest_first[number::groups] for number in range(groups)]


def read_together(tasks: Iterable[ScanTask]) -> Iterator[list[ScanTask]]:
    """Yield the tasks in runs that a worker can hold, each read over the same connections."""
    some: list[ScanTask] = []
    offsets = 0
    for task in tasks:
        offsets += task.stop - task.start
        if some and (offsets > RECORD_SPLIT_OFFSETS or len(some) == MOST_TOGETHER):
            yield some
            some, offsets = [], task.stop - task.start
        some.append(task)
    if some:
        yield some


class Planner:
    """Makes the tasks of one snapshot; `bootstrap` gives each cluster's addresses."""

    def __init__(
        self,
        snapshot: Snapshot,
        bootstrap: Mapping[str, tuple[Address, ...]],
        configuration: str = "",
    ) -> None:
        self._snapshot = snapshot
        self._configuration = configuration
        self._bootstrap = bootstrap
        self._partitions = {
            (bounds.topic, bounds.partition): bounds for bounds in snapshot.partitions
        }

    def ranges(self) -> list[ScanTask]:
        """Return the tasks that digest both mirrored logs whole."""
        return [
            task
            for bounds in self._snapshot.partitions
            for side in (Side.SOURCE, Side.TARGET)
            for task in self._split(bounds, side, wants_ranges=True)
        ]

    def records(self, windows: Iterable[tuple[str, int, int, Window]]) -> list[ScanTask]:
        """Return the tasks that read windows, each given with topic, partition and number."""
        tasks: list[ScanTask] = []
        for topic, partition, number, window in windows:
            bounds = self._partitions[topic, partition]
            edges = {
                Side.SOURCE: (window.source_start, window.source_stop),
                Side.TARGET: (window.target_start, window.target_stop),
            }
            for side, (start, stop) in edges.items():
                tasks += self._split(bounds, side, within=(start, stop), window=number)
        return tasks

    def native(self, topics: Collection[str]) -> list[ScanTask]:
        """Return the tasks that read the applications' records in these topics behind the seals.

        There are none unless a promotion sealed the flow.
        """
        return [
            task
            for bounds in self._partitions.values()
            if bounds.topic in topics
            for task in self._split(bounds, Side.NATIVE, within=(bounds.mirrored_stop, LOG_STOP))
        ]

    def sources(self, partitions: Iterable[tuple[str, int]]) -> list[ScanTask]:
        """Return the tasks that read all records of these partitions of the source."""
        return [
            task for key in partitions for task in self._split(self._partitions[key], Side.SOURCE)
        ]

    def newest(self, stretches: Iterable[tuple[str, int, int, int]]) -> list[ScanTask]:
        """Return the tasks that read partitions on both sides to the ends that the logs have then.

        Each is given with the offsets from which on the source and the target are read. A record
        that a cleaner takes while an audit runs may be superseded by one written meanwhile.
        """
        tasks: list[ScanTask] = []
        for topic, partition, source_from, target_from in stretches:
            bounds = self._partitions[topic, partition]
            source, target = (source_from, LOG_STOP), (target_from, LOG_STOP)
            tasks += self._split(bounds, Side.SOURCE, within=source, to_end=True)
            if bounds.is_both_ways:
                tasks += self._split(bounds, Side.RETURNED, within=source, to_end=True)
            tasks += self._split(bounds, Side.TARGET, within=target)
            tasks += self._split(bounds, Side.NATIVE, within=target, to_end=True)
        return tasks

    def _split(
        self,
        bounds: PartitionBounds,
        side: Side,
        *,
        within: tuple[int, int] | None = None,
        window: int | None = None,
        wants_ranges: bool = False,
        to_end: bool = False,
    ) -> Iterator[ScanTask]:
        log, first, last = bounds.side(side)
        start, stop = first, last
        if within is not None:
            start, stop = max(first, within[0]), min(last, within[1])
        is_source = side in {Side.SOURCE, Side.RETURNED}
        cluster = self._snapshot.source if is_source else self._snapshot.target
        size = RANGE_SPLIT_OFFSETS if wants_ranges else RECORD_SPLIT_OFFSETS
        starts = range(start, stop, size)
        for split_start in starts or ([stop] if to_end else []):
            yield ScanTask(
                cluster=cluster,
                bootstrap=self._bootstrap[cluster],
                topic_id=log.topic_id,
                log=ScannedLog(
                    side=side, topic=bounds.topic, partition=bounds.partition, window=window
                ),
                start=split_start,
                stop=min(split_start + size, stop),
                log_stop=last,
                wants_ranges=wants_ranges,
                starts_log=split_start == first,
                to_end=to_end and split_start + size >= stop,
                configuration=self._configuration,
                part=bounds.part(side),
            )
