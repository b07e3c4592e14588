"""Logs of which a part cannot be read any more when an audit comes to it."""

from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_audit.flow_audit import audit_flow
from spark_audit.scan.scan_plan import Planner, ScanTask
from tests.spark_audit.logs import Log, Pair, scan_of, snapshot_of

pytestmark = [
    pytest.mark.integration,
    # Raised by Spark where it meets Arrow; nothing of ours goes through pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def test_equal_records_that_retention_parts_while_an_audit_runs_are_not_lost(
    spark: SparkSession,
) -> None:
    """Before either of the two looks at the logs: for their ranges, and for their records."""
    places = [(f"{side}, scan {scan}", 0) for side in ("source", "target") for scan in (0, 1)]
    pairs = {place: Pair() for place in places}
    for pair in pairs.values():
        pair.mirror("x", "x")
        pair.mirror("x", "x", "x", "y")
        pair.source.append("z")
    inner, scans = scan_of(pairs), 0

    def scan(session: SparkSession, tasks: Sequence[ScanTask]) -> DataFrame:
        nonlocal scans
        for (name, _), pair in pairs.items():
            if name.endswith(str(scans)):
                aged: Log = getattr(pair, name.split(",")[0])
                aged.start = 2
                del aged.batches[0]
        scans += 1
        return inner(session, tasks)

    snapshot = snapshot_of(pairs)
    planner = Planner(snapshot, {"dc1": (), "dc2": ()})
    with audit_flow(spark, snapshot, planner, scan) as frames:
        assert [row.asDict() for row in frames.findings.collect()] == []
        explained = {row.topic: row.explained for row in frames.summary.collect()}
    assert explained == {name: 2 for name, _ in places}


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

    planner = Planner(snapshot, {"dc1": (), "dc2": ()})
    with audit_flow(spark, snapshot, planner, scan) as frames:
        found = [(row.kind, row.topic, row.source_offset) for row in frames.findings.collect()]
        compared = [row.topic for row in frames.summary.collect()]
        untold = frames.untold
    assert found == [("lost", "lost", 2)]
    assert compared == ["equal", "lost"]
    told = "the log in memory ends"
    assert untold == {("first", 0): told, ("later", 0): told}
