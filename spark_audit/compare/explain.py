"""Judge outcomes: promotions and holes explain some of them, the rest are findings.

    outcomes ─► settle_unmirrored_end ─► (superseded) ─► explain_by_holes ─► judge ─┐
    holes    ─► judge_holes ──────────────────────────────────────────────────────┴─► judged

Every function ends in a select, its contract; nothing is collected here.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as f

from spark_audit.compare.compare import PARTITION
from spark_audit.compare.outcomes import Kind
from spark_audit.compare.superseded import lacking_side
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.scan_rows import RowKind
from spark_audit.snapshot.side import Side

JUDGED: Final = (
    "topic string, partition int, kind string, source_offset bigint, target_offset bigint, "
    "records bigint, timestamp_ms bigint, key string, reason string"
)
"""The audit's judgements, a row a record (`records` 1) or a hole (the offsets it covers)."""

_EXPLAINS: Final = (HoleReason.RETENTION, HoleReason.GAP)
_NAMED_ONLY: Final = (HoleReason.CORRUPT, HoleReason.ABORTED)
_NOT_SUPERSEDED: Final = "NOT SUPERSEDED"
"""Instead of a hole's reason: there is a gap, but no cleaner can have taken this record."""
_NEIGHBOURS: Final = ["source_after", "source_before", "target_after", "target_before"]
_OUTCOME: Final = [
    *PARTITION,
    "kind",
    "source_offset",
    "target_offset",
    "timestamp_ms",
    "key",
    "producer_id",
    *_NEIGHBOURS,
]


def settle_unmirrored_end(outcomes: DataFrame, bounds: DataFrame, native: DataFrame) -> DataFrame:
    """Settle the unmirrored end of sealed partitions, and add `unmirrored_by`, the promotion.

    Behind a promotion nothing is in flight any more: a record beyond the mirrored end is lost,
    unless applications wrote the same record (time included) to the new site, `native`, in any
    partition. Copies count: two lost and one written again leaves one lost.
    """
    sealed = bounds.select(*PARTITION, "promotion", "mirrored_source_end")
    missing = f.col("kind").isin(Kind.LOST.value, Kind.IN_FLIGHT.value)
    unmirrored = missing & (f.col("source_offset") >= f.col("mirrored_source_end"))
    copies = Over.partitionBy("topic", "digest", "unmirrored")
    ranked = (
        outcomes.join(sealed, on=PARTITION, how="left")
        .withColumn("unmirrored", f.when(unmirrored, 1).otherwise(0))
        .withColumn("digest", f.col("source_digest"))
        .withColumn("copy", f.row_number().over(copies.orderBy("partition", "source_offset")))
    )
    by_digest = Over.partitionBy("topic", "digest").orderBy("partition", "start_offset")
    rewritten = (
        native.where(f.col("kind") == RowKind.RECORD.value)
        .withColumn("copy", f.row_number().over(by_digest))
        .withColumn("unmirrored", f.lit(1))
        .select("topic", "digest", "copy", "unmirrored", f.col("start_offset").alias("native"))
    )
    is_lost = missing & f.col("promotion").isNotNull()
    return ranked.join(rewritten, on=["topic", "digest", "copy", "unmirrored"], how="left").select(
        *(name for name in _OUTCOME if name not in {"kind", "target_offset"}),
        f.when(f.col("native").isNotNull(), Kind.WRITTEN_AGAIN.value)
        .when(is_lost, Kind.LOST.value)
        .otherwise(f.col("kind"))
        .alias("kind"),
        f.coalesce("native", "target_offset").alias("target_offset"),
        f.when(f.col("unmirrored") == 1, f.col("promotion")).alias("unmirrored_by"),
    )


