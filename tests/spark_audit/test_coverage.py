"""The verdict adds up to the snapshot: compared, explained, in flight, or not compared."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from spark_audit.compare import settling
from spark_audit.compare.outcomes import Kind
from spark_audit.flow_audit import audit_flow
from spark_audit.result.coverage import Share, coverage, total_coverage
from spark_audit.result.verdict import Answer, FlowVerdict, answer_for, problem_of
from spark_audit.run import report_of
from spark_audit.scan.scan_plan import ScanTask
from spark_audit.snapshot.bounds import SeenEnd
from tests.spark_audit.audits import BehindPromotion, Everything, planner_of
from tests.spark_audit.logs import MemoryReader, Pair, Pairs, snapshot_of

HOUR_MS = 3_600_000
TAKEN_MS = 1_700_000_000_000


def test_every_partition_adds_up_to_its_offsets_whatever_was_planted(
    everything: Everything, behind_promotion: BehindPromotion
) -> None:
    rows = [*everything.audited.summary.values(), *behind_promotion.audited.summary.values()]
    for row in rows:
        for side in ("source", "target"):
            shares = coverage(row, side)
            assert sum(shares.values()) == row[f"{side}_stop"] - row[f"{side}_start"]
            assert min(shares.values()) >= 0
            assert shares[Share.NOT_COMPARED] == 0, row["topic"]


class LossyReader(MemoryReader):
    """Brings back only what `keeps` says, as workers do whose results go nowhere."""

    keeps: Callable[[dict[str, Any]], bool]

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        """Return some of the rows."""
        whole = super().scan(tasks)
        rows = [row for row in whole.to_pylist() if type(self).keeps(row)]
        return pa.Table.from_pylist(rows, schema=whole.schema)


def _report(pairs: Pairs, reader: type[MemoryReader] = MemoryReader) -> FlowVerdict:
    snapshot = snapshot_of(pairs)
    return report_of(snapshot, audit_flow(reader(pairs), snapshot, planner_of(snapshot)))


def _mirrored(*topics: str) -> dict[tuple[str, int], Pair]:
    pairs = {(topic, 0): Pair() for topic in topics}
    for pair in pairs.values():
        pair.mirror("a", "b", "c")
    return pairs


@pytest.mark.parametrize(
    ("keeps", "told"),
    [
        (lambda _row: False, "3 offsets of the source, 3 offsets of the target"),
        (lambda row: row["topic"] != "t", "3 offsets of the source, 3 offsets of the target"),
        (lambda row: (row["topic"], row["side"]) != ("t", "source"), "3 offsets of the source"),
    ],
    ids=["nothing", "all but a partition", "all but a side"],
)
def test_what_comes_back_in_part_is_not_clean(
    keeps: Callable[[dict[str, Any]], bool], told: str
) -> None:
    class Some(LossyReader):
        pass

    Some.keeps = staticmethod(keeps)
    report = _report(_mirrored("t", "u"), Some)
    assert answer_for([report]) is not Answer.CLEAN
    assert told in str(problem_of([report]))


def test_what_came_back_whole_is_clean() -> None:
    assert answer_for([_report(_mirrored("t", "u"))]) is Answer.CLEAN


def test_nothing_compared_is_never_clean() -> None:
    assert answer_for([]) is Answer.UNKNOWN
    assert answer_for([_report({("empty", 0): Pair()})]) is Answer.UNKNOWN
    waiting = Pair()
    waiting.source.append("a")
    assert answer_for([_report({("waiting", 0): waiting})]) is Answer.UNKNOWN
    assert problem_of([_report({("waiting", 0): waiting})]) == (
        "nothing was compared: no partition has a record on both sides"
    )


def test_an_empty_partition_beside_compared_ones_is_clean() -> None:
    assert answer_for([_report(_mirrored("t") | {("empty", 0): Pair()})]) is Answer.CLEAN


def test_a_mirror_that_stood_still_since_an_earlier_audit_is_a_finding() -> None:
    """A topic that was never made on the target, and one whose end was cut off there."""
    pairs = _mirrored("t", "cut")
    pairs["never made", 0] = Pair(source_seen=SeenEnd(stop=1, at_ms=TAKEN_MS - 24 * HOUR_MS))
    pairs["never made", 0].source.append("a", "b")
    pairs["cut", 0].source.append("x", "y")
    pairs["cut", 0].source_seen = SeenEnd(stop=5, at_ms=TAKEN_MS - 2 * HOUR_MS)
    report = _report(pairs)
    assert answer_for([report]) is Answer.FINDINGS
    assert report.total(Kind.OVERDUE.column) == 4
    assert total_coverage(report.partitions, "source")[Share.OVERDUE] == 4


def test_a_target_that_its_retention_emptied_is_not_clean_and_is_named() -> None:
    pairs = _mirrored("t", "emptied")
    target = pairs["emptied", 0].target
    target.batches.clear()
    target.start = target.stop
    report = _report(pairs)
    assert answer_for([report]) is Answer.UNKNOWN
    assert "its retention took what was mirrored" in str(problem_of([report]))
    assert coverage(report.partitions[0], "source")[Share.NOT_COMPARED] == 3


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("limit", ["MOST_WINDOW_RECORDS", "MOST_UNMATCHED"])
def test_more_than_a_worker_holds_is_never_clean_and_adds_up(
    monkeypatch: pytest.MonkeyPatch, limit: str, *, is_compacted: bool
) -> None:
    monkeypatch.setattr(settling, limit, 20)
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = is_compacted
    pair.mirror("first")
    pair.source.append(*(f"x{number}" for number in range(50)))
    pair.target.append(*(f"y{number}" for number in range(60)))
    pair.mirror("last")
    report = _report(_mirrored("t") | {("much", 0): pair})
    assert answer_for([report]) is (Answer.UNKNOWN if is_compacted else Answer.FINDINGS)
    for row in report.partitions:
        for side in ("source", "target"):
            shares = coverage(row, side)
            assert sum(shares.values()) == row[f"{side}_stop"] - row[f"{side}_start"]
            assert min(shares.values()) >= 0
