"""Positions and the map are held against where records really lie, by content alone."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offset_translation import OffsetMap, translate
from spark_audit import flow_audit
from spark_audit.compare import settling
from spark_audit.flow_audit import audit_flow
from spark_audit.result.coverage import Share, coverage
from spark_audit.scan import digests, scan_plan
from spark_audit.snapshot.bounds import GroupPlace, Promise
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import Log, MemoryReader, Pair, snapshot_of
from tests.spark_audit.planted.faults import marker

PLACE = ("t", 0)


@pytest.fixture(autouse=True, scope="module")
def _short_ranges() -> Iterator[None]:
    """Cut behind every fourth record, and split logs in the middle of all that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "_CUT_BELOW", b"\x40" + bytes(15))
        patch.setattr(scan_plan, "RANGE_SPLIT_OFFSETS", 7)
        yield


def _audited(pair: Pair) -> tuple[list[tuple[str, int, int | None]], dict[str, Any]]:
    snapshot = snapshot_of({PLACE: pair})
    result = audit_flow(MemoryReader({PLACE: pair}), snapshot, planner_of(snapshot))
    (row,) = result.summary
    found = [(one["kind"], one["source_offset"], one["target_offset"]) for one in result.findings]
    return found, dict(row)


def _with_holes(sizes: list[int]) -> Pair:
    """Mirror batches of these sizes, each behind a marker-like hole on the source, with the map."""
    pair = Pair(pieces=[])
    pair.source.is_compacted = True
    number = 0
    for size in sizes:
        pair.source.skip(1)
        assert pair.pieces is not None
        pair.pieces.append((pair.source.stop, pair.target.stop))
        for _ in range(size):
            pair.mirror(f"record {number}")
            number += 1
    return pair


sizes = st.lists(st.integers(1, 6), min_size=1, max_size=12)


def _true_target(pair: Pair, source_offset: int) -> int:
    """Return where a reader at a source offset goes on, by counting records."""
    held = [behind - 1 for behind, _ in pair.source.batches]
    return sum(offset < source_offset for offset in held)


@given(sizes, st.data())
def test_a_right_map_and_right_positions_are_no_findings(
    sizes: list[int], data: st.DataObject
) -> None:
    pair = _with_holes(sizes)
    at = data.draw(st.integers(0, pair.source.stop))
    exact = _true_target(pair, at)
    behind = data.draw(st.integers(0, exact))
    pair.places = (GroupPlace("exact", at, exact), GroupPlace("behind", at, behind))
    found, row = _audited(pair)
    assert found == []
    is_exact = int(behind == exact)
    assert (row["positions_exact"], row["positions_behind"]) == (1 + is_exact, 1 - is_exact)
    assert row["positions_read_again"] == exact - behind


@given(sizes, st.data())
def test_a_position_past_an_unread_record_is_found(sizes: list[int], data: st.DataObject) -> None:
    pair = _with_holes(sizes)
    at = data.draw(st.integers(0, pair.source.stop))
    exact = _true_target(pair, at)
    far = exact + data.draw(st.integers(1, 9))
    pair.places = (GroupPlace("far", at, far),)
    assert _audited(pair)[0] == [("position too far", at, far)]


@given(sizes, st.data())
def test_a_wrong_piece_of_the_map_is_found_and_nothing_else(
    sizes: list[int], data: st.DataObject
) -> None:
    """One record lies elsewhere than the map says: that record and no other is named."""
    pair = _with_holes([*sizes, 3])
    assert pair.pieces is not None
    number = data.draw(st.integers(0, len(pair.pieces) - 2))
    source, place = pair.pieces[number]
    pair.pieces[number] = (source - 1, place)
    found, _ = _audited(pair)
    translated = OffsetMap.from_starts(pair.pieces, pair.target.stop)
    wrong = {
        offset
        for offset in (behind - 1 for behind, _ in pair.source.batches)
        if translate(translated, offset) != _true_target(pair, offset)
    }
    assert bool(found) == bool(wrong)
    assert {kind for kind, _, _ in found} <= {"mapped wrongly"}
    assert {offset for _, offset, _ in found} <= wrong
    assert all(target == _true_target(pair, offset) for _, offset, target in found)


def test_a_position_where_the_logs_differ_is_unknown_and_one_beyond_the_target_is_too_far() -> None:
    pair = Pair()
    pair.mirror(*(f"a{number}" for number in range(20)))
    pair.source.append("lost")
    pair.target.append("phantom")
    pair.mirror(*(f"b{number}" for number in range(20)))
    pair.places = (GroupPlace("among", 20, 20), GroupPlace("beyond", 20, 42))
    found, row = _audited(pair)
    assert row["positions_unknown"] == 1
    assert ("position too far", 20, 42) in found


