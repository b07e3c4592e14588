"""Logs of which a part cannot be read any more when an audit comes to it."""

from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_audit.flow_audit import audit_flow
from spark_audit.scan.scan_plan import ScanTask
from tests.spark_audit.audits import Everything, planner_of
from tests.spark_audit.logs import Pair, scan_of, snapshot_of

pytestmark = [
    pytest.mark.integration,
    # Raised by Spark where it meets Arrow; nothing of ours goes through pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def test_equal_records_that_retention_parts_while_an_audit_runs_are_not_lost(
    everything: Everything,
) -> None:
    planted, audited = everything.retention_at_work, everything.audited
    assert audited.of(planted) == planted.expected
    assert set(audited.numbers("explained", *planted.topics)) == {2}


def test_a_log_that_cannot_be_read_keeps_no_other_from_being_judged(spark: SparkSession) -> None:
    """At the first scan or, as it is read for its records, later."""
    pairs = {(name, 0): Pair() for name in ("lost", "first", "later", "equal")}
    for pair in pairs.values():
        pair.mirror("a", "b")
    for name in ("lost", "later"):
        pairs[name, 0].source.append("x")
        pairs[name, 0].mirror("c")
    pairs["first", 0].source.stop += 1
    inner, scans = scan_of(pairs), 0
    snapshot = snapshot_of(pairs)

    def scan(session: SparkSession, tasks: Sequence[ScanTask]) -> DataFrame:
        nonlocal scans
        if scans == 1:
            del pairs["later", 0].source.batches[1:]
        scans += 1
        return inner(session, tasks)

    with audit_flow(spark, snapshot, planner_of(snapshot), scan) as frames:
        found = [(row.kind, row.topic, row.source_offset) for row in frames.findings.collect()]
        compared = [row.topic for row in frames.summary.collect()]
        untold = frames.untold
    assert found == [("lost", "lost", 2)]
    assert compared == ["equal", "lost"]
    told = "the log in memory ends"
    assert untold == {("first", 0): told, ("later", 0): told}
