"""Compacted topics: what the cleaners took, on either side and at any time, is no finding."""

from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_audit.flow_audit import Scan, audit_flow
from spark_audit.scan_plan import Planner, ScanTask
from tests.spark_audit.logs import Log, Pair, Pairs, scan_of, snapshot_of

pytestmark = [
    pytest.mark.integration,
    # Raised by Spark where it meets Arrow; nothing of ours goes through pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def _compacted() -> Pair:
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = True
    return pair


def _clean(log: Log, *batches: int) -> None:
    """Take these batches out of the log, as a cleaner does."""
    for number in sorted(batches, reverse=True):
        del log.batches[number]


def _audit(spark: SparkSession, pairs: Pairs, scan: Scan) -> list[tuple[str, str, str]]:
    snapshot = snapshot_of(pairs)
    with audit_flow(spark, snapshot, Planner(snapshot, {"dc1": (), "dc2": ()}), scan) as frames:
        return [(row.topic, row.kind, row.reason) for row in frames.findings.collect()]


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_a_cleaner_takes_while_the_audit_runs_is_no_finding(
    spark: SparkSession, side: str
) -> None:
    pair = _compacted()
    for content in "abcdef":
        pair.mirror(content)
    _clean(pair.target, 1)
    pairs = {("t", 0): pair}
    read = scan_of(pairs)

    def scan(spark: SparkSession, tasks: Sequence[ScanTask]) -> DataFrame:
        rows = read(spark, tasks)
        if any(task.wants_ranges for task in tasks):
            _clean(getattr(pair, side), 3)
        return rows

    assert _audit(spark, pairs, scan) == []


def test_cleaners_that_took_different_neighbours_altered_nothing(spark: SparkSession) -> None:
    """A tombstone that only the source's took, beside a record that only the target's did."""
    pair = _compacted()
    for content in ("a", "tombstone", "superseded", "b"):
        pair.mirror(content)
    _clean(pair.source, 1)
    _clean(pair.target, 2)
    pairs = {("t", 0): pair}
    assert _audit(spark, pairs, scan_of(pairs)) == []


def test_what_has_other_content_in_a_compacted_topic_is_altered(spark: SparkSession) -> None:
    pair = _compacted()
    pair.mirror("a")
    pair.source.append("x:is this")
    pair.target.append("x:is that")
    pair.mirror("b")
    pairs = {("t", 0): pair}
    assert [kind for _, kind, _ in _audit(spark, pairs, scan_of(pairs))] == ["altered"]
