"""A whole audit over logs in memory: a fault in each partition, all of them in one run."""

import pytest

from spark_audit.flow_audit import audit_flow
from spark_audit.result.coverage import Share, coverage
from spark_audit.snapshot.bounds import Promise
from spark_audit.snapshot.seals import CannotTell
from tests.spark_audit.audits import BehindPromotion, Everything, planner_of
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of
from tests.spark_audit.planted.faults import BULK, COPIES, OTHERS, append_corrupt
from tests.spark_audit.planted.promotion import NAMES


def test_each_fault_is_found_exactly_and_nothing_else(everything: Everything) -> None:
    assert everything.audited.of(everything.faults) == everything.faults.expected


def test_the_numbers_say_what_was_read(everything: Everything) -> None:
    assert everything.audited.numbers("source_records", "equal", "lost") == (2 * BULK, 2 * BULK + 2)
    assert everything.audited.numbers("target_records", "equal", "lost") == (2 * BULK, 2 * BULK)
    assert everything.audited.numbers("source_marker_offsets", "equal") == (1,)
    assert everything.audited.numbers("duplicated", "replayed", "equal") == (500, 0)


def test_what_was_not_mirrored_yet_is_in_flight(everything: Everything) -> None:
    assert everything.audited.numbers("in_flight", *OTHERS[:4]) == (3, 2, BULK, 2)


def test_what_retention_or_compaction_took_is_explained(everything: Everything) -> None:
    assert everything.audited.numbers("explained", *OTHERS[3:], "aged and lost") == (3, 3, 3, 2, 1)
    assert everything.audited.numbers("explained", *COPIES) == (3, 2, 3, 2)
    assert everything.audited.numbers("explained", "corrupt_on_source") == (2,)


def test_records_that_may_lie_in_a_corrupt_batch_of_the_target_are_not_compared(
    everything: Everything,
) -> None:
    row = everything.audited.summary["corrupt_on_target"]
    assert (row["missing_by_corruption"], row["lost"]) == (2, 0)
    assert coverage(row, "source")[Share.UNREADABLE] == 2
    assert coverage(row, "target")[Share.UNREADABLE] == 2


@pytest.mark.parametrize("promise", [None, Promise(source_end=4, at_ms=0)])
def test_a_corrupt_batch_at_the_targets_end_loses_nothing_that_it_may_hold(
    promise: Promise | None,
) -> None:
    pair = Pair(promise=promise)
    pair.mirror("a", "b")
    pair.source.append("x", "y", "z")
    append_corrupt(pair.target, "x", "y", "z")
    pairs = {("t", 0): pair}
    snapshot = snapshot_of(pairs)
    [row] = audit_flow(MemoryReader(pairs), snapshot, planner_of(snapshot)).summary
    kinds = ("corrupt", "missing_by_corruption", "lost", "in_flight")
    assert [row[kind] for kind in kinds] == [1, 3, 0, 0]


def test_a_target_that_ended_further_on_before_says_so_beside_what_is_in_flight(
    everything: Everything,
) -> None:
    told = "the target's log ended at 9 in the audit of 1970-01-01T00:00:00+00:00"
    assert everything.audited.reasons["emptied"] == {told}
    assert everything.audited.reasons["cut"] == {told}
    assert everything.audited.numbers("in_flight", "emptied", "cut", "begun anew") == (6, 6, 0)


def test_after_a_promotion_the_unmirrored_end_is_lost_unless_written_again(
    behind_promotion: BehindPromotion,
) -> None:
    planted, audited = behind_promotion.unmirrored, behind_promotion.audited
    assert audited.of(planted) == planted.expected
    assert audited.reasons["lost"] == {"not mirrored before promotion 4"}
    assert audited.numbers("written_again", *NAMES) == (0, 2, 1, 0, 0)


def test_a_log_that_cannot_be_read_is_not_judged() -> None:
    pair = Pair()
    pair.mirror("a", "b")
    pair.source.stop += 1
    snapshot = snapshot_of({("t", 0): pair})
    with pytest.raises(CannotTell, match="the log in memory ends"):
        audit_flow(MemoryReader({("t", 0): pair}), snapshot, planner_of(snapshot))
