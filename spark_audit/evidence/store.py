"""Keeps evidence through Spark's readers and writers, at any path that Hadoop knows."""

import pyarrow as pa
from py4j.protocol import Py4JJavaError
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
from spark_audit.session import in_a_line

_NO_PATH = "PATH_NOT_FOUND"


def load(spark: SparkContext, path: str) -> pa.Table | None:
    """Return what is kept at a path, in any order; None where there is no such path yet.

    Raises EvidenceUnusable for files that cannot be read.
    """
    try:
        frame = SparkSession(spark).read.schema(EVIDENCE).parquet(path)
        return frame.select(*ARROW_EVIDENCE.names).toArrow()
    except (PySparkException, Py4JJavaError) as fault:
        if isinstance(fault, PySparkException) and fault.getCondition() == _NO_PATH:
            return None
        raise EvidenceUnusable(f"{path}: {in_a_line(fault)}") from fault


def save(spark: SparkContext, path: str, night: Night, *, is_anew: bool) -> None:
    """Add a night to what is kept at a path, in one file; with `is_anew` in place of all of it.

    Raises EvidenceUnusable where it cannot be written. What the file system refuses comes as an
    exception of Java's, not as one of Spark's.
    """
    try:
        frame = SparkSession(spark).createDataFrame(table_of(night)).coalesce(1)
        mode = "overwrite" if is_anew else "append"
        frame.write.partitionBy("night").mode(mode).parquet(path)
    except (PySparkException, Py4JJavaError) as fault:
        raise EvidenceUnusable(
            f"{path}: evidence cannot be written ({in_a_line(fault)}): name a folder in"
            " audit.evidence in which the audit may make folders and files"
        ) from fault
