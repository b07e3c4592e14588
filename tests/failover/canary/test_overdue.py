"""When the records of a closed source count as lost."""

from failover.canary.overdue import Overdue


def test_a_look_long_after_the_source_was_closed_ends_the_wait() -> None:
    overdue = Overdue(late_after_ms=10)
    overdue.see_source(False, 100)
    overdue.see_source(False, 111)
    overdue.see_copy(110)
    assert not overdue.is_over
    overdue.see_copy(111)
    assert overdue.is_over


def test_a_copy_that_cannot_be_read_loses_nothing() -> None:
    overdue = Overdue(late_after_ms=10)
    overdue.see_copy(99)
    for now_ms in (100, 1_000, 10_000):
        overdue.see_source(False, now_ms)
        assert not overdue.is_over


def test_a_source_of_which_nothing_is_known_loses_nothing() -> None:
    overdue = Overdue(late_after_ms=10)
    overdue.see_source(False, 100)
    overdue.see_source(None, 105)
    overdue.see_copy(500)
    assert not overdue.is_over
    overdue.see_source(False, 600)
    overdue.see_copy(605)
    assert not overdue.is_over, "the time begins anew"
    overdue.see_copy(611)
    assert overdue.is_over


def test_a_source_that_takes_writes_again_begins_anew() -> None:
    overdue = Overdue(late_after_ms=10)
    overdue.see_source(False, 100)
    overdue.see_source(True, 200)
    overdue.see_copy(500)
    assert not overdue.is_over
