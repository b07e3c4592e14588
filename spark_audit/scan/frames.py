"""Frames of the few rows that this process holds itself, by Arrow.

Spark keeps such a frame as a local relation. It plans with its size, leaves out steps that an empty
one makes empty, and asks no Python worker for it at each use, as it does for rows of tuples.
"""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def local_frame(spark: SparkSession, rows: Iterable[tuple[Any, ...]], columns: str) -> DataFrame:
    """Return the rows as a frame; `columns` as in DDL, in the order of the tuples."""
    schema = StructType.fromDDL(columns)
    assert isinstance(schema, StructType)
    values = list(zip(*rows, strict=True)) or [()] * len(schema.names)
    return spark.createDataFrame(pa.table([pa.array(v) for v in values], schema.names), schema)
