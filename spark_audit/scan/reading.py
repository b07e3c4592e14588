"""Spark reads Kafka logs without a jar: our own wire client in a Python worker, Arrow batches.

Each group of tasks is one Spark partition. A data source of Spark's own kind would say the same, at
the price of two more Python processes for each frame, which plan it: a third of a small audit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_audit.scan.scan import scan
from spark_audit.scan.scan_plan import ScanTask, dealt, read_together
from spark_audit.scan.scan_rows import ARROW_SCAN, SCAN, arrow_batches

_T = TypeVar("_T")


def scanned(spark: SparkSession, tasks: Sequence[ScanTask]) -> pa.Table:
    """Return the rows that reading these tasks gives: `scan_rows.SCAN`. One job."""
    if not tasks:
        return ARROW_SCAN.empty_table()
    return run_groups(spark, dealt(tasks, spark.sparkContext.defaultParallelism), _scan_group, SCAN)


def run_groups(
    spark: SparkSession,
    groups: Sequence[_T],
    work: Callable[[_T], Iterator[pa.RecordBatch]],
    columns: str,
) -> pa.Table:
    """Return what `work`, done for each group in a worker, yields; `columns` as in DDL. One job.

    The rows come back to this process over the network: workers need no disk that it sees.
    """
    # To each worker once: there may be tens of thousands, and each partition needs some of them.
    shared = spark.sparkContext.broadcast(groups)

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column("id").to_pylist():
                yield from work(shared.value[number])

    frame = spark.range(0, len(groups), 1, len(groups)).mapInArrow(read, columns)
    table = frame.toArrow()
    shared.destroy()
    return table


def _scan_group(tasks: Sequence[ScanTask]) -> Iterator[pa.RecordBatch]:
    for some in read_together(tasks):
        for task, rows in zip(some, scan(some), strict=True):
            yield from arrow_batches(task.log, rows)
