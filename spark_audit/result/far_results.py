"""Verdicts and findings as Parquet through Spark's writers, at any path that Hadoop knows.

    PLACE/verdicts/night=NIGHT/*.parquet     one row: the verdict, and verdict.json as it was stored
    PLACE/findings/night=NIGHT/*.parquet     one row for each finding, or for findings in a row

Nights are named as in `history`. The findings come first: a night with a verdict has them all.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_audit.compare.summary import ARROW_FINDINGS
from spark_audit.result.history import night_of
from spark_audit.result.store import FINDINGS, ResultUnusable
from spark_audit.result.verdict import Verdict, encode
from spark_audit.session import SparkFailed, spark_failures

VERDICTS: Final = "verdicts"
_NIGHT: Final = "night"


def keep_far(
    spark: SparkContext, place: str, verdict: Verdict, findings: Sequence[Mapping[str, Any]]
) -> None:
    """Add a night to what is kept at a place; raises ResultUnusable if it cannot be written."""
    stored = {
        "verdict": verdict.answer.value,
        "problem": verdict.problem,
        "started_ms": verdict.started_ms,
        "ended_ms": verdict.ended_ms,
        "document": encode(verdict),
    }
    schema = pa.schema(
        [
            ("verdict", pa.string()),
            ("problem", pa.string()),
            ("started_ms", pa.int64()),
            ("ended_ms", pa.int64()),
            ("document", pa.string()),
        ]
    )
    tables = {
        FINDINGS: pa.Table.from_pylist(list(findings), schema=ARROW_FINDINGS),
        VERDICTS: pa.Table.from_pylist([stored], schema=schema),
    }
    night = night_of(verdict.started_ms)
    try:
        with spark_failures():
            for name, table in tables.items():
                named = table.append_column(_NIGHT, pa.array([night] * len(table), pa.string()))
                frame = SparkSession(spark).createDataFrame(named).coalesce(1)
                frame.write.partitionBy(_NIGHT).mode("append").parquet(f"{place}/{name}")
    except SparkFailed as fault:
        raise ResultUnusable(f"audit.results: {place}: {fault}") from fault
