"""The Python data source through which Spark reads Kafka logs: no jar, Arrow batches.

    spark.dataSource.register(KafkaScan)
    spark.read.format(KafkaScan.name()).option("tasks", encode_tasks(tasks)).load()

Each task becomes one Spark partition and is read in a Python worker with our own wire client.
"""

from collections.abc import Iterator, MutableMapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_audit.scan import scan
from spark_audit.scan_plan import ScanTask, decode_tasks, encode_tasks
from spark_audit.scan_rows import SCAN, arrow_batches


class _TaskPartition(InputPartition):
    """One task, as Spark hands it to a worker."""

    def __init__(self, task: ScanTask) -> None:
        super().__init__(None)
        self.task = task


class _KafkaScanReader(DataSourceReader):
    def __init__(self, tasks: Sequence[ScanTask]) -> None:
        self._tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        return [_TaskPartition(task) for task in self._tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _TaskPartition)
        return arrow_batches(partition.task.place, scan(partition.task))


class KafkaScan(DataSource):
    """Reads the tasks of the option `tasks` (see `scan_plan`) as rows of `scan_rows.SCAN`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "kafka-scan"

    def schema(self) -> str:
        """Return the columns, the same for every scan."""
        return SCAN

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        """Return the reader, which Spark asks for partitions and sends to the workers."""
        options: MutableMapping[str, str] = self.options
        return _KafkaScanReader(decode_tasks(options["tasks"]))


def scanned(spark: SparkSession, tasks: Sequence[ScanTask]) -> DataFrame:
    """Return the rows that reading these tasks gives: `scan_rows.SCAN`."""
    if not tasks:
        return spark.createDataFrame([], SCAN)
    spark.dataSource.register(KafkaScan)
    return spark.read.format(KafkaScan.name()).option("tasks", encode_tasks(tasks)).load()
