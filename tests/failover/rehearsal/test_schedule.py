"""When a rehearsal is due: at its time of day, once, and not later than that."""

from datetime import UTC, datetime

import pytest

from failover.rehearsal.schedule import counts_from_ms, is_due
from runtime.configuration.rehearsal_section import HOUR_MS, RehearsalConfig

NIGHTLY = RehearsalConfig(every_ms=24 * HOUR_MS, at_ms=3 * HOUR_MS + HOUR_MS // 2)


def at(day: int, hour: int, minute: int = 0) -> int:
    return int(datetime(2026, 3, day, hour, minute, tzinfo=UTC).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("now", "since", "due"),
    [
        (at(5, 3, 29), at(4, 3, 31), False),
        (at(5, 3, 30), at(4, 3, 31), True),
        (at(5, 3, 31), at(5, 3, 30), False),
        (at(5, 12), at(5, 11), False),  # whoever starts at noon waits for the night
        (at(6, 3, 30), at(5, 11), True),
    ],
)
def test_it_is_due_once_a_night(now: int, since: int, due: bool) -> None:
    assert is_due(NIGHTLY, now_ms=now, since_ms=since) is due


def test_without_a_schedule_nothing_is_due() -> None:
    assert not is_due(RehearsalConfig(), now_ms=at(5, 3), since_ms=0)


@pytest.mark.parametrize(
    ("since", "last", "counted"),
    [
        (at(4, 12), at(5, 3, 30), at(5, 3, 30)),
        (at(5, 4), at(5, 3, 30), at(5, 4)),
        (at(4, 12), at(5, 12, 1), at(5, 12, 1)),  # another machine's clock is a bit ahead
        (at(4, 12), at(5, 12) + 400 * 24 * HOUR_MS, at(4, 12)),
    ],
)
def test_a_clock_that_was_far_ahead_puts_no_rehearsal_off(
    since: int, last: int, counted: int
) -> None:
    now = at(5, 12)
    found = counts_from_ms(NIGHTLY, now_ms=now, since_ms=since, last_ms=last)
    assert found == counted
