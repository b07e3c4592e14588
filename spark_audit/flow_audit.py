"""One flow's audit, from its snapshot to findings and numbers: what is run, in which order.

The only place that collects: which windows differ decides what is read next.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from spark_audit.bounds import Snapshot
from spark_audit.compare import (
    BOUNDS,
    PARTITION,
    WINDOWS,
    align_records,
    differing_windows,
    mark_waiting,
    originals,
    strangers,
)
from spark_audit.explain import (
    explain_by_holes,
    holes_before_start,
    judge,
    judge_cut_logs,
    judge_holes,
    recognise_rewritten,
)
from spark_audit.frames import local_frame
from spark_audit.outcomes import Kind
from spark_audit.reading import scanned
from spark_audit.scan_plan import Planner, ScanTask
from spark_audit.scan_rows import RowKind
from spark_audit.seals import CannotTell
from spark_audit.summary import findings, partition_summary
from spark_audit.superseded import mark_superseded, mirrored_ends, questioned, stretches
from spark_audit.windows import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFrames:
    """The result, still to be computed when it is written."""

    findings: DataFrame
    summary: DataFrame


Scan: TypeAlias = Callable[[SparkSession, Sequence[ScanTask]], DataFrame]
"""Reads logs: `reading.scanned`."""


@contextmanager
def audit_flow(
    spark: SparkSession, snapshot: Snapshot, planner: Planner, scan: Scan = scanned
) -> Iterator[FlowFrames]:
    """Compare both logs within the snapshot; what is cached is given back at the end.

    Raises CannotTell for a log that cannot be read to its end, from here or when the result is
    computed.
    """
    run = _Run(spark=spark, scan=scan, kept=[])
    bounds = local_frame(spark, snapshot.rows(), BOUNDS)
    ranges = run.read(planner.ranges())
    marked = mark_waiting(differing_windows(ranges), bounds).collect()
    waiting = local_frame(spark, (row for row in marked if row.waits), _MARKED)
    differing = [row for row in marked if not row.waits]
    judged = judge_holes(holes_of(ranges), bounds)
    if differing:
        judged = judged.unionByName(run.judge_windows(planner, bounds, differing))
    in_flight = judged.where(f.col("kind") == Kind.IN_FLIGHT.value)
    behind = in_flight.select(*PARTITION).unionByName(waiting.select(*PARTITION)).distinct()
    judged = run.keep(judged.unionByName(judge_cut_logs(bounds, behind)))
    flow = f.lit(snapshot.flow)
    yield FlowFrames(
        findings=findings(judged).withColumn("flow", flow),
        summary=partition_summary(bounds, ranges, judged, waiting).withColumn("flow", flow),
    )
    # Not after a failure: then the session ends, and a signal may have made it unusable.
    for frame in run.kept:
        frame.unpersist()


_MARKED = f"{WINDOWS}, waits boolean"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Spark, and what one flow's audit keeps in its cache."""

    spark: SparkSession
    scan: Scan
    kept: list[DataFrame]

    def keep(self, frame: DataFrame) -> DataFrame:
        """Compute a frame once, for all steps that use it."""
        self.kept.append(frame.persist())
        return self.kept[-1]

    def read(self, tasks: Sequence[ScanTask]) -> DataFrame:
        """Scan now, and raise CannotTell with the first reason why some log cannot be read."""
        rows = self.keep(self.scan(self.spark, tasks))
        failures = rows.where(f.col("kind") == RowKind.FAILURE.value).select("detail").collect()
        if failures:
            raise CannotTell(min(failure.detail for failure in failures))
        return rows

    def judge_windows(
        self, planner: Planner, bounds: DataFrame, differing: Sequence[Row]
    ) -> DataFrame:
        """Read the records of the windows, and what else explains them, and judge them."""
        windows = local_frame(self.spark, (tuple(row)[:-1] for row in differing), WINDOWS)
        records = self.read(planner.records(_named(row) for row in differing))
        found = self._originals(planner, strangers(records))
        outcomes = self.keep(align_records(records, windows, found, bounds))
        tails = {row.topic for row in differing if row.is_last and row.source_records}
        native = self.read(planner.native(tails))
        settled = self.keep(recognise_rewritten(outcomes, bounds, native))
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
    """Return a marked window as topic, partition, number and the pure value."""
    topic, partition, number, *window = tuple(row)[:-1]
    return topic, partition, number, Window(*window)
