"""Spark reads Kafka logs without a jar: our own wire client in a Python worker, Arrow batches.

Each group of tasks is one Spark partition. A data source of Spark's own kind would say the same, at
the price of two more Python processes for each frame, which plan it: a third of a small audit. A
frame of Spark's SQL (`mapInArrow`) costs what starting Spark costs, once more: 4.6 CPU-s of the JVM
for the first one, where an RDD takes 1.0. Arrow batches travel as bytes, which Spark does not open.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark import SparkContext

from spark_audit.no_pandas import forgo_pandas
from spark_audit.scan.scan import scan
from spark_audit.scan.scan_plan import ScanTask, dealt, each_of, read_together
from spark_audit.scan.scan_rows import ARROW_SCAN, arrow_batches

_T = TypeVar("_T")


def scanned(spark: SparkContext, tasks: Sequence[ScanTask]) -> pa.Table:
    """Return the rows that reading these tasks gives: `scan_rows.ARROW_SCAN`. One job."""
    if not tasks:
        return ARROW_SCAN.empty_table()
    return run_groups(spark, dealt(tasks, spark.defaultParallelism), _scan_group, ARROW_SCAN)


def run_groups(
    spark: SparkContext,
    groups: Sequence[_T],
    work: Callable[[_T], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> pa.Table:
    """Return what `work`, done for each group in a worker, yields. One job.

    The rows come back to this process over the network: workers need no disk that it sees.
    """

    def read(some: Iterable[_T]) -> Iterator[bytes]:
        forgo_pandas()
        for group in some:
            for batch in work(group):
                yield batch.serialize().to_pybytes()

    found = spark.parallelize(groups, len(groups)).mapPartitions(read).collect()
    batches = [pa.ipc.read_record_batch(one, schema) for one in found]
    return pa.Table.from_batches(batches, schema=schema)


def _scan_group(tasks: Sequence[ScanTask]) -> Iterator[pa.RecordBatch]:
    for some in read_together(tasks):
        for task, rows in zip(each_of(some), scan(some), strict=True):
            yield from arrow_batches(task.log, rows)
