"""Gaps are parted into chunks that a worker can hold; none is lost, parted or out of order."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit.compare import settling
from spark_audit.compare.chunks import chunks_of, unmatched
from spark_audit.compare.outcomes import Bracket, Gap, WindowGaps
from spark_audit.flow_audit import audit_flow
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of

sizes = st.lists(st.lists(st.integers(1, 9), max_size=6), max_size=6)


def windows_of(sizes: list[list[int]]) -> list[WindowGaps]:
    """Windows with gaps of these sizes, each offset only once."""
    windows: list[WindowGaps] = []
    at = 0
    for of_window in sizes:
        gaps: list[Gap] = []
        for size in of_window:
            offsets = range(at, at + size)
            at += size
            gaps.append(
                Gap(
                    bracket=Bracket(0, 0, 0, 0),
                    is_last=False,
                    source_begin=0,
                    source=offsets[: size // 2 + size % 2 * size],
                    target=offsets[size // 2 + size % 2 * size :],
                )
            )
        known = {offset: 0 for gap in gaps for offset in gap.target}
        windows.append(WindowGaps(gaps=tuple(gaps), is_settled=False, known=known))
    return windows


@given(sizes, st.integers(1, 20))
def test_chunks_hold_all_gaps_once_and_no_more_than_they_may(
    sizes: list[list[int]], most: int
) -> None:
    windows = windows_of(sizes)
    chunks = list(chunks_of(windows, most))
    in_order = [gap for chunk in reversed(chunks) for window in chunk for gap in window.gaps]
    offsets = [at for gap in in_order for at in (*gap.source, *gap.target)]
    assert offsets == list(range(sum(map(sum, sizes))))
    for chunk in chunks:
        gaps = [gap for window in chunk for gap in window.gaps]
        assert unmatched(chunk) <= most or len(gaps) == 1
        for window in chunk:
            assert window.known.keys() == {at for gap in window.gaps for at in gap.target}
    for chunk, before in pairwise(chunks):
        last = before[-1].gaps[-1]
        assert unmatched(chunk) + len(last.source) + len(last.target) > most


def test_a_gap_of_one_side_is_settled_in_parts_and_one_of_both_is_not() -> None:
    [window] = windows_of([[10]])
    [gap] = window.gaps
    one_sided = replace(window, gaps=(replace(gap, source=range(20), target=()),))
    parts = [part for [one] in chunks_of([one_sided], 8) for part in one.gaps]
    assert [(one.skipped, *one.source) for one in parts] == [
        (16, *range(16, 20)),
        (8, *range(8, 16)),
        (0, *range(8)),
    ]
    [[whole]] = chunks_of([window], 8)
    assert whole.gaps == (gap,)


def compacted(taken: int, room: int) -> Pair:
    """The target's cleaner took so many records in a row, where it has room for so many."""
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = True
    pair.mirror("first")
    for number in range(taken):
        pair.source.append(f"k@{number}")
    pair.target.skip(room)
    pair.mirror("k@last")
    pair.mirror("last")
    return pair


@pytest.mark.parametrize(("room", "lost"), [(60, 0), (59, 10)])
def test_what_a_cleaner_took_in_a_row_is_explained_in_parts_by_the_room_that_there_is(
    monkeypatch: pytest.MonkeyPatch, room: int, lost: int
) -> None:
    """Where the room is too small by one, the part that does not fit is lost."""
    monkeypatch.setattr(settling, "MOST_UNMATCHED", 10)
    pairs = {("t", 0): compacted(60, room)}
    snapshot = snapshot_of(pairs)
    result = audit_flow(MemoryReader(pairs), snapshot, planner_of(snapshot))
    [row] = result.summary
    assert (row["lost"], row["explained"], row["not_compared"]) == (lost, 60 - lost, 0)


def test_what_retention_took_in_a_row_is_explained_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "MOST_UNMATCHED", 10)
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = True
    for number in range(50):
        pair.mirror(f"u{number}")
    pair.target.start = 35
    del pair.target.batches[:35]
    pairs = {("t", 0): pair}
    snapshot = snapshot_of(pairs)
    result = audit_flow(MemoryReader(pairs), snapshot, planner_of(snapshot))
    [row] = result.summary
    assert (row["lost"], row["missing_by_retention"]) == (0, 35)