def explain_by_holes(
    outcomes: DataFrame, superseded: DataFrame, holes: DataFrame, bounds: DataFrame
) -> DataFrame:
    """Add `hole`: the reason of a hole where the other side should have the record, else null.

    The hole must lie between the record's neighbours on the other side. No hole explains more
    records than it has offsets. Retention explains the oldest ones. Compaction explains all that
    are superseded (`superseded.mark_superseded`) or none. A corrupt batch explains all that are
    left or none. An aborted transaction explains nothing, but is named.
    """
    on_target = f.col("side") == Side.TARGET.value
    key = [*PARTITION, "side", "after", "before"]
    oldest_first = Over.partitionBy(*key).orderBy("offset")
    placed = (
        outcomes.withColumn("side", lacking_side())
        .withColumn(
            "offset", f.when(on_target, f.col("source_offset")).otherwise(f.col("target_offset"))
        )
        .withColumn(
            "after", f.when(on_target, f.col("target_after")).otherwise(f.col("source_after"))
        )
        .withColumn(
            "before", f.when(on_target, f.col("target_before")).otherwise(f.col("source_before"))
        )
        .withColumn("unmatched", f.count(f.lit(1)).over(Over.partitionBy(*key)))
        .withColumn("age", f.row_number().over(oldest_first))
    )
    best = _capacities(placed.select(*key).distinct(), _named_holes(holes, bounds), key)
    aged = f.coalesce("aged", f.lit(0))
    is_aged = f.col("age") <= aged
    may_be_taken = ~is_aged & f.coalesce("is_superseded", f.lit(0).cast("boolean"))
    taken = f.count(f.when(may_be_taken, 1)).over(Over.partitionBy(*key))
    is_enough = (f.col("best.hole_reason") != HoleReason.CORRUPT.name) | (
        f.col("best.capacity") >= f.col("unmatched") - aged
    )
    marked = superseded.withColumnRenamed("lacking", "side")
    return (
        placed.join(best, on=key, how="left")
        .join(marked, on=[*PARTITION, "side", "offset"], how="left")
        .withColumn("taken", taken)
        .select(
            *_OUTCOME,
            "unmirrored_by",
            f.when(is_aged, HoleReason.RETENTION.name)
            .when(may_be_taken & (f.col("gap") >= f.col("taken")), HoleReason.GAP.name)
            .when(is_enough, f.col("best.hole_reason"))
            .when(f.col("gap").isNotNull() & ~may_be_taken, _NOT_SUPERSEDED)
            .alias("hole"),
        )
    )


def _capacities(brackets: DataFrame, named: DataFrame, key: list[str]) -> DataFrame:
    """Return for each bracket how many records retention took (`aged`), compaction may have taken
    (`gap`), and the best other hole.

    What retention takes is the beginning of a log, and several holes may tell of it: all offsets
    of the bracket below the last of their ends are gone.
    """
    overlaps = (f.col("hole_start") < f.col("before")) & (f.col("hole_stop") > f.col("after") + 1)
    is_aged = f.col("hole_reason") == HoleReason.RETENTION.name
    is_gap = f.col("hole_reason") == HoleReason.GAP.name
    below = f.least("hole_stop", "before") - f.col("after") - 1
    other = f.struct("rank", "hole_reason", "capacity")
    return (
        brackets.join(named, on=[*PARTITION, "side"], how="inner")
        .where(overlaps)
        .groupBy(*key, "hole_reason")
        .agg(
            f.when(is_aged, f.max(below)).otherwise(f.sum("hole_size")).alias("capacity"),
            f.min("rank").alias("rank"),
        )
        .groupBy(*key)
        .agg(
            f.max(f.when(is_aged, f.col("capacity"))).alias("aged"),
            f.max(f.when(is_gap, f.col("capacity"))).alias("gap"),
            f.min(f.when(~is_aged & ~is_gap, other)).alias("best"),
        )
        .select(*key, "aged", "gap", "best")
    )


