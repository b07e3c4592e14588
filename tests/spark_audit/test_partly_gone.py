"""Logs of which a part cannot be read any more when an audit comes to it."""

from collections.abc import Sequence

from spark_audit.flow_audit import audit_flow
from spark_audit.scan.scan_plan import ScanTask
from tests.spark_audit.audits import Everything, planner_of
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of


def test_equal_records_that_retention_parts_while_an_audit_runs_are_not_lost(
    everything: Everything,
) -> None:
    planted, audited = everything.retention_at_work, everything.audited
    assert audited.of(planted) == planted.expected
    assert set(audited.numbers("explained", *planted.topics)) == {2}


def test_a_log_that_cannot_be_read_keeps_no_other_from_being_judged() -> None:
    """At the first scan or, as it is read for its records, later."""
    pairs = {(name, 0): Pair() for name in ("lost", "first", "later", "equal")}
    for pair in pairs.values():
        pair.mirror("a", "b")
    for name in ("lost", "later"):
        pairs[name, 0].source.append("x")
        pairs[name, 0].mirror("c")
    pairs["first", 0].source.stop += 1
    snapshot = snapshot_of(pairs)

    def cut(number: int, _: Sequence[ScanTask]) -> None:
        if number == 1:
            del pairs["later", 0].source.batches[1:]

    result = audit_flow(MemoryReader(pairs, cut), snapshot, planner_of(snapshot))
    assert [(row["kind"], row["topic"], row["source_offset"]) for row in result.findings] == [
        ("lost", "lost", 2)
    ]
    assert [row["topic"] for row in result.summary] == ["equal", "lost"]
    told = "the log in memory ends"
    assert result.untold == {("first", 0): told, ("later", 0): told}
