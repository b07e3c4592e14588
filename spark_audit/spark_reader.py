"""Reads logs and settles partitions in Spark's workers: one job each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import SparkContext

from spark_audit.compare.judgements import ARROW_JUDGED, failure_of, table_of
from spark_audit.compare.key_ends import KeyEnds, compare_ends
from spark_audit.compare.settling import Differences, settle
from spark_audit.scan.reading import run_groups, scanned
from spark_audit.scan.scan import look
from spark_audit.scan.scan_plan import GROUPS_A_CORE, ScanTask
from spark_audit.snapshot.side import Side


@dataclass(frozen=True, slots=True)
class SparkReader:
    """See `flow_audit.Reader`."""

    spark: SparkContext

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        """Return the rows of these tasks."""
        return scanned(self.spark, tasks)

    def settle(self, questions: Sequence[Differences | KeyEnds]) -> pa.Table:
        """Return the judgements of these partitions."""
        cores = self.spark.defaultParallelism
        count = min(len(questions), GROUPS_A_CORE * cores)
        groups = [questions[number::count] for number in range(count)]
        return run_groups(self.spark, groups, _settle_group, ARROW_JUDGED)


def _settle_group(questions: Sequence[Differences | KeyEnds]) -> Iterator[pa.RecordBatch]:
    logs = [
        one.planner.stretch(one.planner.partitions[0], side, 0, 0)
        for one in questions
        for side in (Side.SOURCE, Side.TARGET)
    ]
    lookings = [compare_ends(one) if isinstance(one, KeyEnds) else settle(one) for one in questions]
    for one, answer in zip(questions, look(logs, lookings), strict=True):
        if isinstance(answer, str):
            yield failure_of(one.topic, one.partition, answer)
        else:
            yield table_of(one.topic, one.partition, answer)
