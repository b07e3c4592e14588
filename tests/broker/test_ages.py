"""A leap of the clock ages nothing until it has lasted."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ages import BELIEVED_AFTER_MS, LEAP_MS, Ages
from broker.node import SystemClock

DAY_MS = 86_400_000
MINUTE_MS = 60_000


def looks(ages: Ages, since_ms: int, until_ms: int, set_by_ms: int) -> list[int]:
    """Return the ages counted each minute, as differences to the clock that nobody sets."""
    times = range(since_ms, until_ms, MINUTE_MS)
    return [ages.at(now_ms, now_ms + set_by_ms) - now_ms for now_ms in times]


def test_a_leap_forward_counts_when_it_has_lasted(caplog: pytest.LogCaptureFixture) -> None:
    ages = Ages()
    assert looks(ages, 0, DAY_MS, 0)[-1] == 0
    assert set(looks(ages, DAY_MS, DAY_MS + BELIEVED_AFTER_MS, 3 * DAY_MS)) == {0}
    assert ages.at(DAY_MS + BELIEVED_AFTER_MS, 4 * DAY_MS + BELIEVED_AFTER_MS) == (
        4 * DAY_MS + BELIEVED_AFTER_MS
    )
    assert len(caplog.records) == 1
    assert "set forward by 259200 s" in caplog.text


def test_a_clock_set_back_counts_at_once() -> None:
    ages = Ages()
    assert set(looks(ages, 0, DAY_MS, -DAY_MS)) == {-DAY_MS}
    assert set(looks(ages, DAY_MS, DAY_MS + MINUTE_MS, 0)) == {-DAY_MS}


def test_a_second_leap_has_to_last_as_well() -> None:
    ages = Ages()
    assert set(looks(ages, 0, BELIEVED_AFTER_MS - MINUTE_MS, DAY_MS)) == {0}
    later = 2 * BELIEVED_AFTER_MS - MINUTE_MS
    assert set(looks(ages, BELIEVED_AFTER_MS - MINUTE_MS, later, 9 * DAY_MS)) == {0}
    assert set(looks(ages, later, later + MINUTE_MS, 9 * DAY_MS)) == {9 * DAY_MS}


def test_a_clock_that_is_put_right_little_by_little_is_followed() -> None:
    ages = Ages()
    for minute in range(1_000):
        now_ms, gained_ms = minute * MINUTE_MS, minute * (LEAP_MS - 1)
        assert ages.at(now_ms, now_ms + gained_ms) == now_ms + gained_ms


@given(st.lists(st.tuples(st.integers(0, DAY_MS), st.integers(-DAY_MS, 9 * DAY_MS))))
def test_nothing_is_ever_older_than_the_clock_says(looked: list[tuple[int, int]]) -> None:
    ages, now_ms = Ages(), 0
    for passed_ms, set_by_ms in looked:
        now_ms += passed_ms
        assert ages.at(now_ms, now_ms + set_by_ms) <= now_ms + set_by_ms


def test_the_systems_ages_do_not_leap(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, true_ns = SystemClock(), time.time_ns()
    before_ms = clock.age_ms()
    monkeypatch.setattr(time, "time_ns", lambda: true_ns + 3 * DAY_MS * 1_000_000)
    assert before_ms <= clock.age_ms() < before_ms + MINUTE_MS