def test_a_position_in_what_is_in_flight_may_be_anywhere_before_the_targets_end() -> None:
    pair = Pair()
    pair.mirror(*(f"a{number}" for number in range(20)))
    pair.source.append("b", "c", "d")
    pair.places = (GroupPlace("end", 22, 20), GroupPlace("before", 22, 15))
    found, row = _audited(pair)
    assert found == []
    assert (row["positions_exact"], row["positions_behind"], row["positions_read_again"]) == (
        1,
        1,
        5,
    )


def test_what_the_mirror_had_brought_is_lost_if_the_target_ends_before_it() -> None:
    """500 acknowledged records were cut off the target's end before the first audit."""
    pair = Pair(promise=Promise(source_end=25, at_ms=0))
    pair.mirror(*(f"a{number}" for number in range(20)))
    pair.source.append(*(f"b{number}" for number in range(10)))
    found, row = _audited(pair)
    assert found == [("lost", offset, None) for offset in range(20, 25)]
    assert (row["lost"], row["in_flight"]) == (5, 5)


def test_a_promise_of_another_log_says_nothing() -> None:
    pair = Pair(promise=Promise(source_end=31, at_ms=0))
    pair.mirror(*(f"a{number}" for number in range(20)))
    pair.source.append(*(f"b{number}" for number in range(10)))
    assert _audited(pair)[0] == []


def test_what_was_set_aside_is_explained_and_no_more() -> None:
    pair = Pair(set_aside=((20, 23),))
    pair.mirror(*(f"a{number}" for number in range(20)))
    pair.source.append("d0", "d1", "d2", "lost")
    pair.mirror(*(f"b{number}" for number in range(20)))
    found, row = _audited(pair)
    assert found == [("lost", 23, None)]
    assert coverage(row, "source")[Share.SET_ASIDE] == 3
    assert sum(coverage(row, "source").values()) == 44


@pytest.mark.parametrize("mirrored", [0, 20])
def test_markers_among_what_the_mirror_had_brought_make_no_more_of_it_lost(mirrored: int) -> None:
    """Each record is a transaction of its own: ten of them lie at twenty offsets."""
    pair = Pair()
    for number in range(mirrored):
        pair.mirror(f"a{number}")
    begin = pair.source.stop
    for number in range(10):
        pair.source.append(f"b{number}")
        pair.source.append_bytes(marker(pair.source.stop), 1)
    pair.promise = Promise(source_end=begin + 10, at_ms=0)
    found, row = _audited(pair)
    lost = [("lost", begin + 2 * number, None) for number in range(5)]
    assert (found, row["lost"], row["in_flight"]) == (lost, 5, 5)


@pytest.mark.parametrize("most", [100, 10_000])
def test_of_very_much_that_waits_only_what_the_mirror_had_brought_is_lost(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(flow_audit, "LONG_RECORDS", most)
    monkeypatch.setattr(settling, "MOST_UNMATCHED", 100)
    pair = Pair(promise=Promise(source_end=320, at_ms=0))
    pair.mirror(*(f"a{number}" for number in range(20)))
    pair.source.append(*(f"b{number}" for number in range(600)))
    found, row = _audited(pair)
    assert {kind for kind, _, _ in found} == {"lost"}
    assert (row["lost"], row["in_flight"], row["first_in_flight"]) == (300, 300, 320)


@given(st.data())
def test_what_cleaners_took_while_the_audit_reads_makes_no_map_wrong(data: st.DataObject) -> None:
    """Ranges are read first, and what differs a second time: then both logs are alike again."""
    pair = Pair(pieces=[(0, 0)])
    pair.source.is_compacted = pair.target.is_compacted = True
    records = data.draw(st.integers(3, 12))
    for number in range(records):
        pair.mirror(f"k{number % 2}@{number}")
    pair.source.append("in flight")
    superseded = st.sets(st.integers(0, records - 3))
    for log in (pair.source, pair.target):
        _clean(log, data.draw(superseded))

    def clean_all(number: int, _: object) -> None:
        if number == 1:
            for log in (pair.source, pair.target):
                _clean(log, {*range(records - 2)})

    snapshot = snapshot_of({PLACE: pair})
    reader = MemoryReader({PLACE: pair}, before_scan=clean_all)
    assert audit_flow(reader, snapshot, planner_of(snapshot)).findings == []


def _clean(log: Log, offsets: set[int]) -> None:
    """Take these records, each in a batch of its own, out of the log, as a cleaner does."""
    log.batches = [one for one in log.batches if one[0] - 1 not in offsets]
