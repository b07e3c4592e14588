"""Records before a flow's start are explained and counted: neither lost nor silently clean."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from offset_translation.map_records import Begun
from spark_audit.flow_audit import audit_flow
from spark_audit.result.coverage import Share, coverage
from spark_audit.snapshot.bounds import GroupPlace
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of


def audited(pair: Pair, promotion: int | None = None) -> tuple[list[Any], Mapping[str, Any]]:
    """Return the findings, (kind, source offset, target offset), and the partition's row."""
    pairs = {("t", 0): pair}
    snapshot = snapshot_of(pairs, promotion)
    result = audit_flow(MemoryReader(pairs), snapshot, planner_of(snapshot))
    found = [(row["kind"], row["source_offset"], row["target_offset"]) for row in result.findings]
    [summary] = result.summary
    return found, summary


def begun_at_three(*left_behind: str) -> Pair:
    """Return a partition of which three records were there when its flow began at the latest."""
    pair = Pair()
    pair.source.append(*(left_behind or ("a", "b", "c")))
    pair.begun = Begun(source_start=3, target_start=0, topic_id=UUID(int=1), start="latest")
    pair.pieces = [(3, 0)]
    return pair


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("mirrored", [0, 2])
def test_what_lies_before_the_start_is_explained_and_counted(
    mirrored: int, *, is_compacted: bool
) -> None:
    pair = begun_at_three()
    pair.source.is_compacted = pair.target.is_compacted = is_compacted
    for content in "de"[:mirrored]:
        pair.mirror(content)
    found, summary = audited(pair)
    assert found == []
    shares = coverage(summary, "source")
    assert (shares[Share.BEFORE_START], shares[Share.COMPARED]) == (3, mirrored)
    assert sum(shares.values()) == summary["source_stop"]
    assert (shares[Share.NOT_COMPARED], summary["in_flight"]) == (0, 0)


def test_what_is_missing_behind_the_start_is_lost_as_ever() -> None:
    pair = begun_at_three()
    pair.mirror("d")
    pair.source.append("e")
    pair.mirror("f")
    found, summary = audited(pair)
    assert found == [("lost", 4, None)]
    assert coverage(summary, "source")[Share.BEFORE_START] == 3


@pytest.mark.parametrize("log_start", [0, 2])
def test_a_record_of_before_the_start_on_the_target_is_a_finding_whatever_retention_took(
    log_start: int,
) -> None:
    pair = begun_at_three()
    pair.source.start = log_start
    pair.target.append("b")
    pair.mirror("d", "e")
    found, summary = audited(pair)
    assert ("phantom", None, 0) in found
    assert coverage(summary, "source")[Share.BEFORE_START] == 3 - log_start


def test_retention_behind_the_start_explains_what_it_took_and_no_more() -> None:
    pair = begun_at_three()
    pair.mirror("d", "e", "f")
    pair.source.start = 4
    found, summary = audited(pair)
    assert (found, summary["surplus_by_retention"]) == ([], 1)
    assert coverage(summary, "source")[Share.BEFORE_START] == 0
    odd = begun_at_three()
    odd.target.append("x")
    odd.mirror("d", "e", "f")
    odd.source.start = 4
    assert [kind for kind, _, _ in audited(odd)[0] if kind == "phantom"] == ["phantom"]


def test_a_group_before_the_start_stands_exactly_at_the_first_record_that_was_carried() -> None:
    pair = begun_at_three()
    pair.mirror("d", "e")
    pair.places = (GroupPlace("at-it", 1, 0), GroupPlace("beyond-it", 1, 1))
    found, summary = audited(pair)
    assert found == [("position too far", 1, 1)]
    assert summary["positions_exact"] == 1
