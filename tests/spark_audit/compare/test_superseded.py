"""What cleaners take while the audit reads was superseded, by whatever came since, and not lost."""

from collections.abc import Sequence
from typing import Final

import pytest

from spark_audit.flow_audit import audit_flow
from spark_audit.scan.scan import Reading
from spark_audit.scan.sinks import KeySink
from spark_audit.snapshot.origins import Brought
from spark_audit.snapshot.side import Side
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import Log, MemoryReader, Pair, snapshot_of

PLACE: Final = ("t", 0)


def _with_a_tombstone() -> Pair:
    """The target's cleaner has taken a value and its tombstone, the source's neither."""
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = True
    for content in ("a", "k@1", "b", "k@9:tombstone", "c"):
        pair.mirror(content)
    _clean(pair.target, {1, 3})
    return pair


def _clean(log: Log, offsets: set[int]) -> None:
    """Take these records, each in a batch of its own, out of the log, as a cleaner does."""
    log.batches = [one for one in log.batches if one[0] - 1 not in offsets]


def _found(pair: Pair, *, taken: set[int]) -> list[str]:
    """Return the kinds of findings where the source's cleaner works between two readings."""
    snapshot = snapshot_of({PLACE: pair})

    def before_look(wanted: Sequence[Reading]) -> None:
        if any(isinstance(one.sink, KeySink) for one in wanted):
            _clean(pair.source, taken)

    reader = MemoryReader({PLACE: pair}, before_look=before_look)
    return [one["kind"] for one in audit_flow(reader, snapshot, planner_of(snapshot)).findings]


def test_a_value_whose_tombstone_goes_while_the_audit_reads_is_not_lost() -> None:
    assert _found(_with_a_tombstone(), taken={1, 3}) == []


def test_a_value_that_is_there_still_and_has_no_tombstone_is_lost() -> None:
    assert _found(_with_a_tombstone(), taken={3}) == ["lost"]


@pytest.mark.parametrize("are_both", [False, True])
def test_a_value_that_is_superseded_by_what_the_mirror_brings_since_is_not_lost(
    are_both: bool,
) -> None:
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = True
    if are_both:
        pair.to_source, pair.to_target = (Brought(producer_ids=frozenset({one})) for one in (1, 2))
    for content in ("a", "k@1", "b"):
        pair.source.append(content)
        pair.target.append(content, producer_id=2)
    snapshot = snapshot_of({PLACE: pair})

    def before_scan(number: int, _: object) -> None:
        if number == 0:
            pair.source.append("k@2")
            pair.target.append("k@2", producer_id=2)
            _clean(pair.target, {1})

    reader = MemoryReader({PLACE: pair}, before_scan=before_scan)
    assert audit_flow(reader, snapshot, planner_of(snapshot)).findings == []


def test_what_superseded_a_value_may_be_superseded_and_taken_before_it_is_read() -> None:
    """k@2 goes when what lies behind the snapshot has been read, or may have been: k@3 is there."""
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = True
    for content in ("a", "k@1", "b", "k@2", "c"):
        pair.mirror(content)
    _clean(pair.target, {1})
    snapshot = snapshot_of({PLACE: pair})

    def before_reading(reading: Reading) -> None:
        if isinstance(reading.sink, KeySink) and reading.task.log.side is Side.TARGET:
            pair.mirror("k@3")
            _clean(pair.target, {3})

    reader = MemoryReader({PLACE: pair}, before_reading=before_reading)
    assert audit_flow(reader, snapshot, planner_of(snapshot)).findings == []
