"""Which records a log cleaner may have taken: those that a later one of their key supersedes.

    source  |--a--......--K:v2--b--|       ..  a gap in the offsets, as cleaners leave it
    target  |--a--K:v1--........--b|

The gap of the target has room for K:v2, but its cleaner cannot have taken it: it keeps the last
record of each key, and the target has none of K behind that place. A mirror has lost it.

"Later" must be certain: behind the outcome's bracket, or behind all that was mirrored. In the same
bracket nobody knows the order; with two cleaners and a mirror that lose nothing, the record that
superseded one is never there.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_audit.compare import PARTITION
from spark_audit.outcomes import Kind
from spark_audit.scan_rows import RowKind, Side

_QUESTIONED: Final = [
    *PARTITION,
    "source_offset",
    "target_offset",
    "source_after",
    "source_before",
    "target_after",
    "target_before",
    "lacking",
]


def lacking_side() -> Column:
    """Return the side that lacks an outcome's record; null where no hole could tell why."""
    was_mirrored = f.col("unmirrored_by").isNull()
    is_surplus = f.col("kind").isin(Kind.PHANTOM.value, Kind.DUPLICATED.value)
    return f.when((f.col("kind") == Kind.LOST.value) & was_mirrored, Side.TARGET.value).when(
        is_surplus, Side.SOURCE.value
    )


def questioned(outcomes: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return the outcomes of records that a side with a cleaner lacks, with that side."""
    has_cleaner = f.when(
        f.col("lacking") == Side.TARGET.value, f.col("target_compacted")
    ).otherwise(f.col("source_compacted"))
    compacted = bounds.select(*PARTITION, "source_compacted", "target_compacted")
    return (
        outcomes.withColumn("lacking", lacking_side())
        .where(f.col("lacking").isNotNull())
        .join(compacted, on=PARTITION, how="inner")
        .where(has_cleaner)
        .select(*_QUESTIONED)
    )


def stretches(asked: DataFrame) -> DataFrame:
    """Return for each partition from where on its logs may hold what superseded these records."""
    return (
        asked.groupBy(*PARTITION)
        .agg(
            (f.min("source_after") + 1).alias("source_from"),
            (f.min("target_after") + 1).alias("target_from"),
        )
        .select(*PARTITION, "source_from", "target_from")
    )


def mirrored_ends(outcomes: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return for each partition where on both sides the mirrored records end for certain."""
    is_unmirrored = f.col("kind").isin(Kind.IN_FLIGHT.value, Kind.WRITTEN_AGAIN.value) | (
        f.col("unmirrored_by").isNotNull()
    )
    first = outcomes.groupBy(*PARTITION).agg(
        f.min(f.when(is_unmirrored, f.col("source_offset"))).alias("unmirrored")
    )
    return bounds.join(first, on=PARTITION, how="left").select(
        *PARTITION,
        f.least("source_stop", "unmirrored").alias("source_end"),
        f.col("target_stop").alias("target_end"),
    )


def mark_superseded(
    asked: DataFrame, records: DataFrame, newest: DataFrame, ends: DataFrame
) -> DataFrame:
    """Add `is_superseded`: whether the lacking side's cleaner may have taken the record.

    It may if that side holds a later record of the same key. Tombstones go after a time without
    one, and a record that the other side's tombstone supersedes may be gone with it. Records
    without a key are dropped by cleaners. `newest` is a scan of the `stretches`.
    """
    lacks_target = f.col("lacking") == Side.TARGET.value
    placed = (
        asked.join(ends, on=PARTITION, how="inner")
        .withColumn(
            "holding",
            f.when(lacks_target, Side.SOURCE.value).otherwise(Side.TARGET.value),
        )
        .withColumn(
            "offset",
            f.when(lacks_target, f.col("source_offset")).otherwise(f.col("target_offset")),
        )
        .withColumn(
            "later_from",
            f.when(lacks_target, f.least("target_before", "target_end")).otherwise(
                f.least("source_before", "source_end")
            ),
        )
    )
    content = records.where(f.col("kind") == RowKind.RECORD.value).select(
        *PARTITION,
        f.col("side").alias("holding"),
        f.col("start_offset").alias("offset"),
        "key_digest",
        "is_tombstone",
    )
    last = _last_of_keys(newest, ends)
    lacking = last.select(*PARTITION, f.col("side").alias("lacking"), "key_digest", "last")
    holding = last.select(*PARTITION, f.col("side").alias("holding"), "key_digest", "tombstone")
    may_be_taken = (
        f.col("key_digest").isNull()
        | f.col("is_tombstone")
        | (f.col("last") >= f.col("later_from"))
        | (f.col("tombstone") > f.col("offset"))
    )
    return (
        placed.join(content, on=[*PARTITION, "holding", "offset"], how="inner")
        .join(lacking, on=[*PARTITION, "lacking", "key_digest"], how="left")
        .join(holding, on=[*PARTITION, "holding", "key_digest"], how="left")
        .select(
            *PARTITION,
            "lacking",
            "offset",
            f.coalesce(may_be_taken, f.lit(0).cast("boolean")).alias("is_superseded"),
        )
    )


def _last_of_keys(newest: DataFrame, ends: DataFrame) -> DataFrame:
    """Return each key's last record on each side, and its last tombstone that was mirrored.

    What applications wrote to the target behind a promotion supersedes what was mirrored there, but
    nothing on the source.
    """
    on_source = f.col("side") == Side.SOURCE.value
    was_mirrored = f.col("start_offset") < f.when(on_source, f.col("source_end")).otherwise(
        f.col("target_end")
    )
    side = f.when(on_source, Side.SOURCE.value).otherwise(Side.TARGET.value)
    return (
        newest.where(f.col("kind") == RowKind.RECORD.value)
        .join(ends, on=PARTITION, how="inner")
        .groupBy(*PARTITION, side.alias("side"), "key_digest")
        .agg(
            f.max("start_offset").alias("last"),
            f.max(f.when(f.col("is_tombstone") & was_mirrored, f.col("start_offset"))).alias(
                "tombstone"
            ),
        )
        .select(*PARTITION, "side", "key_digest", "last", "tombstone")
    )
