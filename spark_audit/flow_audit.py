"""One flow's audit, from its snapshot to findings and numbers: the steps in their order.

The only place that collects: which windows differ decides what is read next.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from spark_audit.compare.compare import (
    BOUNDS,
    PARTITION,
    WINDOWS,
    align_records,
    beginnings,
    differing_windows,
    mark_waiting,
    originals,
    strangers,
)
from spark_audit.compare.explain import (
    explain_by_holes,
    holes_before_start,
    judge,
    judge_cut_logs,
    judge_holes,
    settle_unmirrored_end,
)
from spark_audit.compare.outcomes import Kind
from spark_audit.compare.summary import findings, partition_summary
from spark_audit.compare.superseded import mark_superseded, mirrored_ends, questioned, stretches
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.frames import local_frame
from spark_audit.scan.reading import scanned
from spark_audit.scan.scan_plan import Planner, ScanTask
from spark_audit.scan.scan_rows import RowKind
from spark_audit.scan.windows import Window
from spark_audit.snapshot.bounds import Snapshot
from spark_audit.snapshot.seals import CannotTell
from spark_audit.snapshot.side import Side
from wire.topic_partition import TopicPartition

BACKLOG_RECORDS: Final = 100_000
"""More than these at a source's end are not looked at if what the target has of them is the first:
while a mirror fills a target they may be all there is, and each takes 1.1 KiB of a worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFrames:
    """The result, still to be computed when it is written."""

    findings: DataFrame
    summary: DataFrame
    untold: Mapping[TopicPartition, str]
    """Why other partitions could not be compared."""


Scan: TypeAlias = Callable[[SparkSession, Sequence[ScanTask]], DataFrame]
"""Reads logs: `reading.scanned`."""


@contextmanager
def audit_flow(
    spark: SparkSession, snapshot: Snapshot, planner: Planner, scan: Scan = scanned
) -> Iterator[FlowFrames]:
    """Compare both logs within the snapshot; cached frames are freed at the end.

    A log that cannot be read to its end is left out, and named. Raises CannotTell if none is left.
    """
    run = _Run(spark=spark, scan=scan, kept=[], starts={}, untold={})
    ranges = run.read(planner.ranges())
    snapshot = run.told(snapshot)
    bounds = local_frame(spark, snapshot.rows(), BOUNDS)
    ranges = run.told_of(ranges, bounds)
    marked = mark_waiting(differing_windows(ranges), bounds).collect()
    waiting, differing = run.sort_out(planner, bounds, ranges, marked)
    judged = judge_holes(holes_of(ranges), bounds)
    if differing:
        judged = judged.unionByName(run.judge_windows(planner, snapshot, differing))
    in_flight = judged.where(f.col("kind") == Kind.IN_FLIGHT.value)
    behind = in_flight.select(*PARTITION).unionByName(waiting.select(*PARTITION)).distinct()
    judged = run.keep(judged.unionByName(judge_cut_logs(bounds, behind)))
    if run.untold:
        snapshot = run.told(snapshot)
        bounds = local_frame(spark, snapshot.rows(), BOUNDS)
        judged = run.told_of(judged, bounds)
    flow = f.lit(snapshot.flow)
    yield FlowFrames(
        findings=findings(judged).withColumn("flow", flow),
        summary=partition_summary(bounds, ranges, judged, waiting).withColumn("flow", flow),
        untold=snapshot.untold,
    )
    # Not after a failure: then the session ends, and a signal may have made it unusable.
    for frame in run.kept:
        frame.unpersist()


