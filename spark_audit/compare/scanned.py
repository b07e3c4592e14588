"""What a scan found in both logs, by partition: ranges and holes, and where they differ. Pure."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from spark_audit.compare.correspondence import Correspondence
from spark_audit.compare.looks import TimedRange, within
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.digests import DigestRange
from spark_audit.scan.scan_rows import RowKind, ScanRow
from spark_audit.scan.windows import Window, equal_ranges, windows_between
from spark_audit.snapshot.side import Side
from wire.topic_partition import TopicPartition

SIDES: Final = (Side.SOURCE, Side.TARGET)
_HOLE: Final[str] = RowKind.HOLE.value
_CORRUPT: Final = HoleReason.CORRUPT.name
_FAILURE: Final[str] = RowKind.FAILURE.value


@dataclass(slots=True)
class Scanned:
    """The ranges and holes of one partition."""

    ranges: dict[Side, list[TimedRange]] = field(
        default_factory=lambda: {side: [] for side in SIDES}
    )
    holes: list[tuple[Side, ScanRow]] = field(default_factory=list)
    is_kept: bool = False
    """A part of it was remembered, and not read."""

    def add(self, side: Side, row: ScanRow) -> None:
        """Take a range or a hole."""
        if row.kind == _HOLE:
            self.holes.append((side, row))
            return
        assert row.digest is not None, "a range has a digest"
        found = DigestRange(row.start_offset, row.stop_offset, row.records, row.digest)
        self.ranges[side].append(TimedRange(found, row.timestamp_ms, row.runs))

    def start(self, side: Side) -> int:
        """Return where a log began when it was read, 0 if that was where it had."""
        return max(
            (
                row.stop_offset
                for of, row in self.holes
                if of is side and row.reason == HoleReason.RETENTION.name
            ),
            default=0,
        )

    def records(self) -> Mapping[Side, int]:
        """Return how many records were read, by side."""
        return {side: sum(one.range.records for one in self.ranges[side]) for side in SIDES}

    def offsets(self, side: Side) -> int:
        """Return of how many offsets of a side it is known what they hold."""
        holes = sum(row.records for of, row in self.holes if of is side)
        return self.records()[side] + holes

    def is_corrupt(self, side: Side, start: int, stop: int) -> bool:
        """Return whether a corrupt batch lies between two offsets of a side."""
        return any(
            of is side and row.reason == _CORRUPT and start <= row.start_offset < stop
            for of, row in self.holes
        )

    def compared(self) -> tuple[list[Window], Correspondence]:
        """Return the windows in which both logs differ, and where all other records lie."""
        for side in SIDES:
            self.ranges[side].sort(key=lambda one: one.range)
        source, target = ([one.range for one in self.ranges[side]] for side in SIDES)
        equal = equal_ranges(source, target)
        return (
            windows_between(source, target, equal),
            Correspondence(self.ranges[Side.SOURCE], self.ranges[Side.TARGET], equal),
        )

    def take_all(self, other: "Scanned") -> None:
        """Take the ranges and holes of another reading, of offsets that are not in this one."""
        for side in SIDES:
            self.ranges[side] += other.ranges[side]
        self.holes += other.holes

    def span(self, side: Side, window: Window, start: int, stop: int) -> tuple[int, int]:
        """Return the offsets of a side of a window, from behind the range before it on.

        `start` and `stop` are the log's. Holes behind the last range of a window belong to the
        range that follows, and are left out.
        """
        ranges = self.ranges[side]
        first, last = (
            (window.source_start, window.source_stop)
            if side is Side.SOURCE
            else (window.target_start, window.target_stop)
        )
        inside = within(ranges, first, last)
        if not inside:
            return start, start
        before = within(ranges, 0, inside[0].range.start_offset)
        begin = before[-1].range.stop_offset if before else start
        return begin, stop if window.is_last else inside[-1].range.stop_offset

    def forget(self, side: Side, start: int, stop: int) -> None:
        """Drop what begins between two offsets of a side, which is read again."""
        self.ranges[side] = [
            one for one in self.ranges[side] if not start <= one.range.start_offset < stop
        ]
        self.holes = [
            (of, row)
            for of, row in self.holes
            if of is not side or not start <= row.start_offset < stop
        ]


def by_partition(
    table: pa.Table, untold: dict[TopicPartition, str]
) -> defaultdict[TopicPartition, Scanned]:
    """Return the rows of a scan by partition, and note of which a log could not be read."""
    scanned: defaultdict[TopicPartition, Scanned] = defaultdict(Scanned)
    names = ("side", "topic", "partition", *ScanRow._fields)
    for batch in table.to_batches():
        columns = (batch.column(name).to_pylist() for name in names)
        for side_name, topic, partition, *values in zip(*columns, strict=True):
            place, row = TopicPartition(topic, partition), ScanRow(*values)
            side = Side(side_name)
            if row.kind == _FAILURE:
                untold.setdefault(place, row.detail or "")
            else:
                scanned[place].add(side, row)
    return scanned
