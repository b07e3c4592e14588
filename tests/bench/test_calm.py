"""What of a time was calm, from pulses that take their usual time or twice that."""

import time
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.calm import (
    Pulse,
    Span,
    is_within,
    outside,
    share_of,
    slow_spans,
)
from tests.bench.neighbours import Neighbours, watched

USUAL_S = 0.001


def pulses(took: str) -> list[Pulse]:
    """One each second: `.` the usual, `#` twice that."""
    return [
        Pulse(at_s=float(at), took_s=USUAL_S * (2 if each == "#" else 1))
        for at, each in enumerate(took)
    ]


def test_a_slow_time_counts_from_the_pulse_before_it_to_the_one_behind() -> None:
    found = slow_spans(pulses("......######......"), USUAL_S)
    assert outside(found, 0, 17) == [(0, 5), (12, 17)]


def test_one_interrupted_pulse_is_no_slow_time() -> None:
    assert slow_spans(pulses("....#....#...."), USUAL_S) == []
    assert outside(slow_spans(pulses("#" * 9), USUAL_S), 0, 8) == []


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda s: (min(s), max(s))))


@given(spans, st.integers(0, 25), st.integers(26, 50))
def test_what_is_outside_of_slow_spans_and_they_cover_all_of_the_time(
    slow: list[Span], began: int, ended: int
) -> None:
    calm = outside(slow, began, ended)
    for half in range(2 * began, 2 * ended):
        middle = half / 2 + 0.25
        is_slow = any(start <= middle <= end for start, end in slow)
        assert is_slow != is_within(calm, middle, middle)
    assert all(a < b for a, b in calm)
    assert all(first[1] <= second[0] for first, second in pairwise(calm))
    covered = sum(end - start for start, end in calm) / (ended - began)
    assert share_of(calm, began, ended) == pytest.approx(covered)


def test_without_pulses_all_time_is_calm() -> None:
    assert Neighbours().calm(1.0, 2.0) == [(1.0, 2.0)]
    assert Neighbours().share is None


def test_each_processor_has_its_pulse_while_it_is_watched(tmp_path: Path) -> None:
    neighbours, began = Neighbours(), time.monotonic()
    with watched(neighbours, tmp_path):
        while min(map(len, neighbours.pulses.values())) < 3:
            neighbours.calm(began, time.monotonic())
            Event().wait(0.05)
    assert all(each.took_s > 0 for pulses in neighbours.pulses.values() for each in pulses)
    assert all(
        began <= a.at_s < b.at_s < time.monotonic()
        for pulses in neighbours.pulses.values()
        for a, b in pairwise(pulses)
    )