WAITING: Final = "topic string, partition int, records bigint"
"""The number of records at a source's end that are in flight without having been looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Spark, and what one flow's audit keeps in its cache."""

    spark: SparkSession
    scan: Scan
    kept: list[DataFrame]
    starts: dict[tuple[Side, str, int], int]
    """Where logs began that had lost more by the time they were read."""
    untold: dict[TopicPartition, str]
    """Why some logs could not be read to their ends."""

    def told(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot without what could not be read; CannotTell if nothing is left."""
        told = snapshot.without(self.untold)
        if not told.partitions:
            raise CannotTell(min(told.untold.values()))
        return told

    def told_of(self, frame: DataFrame, bounds: DataFrame) -> DataFrame:
        """Return the rows of partitions that could be read; `bounds` are theirs."""
        if not self.untold:
            return frame
        return frame.join(f.broadcast(bounds.select(*PARTITION)), on=PARTITION, how="left_semi")

    def keep(self, frame: DataFrame) -> DataFrame:
        """Compute a frame once, for all steps that use it."""
        self.kept.append(frame.persist())
        return self.kept[-1]

    def read(self, tasks: Sequence[ScanTask]) -> DataFrame:
        """Scan now, and note which logs cannot be read, and which have lost their beginning."""
        rows = self.keep(self.scan(self.spark, tasks))
        has_failed = f.col("kind") == RowKind.FAILURE.value
        is_gone = (f.col("kind") == RowKind.HOLE.value) & (
            f.col("reason") == HoleReason.RETENTION.name
        )
        faults = rows.where(has_failed | is_gone).select(
            "kind", "side", *PARTITION, "stop_offset", "detail"
        )
        for row in faults.collect():
            if row.kind == RowKind.FAILURE.value:
                self.untold.setdefault(_partition(row), row.detail)
            else:
                log = (Side(row.side), row.topic, row.partition)
                self.starts[log] = max(self.starts.get(log, 0), row.stop_offset)
        return rows

    def sort_out(
        self, planner: Planner, bounds: DataFrame, ranges: DataFrame, marked: Sequence[Row]
    ) -> tuple[DataFrame, Sequence[Row]]:
        """Return the windows that wait, with the number of records, and those to look into."""
        backlogs = [
            row
            for row in marked
            if row.may_wait
            and row.target_records
            and row.source_records - row.target_records > BACKLOG_RECORDS
        ]
        following = self._following(planner, bounds, ranges, backlogs) if backlogs else set()
        waiting: list[tuple[object, ...]] = []
        differing: list[Row] = []
        for row in marked:
            if row.may_wait and (not row.target_records or _partition(row) in following):
                waiting.append((*_partition(row), row.source_records - row.target_records))
            else:
                differing.append(row)
        return local_frame(self.spark, waiting, WAITING), differing

    def _following(
        self, planner: Planner, bounds: DataFrame, ranges: DataFrame, backlogs: Sequence[Row]
    ) -> set[TopicPartition]:
        """Return of which partitions the target's end is what the source's begins with."""
        windows = beginnings(
            local_frame(self.spark, (tuple(row)[:-1] for row in backlogs), WINDOWS), ranges
        )
        beginning_rows = windows.collect()
        near = local_frame(self.spark, map(tuple, beginning_rows), WINDOWS)
        records = self.read(planner.records(_named(row) for row in beginning_rows))
        none = originals(self.read(()), strangers(records))
        others = align_records(records, near, none, bounds).where(
            f.col("kind") != Kind.IN_FLIGHT.value
        )
        disturbed = {_partition(row) for row in others.select(*PARTITION).distinct().collect()}
        return {_partition(row) for row in beginning_rows} - disturbed

    def judge_windows(
        self, planner: Planner, snapshot: Snapshot, differing: Sequence[Row]
    ) -> DataFrame:
        """Read the records of the windows, and what else explains them, and judge them."""
        windows = local_frame(self.spark, (tuple(row)[:-1] for row in differing), WINDOWS)
        records = self.read(planner.records(_named(row) for row in differing))
        bounds = local_frame(self.spark, snapshot.begun_at(self.starts).rows(), BOUNDS)
        known = self._originals(planner, strangers(records))
        outcomes = self.keep(align_records(records, windows, known, bounds))
        tails = {row.topic for row in differing if row.is_last and row.source_records}
        native = self.read(planner.native(tails))
        settled = self.keep(settle_unmirrored_end(outcomes, bounds, native))
        # Not those of the ranges: what was taken from the logs since then is a hole only here.
        holes = holes_of(records).unionByName(holes_before_start(bounds))
        asked = questioned(settled, records, bounds)
        newest = self.read(planner.newest(map(tuple, stretches(asked).collect())))
        superseded = mark_superseded(asked, newest, mirrored_ends(settled, bounds))
        return judge(explain_by_holes(settled, superseded, holes, bounds))

    def _originals(self, planner: Planner, wanted: DataFrame) -> DataFrame:
        kept = self.keep(wanted)
        partitions = [tuple(row) for row in kept.select(*PARTITION).distinct().collect()]
        return originals(self.read(planner.sources(partitions)), kept)


def holes_of(scan: DataFrame) -> DataFrame:
    """Return the holes of a scan."""
    return scan.where(f.col("kind") == RowKind.HOLE.value).select(
        *PARTITION, "side", "start_offset", "stop_offset", "records", "reason", "detail"
    )


def _named(row: Row) -> tuple[str, int, int, Window]:
    """Return a window, marked or not, as topic, partition, number and the pure value."""
    window = Window(*(row[name] for name in Window._fields))
    return row.topic, row.partition, row.window, window


def _partition(row: Row) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)