def _named_holes(holes: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return the holes that can say something; a gap only where compaction may have made it."""
    ranks = {reason.name: rank for rank, reason in enumerate((*_EXPLAINS, *_NAMED_ONLY))}
    rank = f.lit(None).cast("int")
    for name, value in ranks.items():
        rank = f.when(f.col("reason") == name, f.lit(value)).otherwise(rank)
    compacted = f.when(f.col("side") == Side.SOURCE.value, f.col("source_compacted")).otherwise(
        f.col("target_compacted")
    )
    says_something = (f.col("reason") != HoleReason.GAP.name) | compacted
    return (
        holes.join(
            bounds.select(*PARTITION, "source_compacted", "target_compacted"),
            on=PARTITION,
            how="inner",
        )
        .where(says_something & f.col("reason").isin(list(ranks)))
        .select(
            *PARTITION,
            "side",
            f.col("start_offset").alias("hole_start"),
            f.col("stop_offset").alias("hole_stop"),
            (f.col("stop_offset") - f.col("start_offset")).alias("hole_size"),
            f.col("reason").alias("hole_reason"),
            rank.alias("rank"),
        )
    )


def judge(outcomes: DataFrame) -> DataFrame:
    """Return `JUDGED` for records: the kind of each, and the reason in words.

    Target records where the source is corrupt cannot be compared: the corrupt batch is the finding.
    Where the target is corrupt, the source's record cannot be read there: it is lost.
    """
    is_surplus = f.col("kind").isin(Kind.PHANTOM.value, Kind.DUPLICATED.value)
    explained = f.col("hole").isin([reason.name for reason in _EXPLAINS]) | (
        is_surplus & (f.col("hole") == HoleReason.CORRUPT.name)
    )
    kind = f.when(explained, Kind.EXPLAINED.value).otherwise(f.col("kind"))
    return outcomes.select(
        *PARTITION,
        kind.alias("kind"),
        "source_offset",
        "target_offset",
        f.lit(1).cast("bigint").alias("records"),
        "timestamp_ms",
        "key",
        _reason().alias("reason"),
    )


def _reason() -> Column:
    kind, hole = f.col("kind"), f.col("hole")
    missing = kind == Kind.LOST.value
    phantom = kind == Kind.PHANTOM.value
    surplus = kind.isin(Kind.PHANTOM.value, Kind.DUPLICATED.value)
    unmirrored = f.col("unmirrored_by").isNotNull()
    return (
        f.when(missing & (hole == HoleReason.RETENTION.name), "the target's retention took it")
        .when(missing & (hole == HoleReason.GAP.name), "compacted away on the target")
        .when(missing & (hole == HoleReason.CORRUPT.name), "the target's batch here is corrupt")
        .when(
            missing & unmirrored,
            f.format_string("not mirrored before promotion %d", f.col("unmirrored_by")),
        )
        .when(
            missing & (hole == _NOT_SUPERSEDED),
            "missing on the target, which has no later record of its key: no cleaner took it",
        )
        .when(missing, "missing on the target, though later records have arrived")
        .when(surplus & (hole == HoleReason.RETENTION.name), "the source's retention took it")
        .when(surplus & (hole == HoleReason.GAP.name), "compacted away on the source")
        .when(surplus & (hole == HoleReason.CORRUPT.name), "the source's batch here is corrupt")
        .when(
            phantom & (hole == HoleReason.ABORTED.name),
            "never committed on the source: an aborted transaction lies here",
        )
        .when(
            phantom & (hole == _NOT_SUPERSEDED),
            f.format_string(
                "not on the source, and no later record of its key for certain: whether a cleaner "
                "took it cannot be told; producer id %d",
                f.col("producer_id"),
            ),
        )
        .when(
            phantom,
            f.format_string("never on the source; producer id %d", f.col("producer_id")),
        )
        .when(kind == Kind.DUPLICATED.value, "once more on the target than on the source")
        .when(kind == Kind.REORDERED.value, "on both sides, in another order")
        .when(kind == Kind.ALTERED.value, "same place, other content")
        .when(kind == Kind.IN_FLIGHT.value, "not mirrored yet")
        .when(kind == Kind.WRITTEN_AGAIN.value, "not mirrored, written again after the promotion")
    )


def judge_cut_logs(bounds: DataFrame, behind: DataFrame) -> DataFrame:
    """Return `JUDGED` for targets that ended further on before and are `behind` their source now.

    A target that was begun anew and has all of its source again has lost nothing.
    """
    return (
        bounds.where(f.col("seen_stop").isNotNull())
        .join(behind, on=PARTITION, how="left_semi")
        .select(
            *PARTITION,
            f.lit(Kind.HOLE.value).alias("kind"),
            f.lit(None).cast("bigint").alias("source_offset"),
            f.col("target_stop").alias("target_offset"),
            (f.col("seen_stop") - f.col("target_stop")).alias("records"),
            f.lit(None).cast("bigint").alias("timestamp_ms"),
            f.lit(None).cast("string").alias("key"),
            f.col("seen").alias("reason"),
        )
    )


def holes_before_start(bounds: DataFrame) -> DataFrame:
    """Return the offsets before each log's start, which retention or DeleteRecords took."""
    sides = [
        bounds.where(f.col(f"{side.value}_start") > 0).select(
            *PARTITION,
            f.lit(side.value).alias("side"),
            f.lit(0).cast("bigint").alias("start_offset"),
            f.col(f"{side.value}_start").alias("stop_offset"),
            f.col(f"{side.value}_start").alias("records"),
            f.lit(HoleReason.RETENTION.name).alias("reason"),
            f.lit("").alias("detail"),
        )
        for side in (Side.SOURCE, Side.TARGET)
    ]
    return (
        sides[0]
        .unionByName(sides[1])
        .select(*PARTITION, "side", "start_offset", "stop_offset", "records", "reason", "detail")
    )


def judge_holes(holes: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return `JUDGED` for the holes that are findings: corrupt batches, gaps nobody explains."""
    is_source = f.col("side") == Side.SOURCE.value
    compacted = f.when(is_source, f.col("source_compacted")).otherwise(f.col("target_compacted"))
    is_corrupt = f.col("reason") == HoleReason.CORRUPT.name
    is_gap = (f.col("reason") == HoleReason.GAP.name) & ~compacted
    return (
        holes.join(bounds, on=PARTITION, how="inner")
        .where(is_corrupt | is_gap)
        .select(
            *PARTITION,
            f.when(is_corrupt, Kind.CORRUPT.value).otherwise(Kind.HOLE.value).alias("kind"),
            f.when(is_source, f.col("start_offset")).alias("source_offset"),
            f.when(~is_source, f.col("start_offset")).alias("target_offset"),
            "records",
            f.lit(None).cast("bigint").alias("timestamp_ms"),
            f.lit(None).cast("string").alias("key"),
            f.when(is_corrupt, f.col("detail"))
            .otherwise(f.concat(f.lit("no record at these offsets of the "), "side"))
            .alias("reason"),
        )
    )
