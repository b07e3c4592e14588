"""Spark reads Kafka logs without a jar: our own wire client in a Python worker, Arrow batches.

Each group of tasks is one Spark partition. A data source of Spark's own kind would say the same, at
the price of two more Python processes for each frame, which plan it: a third of a small audit.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_audit.scan.frames import local_frame
from spark_audit.scan.scan import scan
from spark_audit.scan.scan_plan import ScanTask, dealt, read_together
from spark_audit.scan.scan_rows import SCAN, arrow_batches


def scanned(spark: SparkSession, tasks: Sequence[ScanTask]) -> DataFrame:
    """Return the rows that reading these tasks gives: `scan_rows.SCAN`."""
    if not tasks:
        return local_frame(spark, [], SCAN)
    groups = dealt(tasks, spark.sparkContext.defaultParallelism)
    # To each worker once: there may be tens of thousands, and each partition needs some of them.
    shared = spark.sparkContext.broadcast(groups)

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column("id").to_pylist():
                for some in read_together(shared.value[number]):
                    for task, rows in zip(some, scan(some), strict=True):
                        yield from arrow_batches(task.log, rows)

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(read, SCAN)
