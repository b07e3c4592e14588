"""The comparison as steps on DataFrames: ranges, then windows, then the records that differ.

    scan of ranges  ─► differing_windows ─► mark_waiting ─► beginnings, where very much may wait
                                                         ─► (the windows' records are scanned)
    scan of records ─► strangers ─► (the source is scanned for them) ─► originals
    both            ─► align_records ─► goes on in `explain`

Every function ends in a select, its contract; nothing is collected here. Two steps need an order
that no join can express: they are Arrow functions over one partition of a topic at a time.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as f

from spark_audit.compare.arrow_steps import ALIGNMENT_INPUT, ORIGINAL, align_partition, find_windows
from spark_audit.scan.scan_rows import RowKind
from spark_audit.scan.windows import LOG_START, Window
from spark_audit.snapshot.side import Side

PARTITION: Final = ["topic", "partition"]

BOUNDS: Final = (
    "topic string, partition int, source_start bigint, source_stop bigint, target_start bigint, "
    "target_stop bigint, promotion bigint, mirrored_source_end bigint, source_compacted boolean, "
    "target_compacted boolean, seen_stop bigint, seen string, both_ways boolean"
)
"""What the snapshot says of each partition; `promotion` is null unless one has sealed it, `seen`
and its stop unless an earlier audit saw the target's log end further on."""

WINDOWS: Final = (
    "topic string, partition int, window int, source_start bigint, source_stop bigint, "
    "target_start bigint, target_stop bigint, source_records bigint, target_records bigint, "
    "is_last boolean"
)
"""As `windows.Window`, numbered from 0 in each partition."""

WINDOW_COLUMNS: Final = (*PARTITION, "window", *Window._fields)

OUTCOMES: Final = (
    "topic string, partition int, kind string, source_offset bigint, target_offset bigint, "
    "source_digest binary, timestamp_ms bigint, key string, producer_id bigint, "
    "source_after bigint, source_before bigint, target_after bigint, target_before bigint"
)
"""As `outcomes.Outcome`; the last four are its bracket."""


def differing_windows(scan: DataFrame) -> DataFrame:
    """Return the windows in which the two logs differ, by their ranges; none if they are equal."""
    ranges = scan.where(f.col("kind") == RowKind.RANGE.value)
    return ranges.groupBy(*PARTITION).applyInArrow(find_windows, WINDOWS).select(*WINDOW_COLUMNS)


def mark_waiting(windows: DataFrame, bounds: DataFrame) -> DataFrame:
    """Add `may_wait`: the logs differ at their ends only, and the surplus may still arrive.

    Where the target has no record there, nobody has to look at the source's, however many.
    """
    is_only_window = f.count(f.lit(1)).over(Over.partitionBy(*PARTITION)) == 1
    may_still_arrive = f.col("promotion").isNull()
    return windows.join(bounds.select(*PARTITION, "promotion"), on=PARTITION, how="left").select(
        *WINDOW_COLUMNS,
        (is_only_window & f.col("is_last") & may_still_arrive).alias("may_wait"),
    )


def beginnings(windows: DataFrame, scan: DataFrame) -> DataFrame:
    """Return windows at logs' ends without those ranges of the source that lie behind as many
    records as the target has there.

        source  |=====|---=====|=====|=====|     the target's end cuts a range in two
        target  |=====|---|
        window        '--------'
    """
    ranges = scan.where(
        (f.col("kind") == RowKind.RANGE.value) & (f.col("side") == Side.SOURCE.value)
    ).select(*PARTITION, "start_offset", "stop_offset", "records")
    in_order = Over.partitionBy(*PARTITION).orderBy("start_offset")
    kept = [name for name in WINDOW_COLUMNS if name not in {"source_stop", "source_records"}]
    return (
        windows.drop("source_stop", "source_records")
        .join(ranges, on=PARTITION, how="inner")
        .where(f.col("start_offset") >= f.col("source_start"))
        .withColumn("so_far", f.sum("records").over(in_order))
        .where(f.col("so_far") >= f.col("target_records"))
        .groupBy(*kept)
        .agg(f.min("stop_offset").alias("source_stop"), f.min("so_far").alias("source_records"))
        .select(*WINDOW_COLUMNS)
    )


def strangers(records: DataFrame) -> DataFrame:
    """Return the records that the target's windows hold and the source's windows do not."""
    is_on_target = f.col("side") == Side.TARGET.value
    is_on_source = f.col("side") == Side.SOURCE.value
    only_records = records.where(f.col("kind") == RowKind.RECORD.value)
    key = [*PARTITION, "digest"]
    return (
        only_records.where(is_on_target)
        .join(only_records.where(is_on_source), on=key, how="left_anti")
        .select(*key)
        .distinct()
        .select(*key)
    )


def originals(source: DataFrame, wanted: DataFrame) -> DataFrame:
    """Return the first source record of each wanted digest: `wanted` are strangers.

    `source` is a scan of whole partitions. A stranger that is found there is a copy of a record
    that arrived in its place as well, outside the windows.
    """
    key = [*PARTITION, "digest"]
    return (
        source.where(f.col("kind") == RowKind.RECORD.value)
        .join(wanted, on=key, how="left_semi")
        .groupBy(*key)
        .agg(
            f.min_by(
                f.struct("start_offset", "timestamp_ms", "key", "producer_id"), "start_offset"
            ).alias("first")
        )
        .select(*key, "first.start_offset", "first.timestamp_ms", "first.key", "first.producer_id")
    )


def align_records(
    records: DataFrame, windows: DataFrame, known: DataFrame, bounds: DataFrame
) -> DataFrame:
    """Return the outcome of every record that is not in its place; `known` are originals."""
    logs = bounds.select(
        *PARTITION,
        f.col("source_compacted").alias("is_compacted"),
        ((f.col("source_start") > 0) | (f.col("target_start") > 0)).alias("is_cut"),
        f.col("source_start").alias("source_begin"),
    )
    begins_logs = (f.col("source_start") == LOG_START) & (f.col("target_start") == LOG_START)
    edges = windows.join(logs, on=PARTITION, how="left").select(
        *PARTITION,
        "window",
        (f.col("source_start") - 1).alias("source_after"),
        f.col("source_stop").alias("source_before"),
        (f.col("target_start") - 1).alias("target_after"),
        f.col("target_stop").alias("target_before"),
        "is_last",
        "is_compacted",
        (f.col("is_cut") & begins_logs).alias("is_cut"),
        f.when(begins_logs, f.col("source_begin")).otherwise(0).alias("source_begin"),
    )
    in_windows = (
        records.where(f.col("kind") == RowKind.RECORD.value)
        .join(f.broadcast(edges), on=[*PARTITION, "window"], how="inner")
        .select(*ALIGNMENT_INPUT)
    )
    far_away = known.withColumn("side", f.lit(ORIGINAL))
    return (
        in_windows.unionByName(far_away, allowMissingColumns=True)
        .select(*ALIGNMENT_INPUT)
        .groupBy(*PARTITION)
        .applyInArrow(align_partition, OUTCOMES)
        .select(
            *PARTITION,
            "kind",
            "source_offset",
            "target_offset",
            "source_digest",
            "timestamp_ms",
            "key",
            "producer_id",
            "source_after",
            "source_before",
            "target_after",
            "target_before",
        )
    )
