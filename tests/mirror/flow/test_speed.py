"""Speed and the estimate of when a flow has caught up."""

from mirror.flow.speed import Progress, Sample, Speed


def after(*samples: tuple[int, int, int]) -> Speed | None:
    """Note samples of (seconds, records, lag)."""
    progress = Progress()
    for seconds, records, lag in samples:
        progress.note(
            Sample(at_ms=seconds * 1_000, records=records, bytes=records * 10, lag_records=lag)
        )
    return progress.speed


def test_nothing_is_said_before_two_seconds_have_passed() -> None:
    assert after() is None
    assert after((0, 0, 9), (1, 9, 0)) is None


def test_the_estimate_goes_by_how_fast_the_lag_shrinks() -> None:
    speed = after((0, 0, 1_000), (10, 2_000, 500))
    assert speed == Speed(records_per_s=200, bytes_per_s=2_000, lag_records=500, done_in_s=10)


def test_a_lag_that_grows_has_no_end_and_none_is_over() -> None:
    growing = after((0, 0, 100), (10, 10, 200))
    level = after((0, 0, 0), (10, 50, 0))
    assert growing is not None
    assert growing.done_in_s is None
    assert level is not None
    assert level.done_in_s == 0


def test_rates_are_of_the_last_half_minute_and_of_one_clock() -> None:
    recent = after((0, 0, 0), (100, 100_000, 0), (110, 100_050, 0))
    jumped = after((1_000, 5, 0), (10, 10, 0), (20, 40, 0))
    assert recent is not None
    assert recent.records_per_s == 5
    assert jumped is not None
    assert jumped.records_per_s == 3
