"""What the drill of short tokens says of the times at which records came."""

from datetime import datetime

from tests.drill.tokens.arrivals import Arrival, flow_of
from tests.drill.tokens.drill import Drilled, is_bad, offences


def arrivals(*times_s: float) -> list[Arrival]:
    return [Arrival(value=f"{at}", sent_s=at - 0.1, at_s=at) for at in times_s]


def test_a_gap_counts_from_the_beginning_and_to_the_end() -> None:
    assert flow_of(arrivals(3, 4, 6), 0, 7).longest_gap_s == 3
    assert flow_of(arrivals(1, 2, 3), 0, 7).longest_gap_s == 4
    assert flow_of([], 0, 7).longest_gap_s == 7


def test_what_came_before_or_after_is_left_out() -> None:
    flow = flow_of(arrivals(0.5, 2, 3, 9), 1, 4)
    assert (flow.records, flow.longest_gap_s) == (2, 1)


def test_a_connection_that_ended_and_a_source_that_nobody_asked_are_offences() -> None:
    flow = flow_of(arrivals(*range(1, 60)), 0, 60)
    drilled = Drilled(
        seconds=60,
        life_s=20,
        mirrored=flow,
        delivered=flow,
        kept={"mirror": (11, 10), "applications": (8, 8)},
        asked={"issuer": 2, "command": 3},
        promoted_s=1.0,
        findings=["broker: not let in"],
    )
    assert offences(drilled, most_gap_s=2.0) == [
        "broker: not let in",
        "mirror: 1 of 11 connections ended",
        "the issuer was asked 2 times",
    ]
    assert "target: 1.00 s without a record" in offences(drilled, most_gap_s=0.5)


def test_what_is_warned_of_at_the_first_start_is_bad_later() -> None:
    at = datetime(2026, 5, 4, 3, 2, 1, 500_000).astimezone()
    at_ms = int(at.timestamp() * 1_000)
    line = f"{at:%Y-%m-%d %H:%M:%S},500 failover WARNING x: dc2 could not be promoted now: lag"
    assert is_bad(line, at_ms, at_ms + 1)
    assert not is_bad(line, at_ms + 1, at_ms + 9)
    assert is_bad(line.replace("promoted", "reached"), at_ms + 1, at_ms + 9)
    assert is_bad("Traceback (most recent call last):", 0, 1)
    assert not is_bad(line.replace("WARNING", "INFO"), at_ms, at_ms + 1)
