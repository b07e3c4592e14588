"""How long ago the last promotion was: by our own clock where we saw it, and never by no clock."""

from dataclasses import replace

import pytest

from failover.automatic.last_promotion import Clocks, LastPromotion
from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind, PromotionState

BEGUN = Journal(
    epoch=4, site="dc2", source="dc1", kind=PromotionKind.SOURCE_LOST, started_ms=1_000_000
)
DONE = replace(BEGUN, state=PromotionState.DONE, switched_ms=1_005_000)


def at(now_ms: int) -> Clocks:
    """All clocks are right."""
    return Clocks(wall_ms=now_ms, witness_ms=now_ms, journal_ms=1_005_000)


def test_where_no_promotion_was_nothing_is_to_cool_down() -> None:
    assert LastPromotion().see([], 0, clocks=at(5), now_ms=5) is None


def test_of_one_that_was_over_at_the_first_look_its_journal_tells() -> None:
    last = LastPromotion()
    assert last.see([DONE], 4, clocks=at(1_105_000), now_ms=7) == 100_000
    assert last.see([DONE], 4, clocks=at(9_999_999), now_ms=57) == 100_050


def test_of_one_that_ended_before_our_eyes_no_clock_of_others_counts() -> None:
    last = LastPromotion()
    last.see([BEGUN], 3, clocks=at(1_000_000_000), now_ms=0)
    assert last.see([DONE], 4, clocks=at(1_000_000_000), now_ms=50) == 0
    assert last.see([DONE], 4, clocks=at(1_000_000_000), now_ms=80) == 30


def test_a_journal_of_the_future_and_one_that_is_lost_count_from_the_first_look() -> None:
    assert LastPromotion().see([DONE], 4, clocks=at(3), now_ms=0) == 0
    assert LastPromotion().see([], 4, clocks=at(2_000_000), now_ms=0) == 0


def test_one_that_was_taken_back_counts_too() -> None:
    last, back = LastPromotion(), replace(BEGUN, epoch=5, state=PromotionState.ROLLED_BACK)
    last.see([DONE], 4, clocks=at(2_000_000), now_ms=0)
    assert last.see([DONE, back], 4, clocks=at(2_000_000), now_ms=90) == 0


@pytest.mark.parametrize(
    "clocks",
    [
        Clocks(wall_ms=9_000_000, witness_ms=1_009_000, journal_ms=1_005_000),
        Clocks(wall_ms=1_009_000, witness_ms=9_000_000, journal_ms=1_005_000),
        Clocks(wall_ms=9_000_000, witness_ms=9_000_000, journal_ms=8_996_000),
    ],
    ids=["ours is ahead", "the witness's is ahead", "that of whoever promoted was behind"],
)
def test_a_wrong_clock_ends_no_cool_down_early(clocks: Clocks) -> None:
    assert LastPromotion().see([DONE], 4, clocks=clocks, now_ms=0) == 4_000


def test_what_another_voter_has_counted_bounds_what_wrong_clocks_say_and_lengthens_nothing() -> (
    None
):
    """This machine has the witness's leading server on it, whose clock another had before."""
    ahead = Clocks(wall_ms=9_000_000, witness_ms=9_000_000, journal_ms=1_005_000)
    last = LastPromotion()
    assert last.see([DONE], 4, clocks=ahead, now_ms=0, counted_ms=[30_000, 4_000]) == 4_000
    assert last.see([DONE], 4, clocks=ahead, now_ms=10, counted_ms=[3]) == 4_010, "it goes on"
    right = at(1_105_000)
    assert LastPromotion().see([DONE], 4, clocks=right, now_ms=0, counted_ms=[999_999]) == 100_000
