"""Which site clients are shown: the witness's word, unless something speaks against it."""

from dataclasses import replace

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from failover.bootstrap.active_site import NOT_KNOWN, FollowedSite, ShownSite, next_answer
from runtime.coordination.witness import ActiveSite

SITES = ("dc1", "dc2")
ON_DC1 = ShownSite("dc1", 4)


def test_the_witness_says_who_is_active() -> None:
    assert next_answer(NOT_KNOWN, ActiveSite(site="dc1", epoch=4), None, SITES) == ON_DC1
    assert next_answer(ON_DC1, ActiveSite(site="dc2", epoch=5), None, SITES) == ShownSite("dc2", 5)


def test_a_site_that_is_moving_is_shown_until_the_switch() -> None:
    moving = ActiveSite(site="dc1", epoch=4, moving_to="dc2")
    shown = next_answer(ON_DC1, moving, None, SITES)
    assert shown == ShownSite("dc1", 4, is_moving=True)
    assert next_answer(shown, ActiveSite(site="dc2", epoch=5), None, SITES) == ShownSite("dc2", 5)


def test_while_nothing_is_said_what_is_known_stays() -> None:
    assert next_answer(ON_DC1, None, None, SITES) is ON_DC1


def test_no_site_is_shown_while_the_clusters_contradict_the_witness() -> None:
    shown = next_answer(ON_DC1, ActiveSite(site="dc1", epoch=4), "dc2 is active since 5", SITES)
    assert shown == ShownSite(None, 4, "dc2 is active since 5")


def test_an_old_copy_of_the_witness_is_told_by_its_epoch() -> None:
    shown = next_answer(ShownSite("dc2", 5), ActiveSite(site="dc1", epoch=4), None, SITES)
    assert shown.site is None
    assert "epoch 4, and has said 5 before" in shown.reason
    assert next_answer(shown, ActiveSite(site="dc2", epoch=5), None, SITES) == ShownSite("dc2", 5)


def test_an_epoch_is_of_the_site_that_it_was_said_of_first_whatever_is_said_between() -> None:
    """A witness that somebody has written to would lead every client to the closed site."""
    first, other = ActiveSite(site="dc1", epoch=4), ActiveSite(site="dc2", epoch=4)
    answer = next_answer(NOT_KNOWN, first, None, SITES)
    for doubt in (None, "dc1 is active since 4", None):
        answer = next_answer(answer, other, doubt, SITES)
        assert answer.site is None
        assert answer.epoch == 4
    assert "dc2 is active in epoch 4, and has said dc1 before" in answer.reason
    assert next_answer(answer, first, None, SITES) == ON_DC1
    later = ActiveSite(site="dc2", epoch=5)
    assert next_answer(answer, later, None, SITES) == ShownSite("dc2", 5)


def test_a_site_that_the_file_does_not_have_is_named() -> None:
    shown = next_answer(ON_DC1, ActiveSite(site="dc3", epoch=5), None, SITES)
    assert shown == ShownSite(None, 5, "dc3, which is active, is not under `clusters`")


@given(st.lists(st.builds(ActiveSite, site=st.sampled_from(SITES), epoch=st.integers(0, 5))))
def test_no_answer_is_of_an_earlier_epoch_than_one_before(said: list[ActiveSite]) -> None:
    answer, shown = NOT_KNOWN, -1
    of_epoch: dict[int, str] = {}
    for one in said:
        answer = next_answer(answer, one, None, SITES)
        if answer.site is not None:
            assert answer.epoch >= shown
            shown = answer.epoch
            assert of_epoch.setdefault(shown, answer.site) == answer.site


async def test_connections_hear_of_another_site_and_of_nothing_else() -> None:
    followed = FollowedSite()
    followed.take(ON_DC1)
    before = followed.changed
    followed.take(replace(ON_DC1, is_moving=True))
    assert not before.is_set()
    followed.take(ShownSite(None, 5, "an old copy"))
    assert before.is_set()
    assert not followed.changed.is_set()


async def test_a_switch_there_and_back_that_was_not_seen_ends_connections_too() -> None:
    followed = FollowedSite()
    followed.take(ShownSite("dc1", 1))
    changed = followed.changed
    followed.take(ShownSite("dc1", 3))
    assert changed.is_set()
    assert followed.arrivals.is_guarded(trio.current_time())


async def test_that_no_site_is_shown_stands_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    followed = FollowedSite()
    followed.take(ON_DC1)
    followed.take(ShownSite(None, 4, "an old copy"))
    assert "no site is shown to clients: an old copy" in caplog.text
