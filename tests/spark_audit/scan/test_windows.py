"""Windows in which two logs differ, between the ranges that are equal."""

from hypothesis import given
from hypothesis import strategies as st

from spark_audit.scan.digests import DigestRange
from spark_audit.scan.windows import LOG_START, LOG_STOP, Window, windows_between


def _ranges(content: str, first_offset: int = 0, records: int = 10) -> list[DigestRange]:
    return [
        DigestRange(
            first_offset + place * records,
            first_offset + (place + 1) * records,
            records,
            letter.encode(),
        )
        for place, letter in enumerate(content)
    ]


def test_equal_logs_have_no_window() -> None:
    assert windows_between(_ranges("abc"), _ranges("abc", 500)) == []


def test_a_window_lies_between_the_equal_ranges_around_it() -> None:
    assert windows_between(_ranges("abcde"), _ranges("abxde", 500)) == [
        Window(
            source_start=20,
            source_stop=30,
            target_start=520,
            target_stop=530,
            source_records=10,
            target_records=10,
            is_last=False,
        )
    ]


def test_the_first_and_the_last_window_reach_to_the_ends_of_the_logs() -> None:
    first, last = windows_between(_ranges("xab"), _ranges("aby"))
    assert (first.source_start, first.target_start, first.is_last) == (LOG_START, LOG_START, False)
    assert (last.source_stop, last.target_stop, last.is_last) == (LOG_STOP, LOG_STOP, True)
    assert (last.source_records, last.target_records) == (0, 10)


def test_a_log_that_is_empty_on_one_side_is_one_window() -> None:
    (window,) = windows_between(_ranges("ab"), [])
    assert window.source_records == 20
    assert window.is_last


def test_the_larger_of_two_that_changed_places_is_kept() -> None:
    small = [DigestRange(0, 1, 1, b"small")]
    large = [DigestRange(1, 1_001, 1_000, b"large")]
    first, last = _ranges("ab"), _ranges("cd", 2_000)
    windows = windows_between([*first, *small, *large, *last], [*first, *large, *small, *last])
    assert sum(window.source_records + window.target_records for window in windows) == 2


def test_a_last_range_that_is_another_one_again_by_chance_tells_of_no_loss() -> None:
    """Logs' ends cut ranges short: of one record, a copy may be at the end of the other log."""
    (window,) = windows_between(_ranges("abcx"), _ranges("abx"))
    assert window.is_last
    assert (window.source_start, window.source_records, window.target_records) == (20, 20, 10)


def test_a_first_range_that_is_another_one_again_by_chance_does_not_begin_behind_a_loss() -> None:
    (window,) = windows_between(_ranges("xbcd"), _ranges("xabcd"))
    assert (window.source_start, window.source_stop, window.target_stop) == (LOG_START, 10, 20)


@given(st.text("abcd", max_size=12), st.text("abcd", max_size=12))
def test_what_is_outside_the_windows_is_equal(source: str, target: str) -> None:
    windows = windows_between(_ranges(source), _ranges(target))
    outside_source = _outside(source, [(w.source_start, w.source_stop) for w in windows])
    outside_target = _outside(target, [(w.target_start, w.target_stop) for w in windows])
    assert outside_source == outside_target


def _outside(content: str, edges: list[tuple[int, int]]) -> str:
    return "".join(
        letter
        for place, letter in enumerate(content)
        if not any(start <= place * 10 < stop for start, stop in edges)
    )
