"""Mirrors that are far behind: what may still arrive is counted, and not looked at."""

from collections import Counter
from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_audit import flow_audit
from spark_audit.flow_audit import audit_flow
from spark_audit.scan.scan_plan import Planner, ScanTask
from spark_audit.snapshot.side import Side
from tests.spark_audit.logs import Pair, scan_of, snapshot_of

pytestmark = [
    pytest.mark.integration,
    # Raised by Spark where it meets Arrow; nothing of ours goes through pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

MIRRORED = 1_500
BACKLOG = 8_000
"""Some ranges, behind the one that the target's end cuts in two."""


def test_of_a_backlog_only_the_beginning_is_read_unless_the_end_before_it_differs(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_audit, "BACKLOG_RECORDS", BACKLOG // 2)
    pairs = {(name, 0): Pair() for name in ("behind", "lost", "gone on")}
    for pair in pairs.values():
        pair.mirror(*(f"mirrored {number}" for number in range(MIRRORED)))
    (lost,) = pairs["lost", 0].source.append("x")
    pairs["lost", 0].mirror("y")
    for pair in pairs.values():
        pair.source.append(*(f"waiting {number}" for number in range(BACKLOG)))
    pairs["gone on", 0].target.append("waiting 7000")
    read: Counter[str] = Counter()
    scan = scan_of(pairs)

    def count(spark: SparkSession, tasks: Sequence[ScanTask]) -> DataFrame:
        for task in tasks:
            if task.place.side is Side.SOURCE and not task.wants_ranges:
                read[task.place.topic] += task.stop - task.start
        return scan(spark, tasks)

    snapshot = snapshot_of(pairs)
    with audit_flow(spark, snapshot, Planner(snapshot, {"dc1": (), "dc2": ()}), count) as frames:
        in_flight = {row.topic: row.in_flight for row in frames.summary.collect()}
        found = Counter((row.topic, row.source_offset) for row in frames.findings.collect())
    assert in_flight == {"behind": BACKLOG, "lost": BACKLOG, "gone on": BACKLOG - 7_001}
    assert found == {("lost", lost): 1} | {
        ("gone on", offset): 1 for offset in range(MIRRORED, MIRRORED + 7_000)
    }
    assert 0 < read["behind"] < BACKLOG < min(read["lost"], read["gone on"])
