"""The plan of a scan: the stretches of logs to read, and which of them together. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeAlias
from uuid import UUID

from spark_audit.scan.scan_rows import ScannedLog
from spark_audit.snapshot.bounds import PartitionBounds, Snapshot
from spark_audit.snapshot.origins import Part
from spark_audit.snapshot.side import Side
from wire.topic_partition import TopicPartition

Address: TypeAlias = tuple[str, int]
Known: TypeAlias = Mapping[tuple[Side, TopicPartition], tuple[int, int]]
"""Offsets [start, stop) of logs that need not be read; ranges begin and end at both."""

NOTHING_KNOWN: Final[Known] = MappingProxyType({})

AT_ONCE: Final = 16
"""So many tasks of a group are read side by side, each with an answer of up to 4 MiB under way: a
site that is 100 ms away answers all others while one is digested."""
RANGE_SPLIT_OFFSETS: Final = 60_000
"""A task streams: it holds one range. Splits give more cores work, and far sites more questions;
each reads a range of about a thousand records that belongs to the one before."""
GROUP_OFFSETS: Final = 1_000_000
"""Large logs are dealt out in groups of this size."""
MOST_TOGETHER: Final = 500
GROUPS_A_CORE: Final = 2
"""So that cores end at about the same time. Each group takes a task of Spark's and connections to
both sites, 60 ms of a processor together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Read offsets [start, stop) of one partition's log.

    A task that is dealt out to Spark looks for ranges: reading goes on behind `stop`, up to
    `log_stop`, until the last range is whole. With `digests` it looks for the records that have
    them. With `to_end` reading goes on behind `stop` as well, to where the log ends by then.

    Where brokers want credentials, `configuration` is the file that has them. Tasks themselves hold
    no secret, because Spark passes them to its workers through a file of its own.
    """

    cluster: str
    bootstrap: tuple[Address, ...]
    topic_id: UUID
    place: TopicPartition
    """The log as its cluster calls it."""
    log: ScannedLog
    """As the source calls it: so rows of both sides find each other."""
    start: int
    stop: int
    log_stop: int
    starts_log: bool = False
    to_end: bool = False
    digests: frozenset[bytes] | None = None
    configuration: str = ""
    by_sections: bool = False
    """Compressed batches are not opened: for logs whose batches came over unchanged."""
    range_start: int | None = None
    """Where the offsets begin of which this task reads a split; None for `start`."""
    part: Part | None = None
    """The part of the batches there, if not all of them."""
    also: "tuple[ScanTask, ...]" = ()
    """Tasks that begin where this one does in the same log, of another flow: its answers are for
    them, too."""


def read_once(tasks: Iterable[ScanTask]) -> list[ScanTask]:
    """Return the tasks, of which those that begin at the same place of a log are one.

    Where both directions are audited, each log is the source of one and the target of the other.
    """
    found: dict[tuple[str, TopicPartition, UUID, int], ScanTask] = {}
    for task in tasks:
        key = (task.cluster, task.place, task.topic_id, task.start)
        before = found.get(key)
        found[key] = task if before is None else replace(before, also=(*before.also, task))
    return list(found.values())


def each_of(tasks: Iterable[ScanTask]) -> Iterator[ScanTask]:
    """Yield the tasks, and behind each those that are read with it."""
    for task in tasks:
        yield task
        yield from task.also


def dealt(tasks: Sequence[ScanTask], cores: int) -> list[list[ScanTask]]:
    """Return the tasks in groups of about equal size, each to be read by one task of Spark's.

    A task of Spark's takes 40 ms of a processor however little is read, and again in each step that
    goes over the rows. Large logs are dealt out in groups of a split's size.
    """
    offsets = sum(task.stop - task.start for task in tasks)
    side_by_side = max(GROUPS_A_CORE * cores, len(tasks) // AT_ONCE)
    groups = min(len(tasks), side_by_side, GROUPS_A_CORE * cores + offsets // GROUP_OFFSETS)
    largest_first = sorted(tasks, key=lambda task: task.start - task.stop)
    return [largest_first[number::groups] for number in range(groups)]


def read_together(tasks: Iterable[ScanTask]) -> Iterator[list[ScanTask]]:
    """Yield the tasks in runs that a worker can hold, each read over the same connections."""
    some: list[ScanTask] = []
    offsets = 0
    for task in tasks:
        offsets += task.stop - task.start
        if some and (offsets > GROUP_OFFSETS or len(some) == MOST_TOGETHER):
            yield some
            some, offsets = [], task.stop - task.start
        some.append(task)
    if some:
        yield some


def left_to_read(known: tuple[int, int] | None, start: int, stop: int) -> list[tuple[int, int]]:
    """Return what is left of offsets [start, stop) around those that are known already."""
    if known is None:
        return [(start, stop)] if start < stop else []
    around = [(start, known[0]), (known[1], stop)]
    return [(first, last) for first, last in around if first < last]


def splits(start: int, stop: int) -> list[tuple[int, int]]:
    """Return offsets [start, stop) in parts, each to be read by a task of its own."""
    return [
        (first, min(first + RANGE_SPLIT_OFFSETS, stop))
        for first in range(start, stop, RANGE_SPLIT_OFFSETS)
    ]


def reads_sections(bounds: PartitionBounds, *, is_known: bool) -> bool:
    """Return whether compressed batches stay closed: no cleaner has opened any of either log, and
    nothing of them is known by its records.
    """
    return not (is_known or bounds.source.is_compacted or bounds.target.is_compacted)


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

    def ranges(self, known: Known = NOTHING_KNOWN) -> list[ScanTask]:
        """Return the tasks that digest both mirrored logs, but for the offsets that are known."""
        return [
            task
            for bounds in self._snapshot.partitions
            for side in (Side.SOURCE, Side.TARGET)
            for task in self._around(bounds, side, known)
        ]

    def opened(self, spans: Iterable[tuple[PartitionBounds, Side, int, int]]) -> list[ScanTask]:
        """Return the tasks that digest the records between these offsets; ranges begin at both."""
        return [
            replace(
                self._task(bounds, side, part_start, part_stop),
                log_stop=stop,
                starts_log=part_start == start,
            )
            for bounds, side, start, stop in spans
            for part_start, part_stop in splits(start, stop)
        ]

    def in_one(self, spans: Iterable[tuple[PartitionBounds, Side, int, int]]) -> list[ScanTask]:
        """Return a task for each of these spans, which digests its records in one go."""
        return [
            replace(self._task(bounds, side, start, stop), log_stop=stop, starts_log=True)
            for bounds, side, start, stop in spans
        ]

    def _around(self, bounds: PartitionBounds, side: Side, known: Known) -> Iterator[ScanTask]:
        _, first, last = bounds.side(side)
        place = TopicPartition(bounds.topic, bounds.partition)
        of_side = known.get((side, place))
        is_known = (Side.SOURCE, place) in known or (Side.TARGET, place) in known
        by_sections = reads_sections(bounds, is_known=is_known)
        for start, stop in left_to_read(of_side, first, last):
            for part_start, part_stop in splits(start, stop):
                task = self._task(bounds, side, part_start, part_stop)
                yield replace(
                    task,
                    log_stop=stop,
                    starts_log=part_start == start,
                    by_sections=by_sections,
                    range_start=start,
                )

    def native(self, topics: Collection[str], digests: frozenset[bytes]) -> list[ScanTask]:
        """Return the tasks that look for records of applications in these topics behind the seals.

        There are none unless a promotion sealed the flow.
        """
        return [
            replace(task, digests=digests)
            for bounds in self._snapshot.partitions
            if bounds.topic in topics
            for task in self._split(bounds, Side.NATIVE, least=bounds.mirrored_stop)
        ]

    def alone(self, topic: str, partition: int) -> "Planner":
        """Return the planner of one partition, small enough to travel with it."""
        bounds = self._partitions[topic, partition]
        snapshot = replace(
            self._snapshot,
            partitions=(bounds,),
            only_on_target=(),
            untold={},
            places={},
            maps={},
            settings=(),
            rights=(),
        )
        return Planner(snapshot, self._bootstrap, self._configuration)

    @property
    def flow(self) -> str:
        """Return the flow that is audited."""
        return self._snapshot.flow

    @property
    def partitions(self) -> Sequence[PartitionBounds]:
        """Return the bounds of what is read."""
        return self._snapshot.partitions

    def stretch(
        self, bounds: PartitionBounds, side: Side, start: int, stop: int, *, to_end: bool = False
    ) -> ScanTask:
        """Return the task that reads offsets [start, stop) of a side, as far as they are its own.

        With `to_end` it reads on to the end that the log has by then.
        """
        _, first, last = bounds.side(side)
        begin = min(max(first, start), last)
        end = max(begin, min(last, stop))
        return self._task(bounds, side, begin, end, to_end=to_end)

    def _split(self, bounds: PartitionBounds, side: Side, least: int) -> Iterator[ScanTask]:
        _, first, last = bounds.side(side)
        for start, stop in splits(max(first, least), last):
            yield self._task(bounds, side, start, stop)

    def _task(
        self, bounds: PartitionBounds, side: Side, start: int, stop: int, *, to_end: bool = False
    ) -> ScanTask:
        log, first, last = bounds.side(side)
        is_source = side in {Side.SOURCE, Side.RETURNED}
        cluster = self._snapshot.source if is_source else self._snapshot.target
        return ScanTask(
            cluster=cluster,
            bootstrap=self._bootstrap[cluster],
            topic_id=log.topic_id,
            place=bounds.place(side),
            log=ScannedLog(
                side=side,
                topic=bounds.topic,
                partition=bounds.partition,
                flow=self._snapshot.flow,
            ),
            start=start,
            stop=stop,
            log_stop=last,
            starts_log=start == first,
            to_end=to_end,
            configuration=self._configuration,
            part=bounds.part(side),
        )
