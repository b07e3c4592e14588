"""Keeps evidence through Spark's readers and writers, at any path that Hadoop knows."""

import pyarrow as pa
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_audit.evidence.rows import (
    ARROW_EVIDENCE,
    EVIDENCE,
    EvidenceUnusable,
    Night,
    table_of,
)

_NO_PATH = "PATH_NOT_FOUND"


def load(spark: SparkContext, path: str) -> pa.Table | None:
    """Return what is kept at a path, in any order; None where there is no such path yet.

    Raises EvidenceUnusable for files that cannot be read.
    """
    try:
        frame = SparkSession(spark).read.schema(EVIDENCE).parquet(path)
        return frame.select(*ARROW_EVIDENCE.names).toArrow()
    except PySparkException as fault:
        if fault.getCondition() == _NO_PATH:
            return None
        raise EvidenceUnusable(f"{path}: {_in_a_line(fault)}") from fault


def save(spark: SparkContext, path: str, night: Night, *, is_anew: bool) -> None:
    """Add a night to what is kept at a path, in one file; with `is_anew` in place of all of it.

    Raises EvidenceUnusable where it cannot be written.
    """
    try:
        frame = SparkSession(spark).createDataFrame(table_of(night)).coalesce(1)
        mode = "overwrite" if is_anew else "append"
        frame.write.partitionBy("night").mode(mode).parquet(path)
    except PySparkException as fault:
        raise EvidenceUnusable(f"{path}: {_in_a_line(fault)}") from fault


def _in_a_line(fault: PySparkException) -> str:
    return (str(fault).strip().splitlines() or [type(fault).__name__])[0]
