"""Where a group goes on after a reset."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.commands.resetting import (
    Offsets,
    Rule,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    parse_duration,
    parse_scope,
    parse_time,
    planned,
)
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)


def after(rule: Rule, *, before: int | None = 50, at_time: int = -1) -> int | None:
    """Return where a log from 10 to 100 is read on."""
    [move] = planned(
        rule,
        [PLACE],
        {} if before is None else {PLACE: before},
        starts={PLACE: 10},
        ends={PLACE: 100},
        at_time={PLACE: at_time},
    )
    assert move.before == before
    return move.after


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (ToEarliest(), 10),
        (ToLatest(), 100),
        (ToOffset(42), 42),
        (ToOffset(3), 10),
        (ToOffset(1_000), 100),
        (ShiftBy(7), 57),
        (ShiftBy(-7), 43),
        (ShiftBy(-70), 10),
        (ShiftBy(70), 100),
    ],
)
def test_each_rule_stays_within_the_log(rule: Rule, expected: int) -> None:
    assert after(rule) == expected


def test_a_time_is_the_first_record_that_is_not_older_or_else_the_end() -> None:
    assert after(ToTime(1), at_time=33) == 33
    assert after(ToTime(1), at_time=-1) == 100


def test_a_shift_needs_a_position_and_no_other_rule_does() -> None:
    assert after(ShiftBy(1), before=None) is None
    assert after(ToOffset(42), before=None) == 42


@pytest.mark.parametrize("unknown", ["starts", "ends", "at_time"])
def test_a_log_that_nobody_could_be_asked_about_is_not_guessed(unknown: str) -> None:
    known: dict[str, Offsets] = {
        "starts": {PLACE: 10},
        "ends": {PLACE: 100},
        "at_time": {PLACE: 20},
    }
    asked = {**known, unknown: {PLACE: ErrorCode.NOT_LEADER_OR_FOLLOWER}}
    [move] = planned(ToEarliest(), [PLACE], {PLACE: 5}, **asked)
    assert (move.after, move.why) == (None, "NOT_LEADER_OR_FOLLOWER")


@given(
    st.integers(0, 1_000),
    st.integers(0, 1_000),
    st.integers(0, 3_000),
    st.one_of(
        st.just(ToEarliest()),
        st.just(ToLatest()),
        st.builds(ToOffset, st.integers(0, 3_000)),
        st.builds(ShiftBy, st.integers(-3_000, 3_000)),
        st.just(ToTime(0)),
    ),
)
def test_no_rule_leaves_the_log(start: int, length: int, before: int, rule: Rule) -> None:
    end = start + length
    [move] = planned(
        rule, [PLACE], {PLACE: before}, starts={PLACE: start}, ends={PLACE: end}, at_time={}
    )
    assert move.after is not None
    assert start <= move.after <= end


def test_times_without_a_zone_are_utc() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp() * 1000
    assert parse_time("2026-05-01T12:00:00") == noon
    assert parse_time("2026-05-01T12:00:00Z") == noon
    assert parse_time("2026-05-01T14:00:00+02:00") == noon


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "12:00"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no date"):
        parse_time(text)


def test_lengths_of_time_have_a_unit() -> None:
    assert [parse_duration(text) for text in ("90s", "15m", "6h", "2d")] == [
        90_000,
        900_000,
        21_600_000,
        172_800_000,
    ]
    for text in ("", "6", "h", "-1h", "1.5h", "6 h", "1w"):
        with pytest.raises(ValueError, match="no length of time"):
            parse_duration(text)


def test_a_scope_is_a_topic_or_one_partition_of_it() -> None:
    assert parse_scope("orders") == ("orders", None)
    assert parse_scope("orders:12") == ("orders", 12)
    for text in ("", ":1", "orders:", "orders:x", "orders:-1", "orders:²"):
        with pytest.raises(ValueError, match="TOPIC"):
            parse_scope(text)
