"""Find records that a log cleaner may have taken: a later one of their key supersedes them.

    source  |--a--......--K:v2--b--|       ..  a gap in the offsets, as cleaners leave it
    target  |--a--K:v1--........--b|

The gap of the target has room for K:v2, but its cleaner cannot have taken it: it keeps the last
record of each key, and the target has none of K behind that place. A mirror has lost it.

"Later" must be certain: behind the outcome's bracket, or behind all that was mirrored. Inside the
bracket the order is not known; but if cleaners and mirror lose nothing, the record that superseded
another one is never inside the same bracket.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_audit.compare.compare import PARTITION
from spark_audit.compare.outcomes import Kind
from spark_audit.scan.scan_rows import RowKind
from spark_audit.snapshot.side import Side

_QUESTIONED: Final = [
    *PARTITION,
    "lacking",
    "holding",
    "offset",
    "source_after",
    "source_before",
    "target_after",
    "target_before",
    "key_digest",
    "is_tombstone",
]


def lacking_side() -> Column:
    """Return the side that lacks an outcome's record; null where no hole could tell why."""
    was_mirrored = f.col("unmirrored_by").isNull()
    is_surplus = f.col("kind").isin(Kind.PHANTOM.value, Kind.DUPLICATED.value)
    return f.when((f.col("kind") == Kind.LOST.value) & was_mirrored, Side.TARGET.value).when(
        is_surplus, Side.SOURCE.value
    )


def questioned(outcomes: DataFrame, records: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return the outcomes of records that a side with a cleaner lacks, with the other's record.

    `records` is the scan of the windows.
    """
    lacks_target = f.col("lacking") == Side.TARGET.value
    has_cleaner = f.when(lacks_target, f.col("target_compacted")).otherwise(
        f.col("source_compacted")
    )
    holding = f.when(lacks_target, Side.SOURCE.value).otherwise(Side.TARGET.value)
    offset = f.when(lacks_target, f.col("source_offset")).otherwise(f.col("target_offset"))
    content = records.where(f.col("kind") == RowKind.RECORD.value).select(
        *PARTITION,
        f.col("side").alias("holding"),
        f.col("start_offset").alias("offset"),
        "key_digest",
        "is_tombstone",
    )
    return (
        outcomes.withColumn("lacking", lacking_side())
        .where(f.col("lacking").isNotNull())
        .join(
            bounds.select(*PARTITION, "source_compacted", "target_compacted"),
            on=PARTITION,
            how="inner",
        )
        .where(has_cleaner)
        .withColumn("holding", holding)
        .withColumn("offset", offset)
        .join(content, on=[*PARTITION, "holding", "offset"], how="inner")
        .select(*_QUESTIONED)
    )


def stretches(asked: DataFrame) -> DataFrame:
    """Return for each partition the offsets from which on its logs may explain these records.

    The record that superseded one lies behind it. The records that a tombstone stood for lie
    anywhere before it.
    """
    return (
        asked.groupBy(*PARTITION)
        .agg(
            f.min(_told_from(Side.SOURCE)).alias("source_from"),
            f.min(_told_from(Side.TARGET)).alias("target_from"),
        )
        .select(*PARTITION, "source_from", "target_from")
    )


def _told_from(side: Side) -> Column:
    lacks_tombstone = f.col("is_tombstone") & (f.col("lacking") == side.value)
    return f.when(lacks_tombstone, 0).otherwise(f.col(f"{side.value}_after") + 1)


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
        "both_ways",
    )


def mark_superseded(asked: DataFrame, newest: DataFrame, ends: DataFrame) -> DataFrame:
    """Add `is_superseded`: whether the lacking side's cleaner may have taken the record.

    It may if that side holds a later record of the same key. Tombstones go after a time without
    one, but not before what they stood for, and a record that the other side's tombstone
    supersedes may be gone with it. Records without a key are dropped by cleaners. `newest` is a
    scan of the `stretches` up to where the logs end by then: a record written since the audit began
    supersedes as well.
    """
    lacks_target = f.col("lacking") == Side.TARGET.value
    placed = (
        asked.join(ends, on=PARTITION, how="inner")
        .withColumn(
            "after", f.when(lacks_target, f.col("target_after")).otherwise(f.col("source_after"))
        )
        .withColumn(
            "later_from",
            f.when(lacks_target, f.least("target_before", "target_end")).otherwise(
                f.least("source_before", "source_end")
            ),
        )
    )
    known = _known_of_keys(newest, ends)
    lacking = known.select(
        *PARTITION, f.col("side").alias("lacking"), "key_digest", "first", "last"
    )
    holding = known.select(*PARTITION, f.col("side").alias("holding"), "key_digest", "tombstone")
    stood_for_nothing = f.coalesce(f.col("first") > f.col("after"), f.lit(1).cast("boolean"))
    may_be_taken = (
        f.col("key_digest").isNull()
        | (f.col("is_tombstone") & stood_for_nothing)
        | (f.col("last") >= f.col("later_from"))
        | (f.col("tombstone") > f.col("offset"))
    )
    return (
        placed.join(lacking, on=[*PARTITION, "lacking", "key_digest"], how="left")
        .join(holding, on=[*PARTITION, "holding", "key_digest"], how="left")
        .select(
            *PARTITION,
            "lacking",
            "offset",
            f.coalesce(may_be_taken, f.lit(0).cast("boolean")).alias("is_superseded"),
        )
    )


def _known_of_keys(newest: DataFrame, ends: DataFrame) -> DataFrame:
    """Return each key's first and last record on each side, and its last mirrored tombstone.

    What applications wrote to the target behind a promotion supersedes what was mirrored there, but
    nothing on the source, unless the other direction takes it there; what came from there by it
    was on both.
    """
    on_source = f.col("side").isin(Side.SOURCE.value, Side.RETURNED.value)
    was_mirrored = (
        f.col("start_offset")
        < f.when(on_source, f.col("source_end")).otherwise(f.col("target_end"))
    ) | (f.col("both_ways") & f.col("side").isin(Side.NATIVE.value, Side.RETURNED.value))
    side = f.when(on_source, Side.SOURCE.value).otherwise(Side.TARGET.value)
    return (
        newest.where(f.col("kind") == RowKind.RECORD.value)
        .join(ends, on=PARTITION, how="inner")
        .groupBy(*PARTITION, side.alias("side"), "key_digest")
        .agg(
            f.min("start_offset").alias("first"),
            f.max("start_offset").alias("last"),
            f.max(f.when(f.col("is_tombstone") & was_mirrored, f.col("start_offset"))).alias(
                "tombstone"
            ),
        )
        .select(*PARTITION, "side", "key_digest", "first", "last", "tombstone")
    )
