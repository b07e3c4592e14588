"""The map found again from both logs, and refused where the logs leave it open."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offset_translation.offset_map import OffsetMap
from offset_translation.rebuilding import (
    CannotAlign,
    LogDigest,
    align,
    rebuild_starts,
    run_starts,
)
from offset_translation.runs import Place, Runs
from offset_translation.translation import translate


def log_of(records: list[tuple[int, int]]) -> LogDigest:
    log = LogDigest()
    for offset, digest in records:
        log.add(offset, digest)
    return log


def naive_places(source: list[int], target: list[int], *, may_overhang: bool) -> list[int]:
    found = []
    for place in range(-len(target) + 1 if may_overhang else 0, len(source)):
        pairs = [(place + index, index) for index in range(len(target)) if place + index >= 0]
        if pairs[-1][0] < len(source) and all(source[s] == target[t] for s, t in pairs):
            found.append(place)
    return found


@given(
    st.lists(st.integers(0, 2), max_size=12),
    st.lists(st.integers(0, 2), min_size=1, max_size=6),
    st.booleans(),
)
def test_the_one_place_that_fits_is_found_and_several_are_refused(
    source: list[int], target: list[int], source_has_its_first: bool
) -> None:
    places = naive_places(source, target, may_overhang=not source_has_its_first)
    if len(places) == 1:
        assert align(source, target, source_has_its_first=source_has_its_first) == places[0]
    else:
        with pytest.raises(CannotAlign, match="more than one place" if places else "not in the"):
            align(source, target, source_has_its_first=source_has_its_first)


@given(st.data())
def test_every_record_on_both_sides_translates_as_it_did(data: st.DataObject) -> None:
    holes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=30))
    source_offsets = list(accumulate(holes))
    mirrored = data.draw(st.integers(1, len(source_offsets)))
    source_lost = data.draw(st.integers(0, mirrored - 1))
    target_lost = data.draw(st.integers(0, mirrored - 1))
    source = log_of([(offset, offset) for offset in source_offsets[source_lost:]])
    target = log_of([(t, source_offsets[t]) for t in range(target_lost, mirrored)])
    starts = rebuild_starts(source, target, source_has_its_first=source_lost == 0)
    rebuilt = OffsetMap.from_starts(starts, target_end=mirrored)
    for place in range(max(source_lost, target_lost), mirrored):
        assert translate(rebuilt, source_offsets[place]) == place
    assert rebuilt.mirrored_source_end == source_offsets[mirrored - 1] + 1


def test_records_of_somebody_else_and_an_empty_target_are_refused() -> None:
    with pytest.raises(CannotAlign, match="not in the source's log"):
        align([1, 2, 3], [1, 3], source_has_its_first=True)
    with pytest.raises(CannotAlign, match="holds no mirrored record"):
        align([1, 2, 3], [], source_has_its_first=True)


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(0, 5))
def test_runs_tell_where_each_record_lies_among_others(foreign: list[int], first: int) -> None:
    places = range(first, first + len(foreign))
    targets = [place + own for place, own in zip(places, accumulate(foreign), strict=True)]
    runs = Runs()
    for place, target in run_starts(places, targets):
        runs.put(place, target)
    assert [runs.start_of(Place(place)) for place in places] == targets
