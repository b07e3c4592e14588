"""Numbers per partition, and the list of findings, out of what was judged: DataFrame steps.

Both end in one partition, which becomes one file.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_audit.compare.compare import PARTITION
from spark_audit.compare.outcomes import FINDINGS, Kind
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.scan_rows import RowKind
from spark_audit.snapshot.side import Side

HOLE_COLUMNS: Final = tuple(
    (f"{side.value}_{reason.name.lower()}_offsets", side, reason)
    for side in (Side.SOURCE, Side.TARGET)
    for reason in HoleReason
)
"""Offsets without a committed record, by side and reason."""

_BOUNDS: Final = (
    "source_start",
    "source_stop",
    "target_start",
    "target_stop",
    "promotion",
    "mirrored_source_end",
)


def findings(judged: DataFrame) -> DataFrame:
    """Return what is a finding, in the order in which people look for it."""
    return (
        judged.where(f.col("kind").isin([kind.value for kind in FINDINGS]))
        .repartition(1)
        .sortWithinPartitions(*PARTITION, f.coalesce("source_offset", "target_offset"), "kind")
        .select(
            *PARTITION,
            "kind",
            "source_offset",
            "target_offset",
            "records",
            "timestamp_ms",
            "key",
            "reason",
        )
    )


def partition_summary(
    bounds: DataFrame, scan: DataFrame, judged: DataFrame, waiting: DataFrame
) -> DataFrame:
    """Return a row for every partition of the snapshot: bounds, records, kinds, holes.

    `waiting` says of which partitions only the number of records in flight is known.
    """
    read = scan.groupBy(*PARTITION).agg(
        *(_records(side).alias(f"{side.value}_records") for side in (Side.SOURCE, Side.TARGET)),
        *(_offsets(side, reason).alias(name) for name, side, reason in HOLE_COLUMNS),
    )
    counted = judged.groupBy(*PARTITION).agg(
        *(f.count(f.when(f.col("kind") == kind.value, 1)).alias(kind.column) for kind in Kind),
        f.min(f.when(f.col("kind") == Kind.IN_FLIGHT.value, f.col("timestamp_ms"))).alias(
            "oldest_in_flight_ms"
        ),
    )
    tails = waiting.groupBy(*PARTITION).agg(f.sum("records").alias("waiting"))
    numbers = [
        *(f"{side.value}_records" for side in (Side.SOURCE, Side.TARGET)),
        *(name for name, _, _ in HOLE_COLUMNS),
        *(kind.column for kind in Kind if kind is not Kind.IN_FLIGHT),
    ]
    in_flight = f.coalesce(Kind.IN_FLIGHT.column, f.lit(0)) + f.coalesce("waiting", f.lit(0))
    return (
        bounds.join(read, on=PARTITION, how="left")
        .join(counted, on=PARTITION, how="left")
        .join(tails, on=PARTITION, how="left")
        .repartition(1)
        .sortWithinPartitions(*PARTITION)
        .select(
            *PARTITION,
            *_BOUNDS,
            *(f.coalesce(name, f.lit(0)).cast("bigint").alias(name) for name in numbers),
            in_flight.cast("bigint").alias(Kind.IN_FLIGHT.column),
            "oldest_in_flight_ms",
        )
    )


def _records(side: Side) -> Column:
    is_range = (f.col("kind") == RowKind.RANGE.value) & (f.col("side") == side.value)
    return f.sum(f.when(is_range, f.col("records")))


def _offsets(side: Side, reason: HoleReason) -> Column:
    is_hole = (f.col("side") == side.value) & (f.col("reason") == reason.name)
    return f.sum(f.when(is_hole, f.col("records")))
