"""What may be in flight is bounded: by age, and by where the target's log begins."""

from uuid import UUID

import pytest

from spark_audit.compare.in_flight import bounded
from spark_audit.compare.judgements import Judgement
from spark_audit.compare.outcomes import Kind
from spark_audit.compare.summary import first_behind
from spark_audit.snapshot.bounds import LogBounds, PartitionBounds, SeenEnd

HOUR_MS = 3_600_000
NOW_MS = 1_000 * HOUR_MS


def _log(start: int, stop: int) -> LogBounds:
    return LogBounds(start=start, stop=stop, topic_id=UUID(int=1), is_compacted=False)


def _told(
    oldest_ms: int | None,
    *,
    target: LogBounds | None = None,
    source_start: int = 0,
    source_seen: SeenEnd | None = None,
) -> list[tuple[Kind, int]]:
    bounds = PartitionBounds(
        topic="orders",
        partition=0,
        source=_log(source_start, 3_000),
        target=target or _log(0, 0),
        seal=None,
        source_seen=source_seen,
    )
    waiting = Judgement(
        Kind.IN_FLIGHT, source_start, None, 3_000 - source_start, oldest_ms, None, ""
    )
    told = bounded([waiting], bounds, target_records=0, taken_ms=NOW_MS, limit_ms=HOUR_MS)
    return [(one.kind, one.records) for one in told]


@pytest.mark.parametrize("oldest_ms", [None, -1, NOW_MS - HOUR_MS, NOW_MS, NOW_MS + HOUR_MS])
def test_what_waits_no_longer_than_the_limit_is_in_flight(oldest_ms: int | None) -> None:
    assert _told(oldest_ms) == [(Kind.IN_FLIGHT, 3_000)]


def test_what_waits_longer_by_its_own_time_is_a_finding() -> None:
    assert _told(NOW_MS - HOUR_MS - 1) == [(Kind.OVERDUE, 3_000)]


@pytest.mark.parametrize("oldest_ms", [None, NOW_MS, 0])
def test_an_earlier_audit_knows_better_than_the_records_since_when_they_wait(
    oldest_ms: int | None,
) -> None:
    """An application may stamp its records as it likes."""
    night = SeenEnd(stop=1, at_ms=NOW_MS - 24 * HOUR_MS)
    assert _told(oldest_ms, source_seen=night) == [(Kind.OVERDUE, 3_000)]
    lately = SeenEnd(stop=1, at_ms=NOW_MS - HOUR_MS // 2)
    assert _told(oldest_ms, source_seen=lately) == [(Kind.IN_FLIGHT, 3_000)]
    before = SeenEnd(stop=0, at_ms=0)
    assert _told(NOW_MS, source_seen=before) == [(Kind.IN_FLIGHT, 3_000)]


@pytest.mark.parametrize("oldest_ms", [None, NOW_MS, 0])
def test_by_a_clock_that_went_back_nobody_knows_how_long_records_wait(
    oldest_ms: int | None,
) -> None:
    """Else what waits would be in flight until the clock is where it was."""
    tomorrow = SeenEnd(stop=1, at_ms=NOW_MS + 24 * HOUR_MS)
    assert _told(oldest_ms, source_seen=tomorrow) == [(Kind.NOT_COMPARED, 3_000)]
    other_clock = SeenEnd(stop=1, at_ms=NOW_MS + 59_000)
    assert _told(oldest_ms, source_seen=other_clock) == [(Kind.IN_FLIGHT, 3_000)]


def test_what_is_not_compared_may_be_behind_and_the_memory_of_the_target_stays() -> None:
    row = {"first_in_flight": None, "not_compared_source": 0, "source_stop": 9}
    assert first_behind(row) is None
    assert first_behind({**row, "not_compared_source": 2}) == 9
    assert first_behind({**row, "not_compared_source": 2, "first_in_flight": 4}) == 4


@pytest.mark.parametrize(
    ("source_start", "target_end", "told"),
    [
        (0, 3_000, [(Kind.NOT_COMPARED, 3_000)]),
        (0, 2_000, [(Kind.NOT_COMPARED, 2_000), (Kind.IN_FLIGHT, 1_000)]),
        (1_500, 2_000, [(Kind.NOT_COMPARED, 500), (Kind.IN_FLIGHT, 1_000)]),
        (2_000, 2_000, [(Kind.IN_FLIGHT, 1_000)]),
    ],
)
def test_of_a_target_that_its_retention_emptied_nothing_is_in_flight_that_it_had(
    source_start: int, target_end: int, told: list[tuple[Kind, int]]
) -> None:
    emptied = _log(target_end, target_end)
    assert _told(NOW_MS, target=emptied, source_start=source_start) == told
