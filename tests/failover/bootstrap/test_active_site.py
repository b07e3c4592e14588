"""Which site clients are shown: the witness's word, unless something speaks against it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.bootstrap.active_site import NOT_KNOWN, Answer, FollowedSite, next_answer
from runtime.coordination.witness import ActiveSite

SITES = ("dc1", "dc2")
ON_DC1 = Answer("dc1", 4)


def test_the_witness_says_who_is_active() -> None:
    assert next_answer(NOT_KNOWN, ActiveSite(site="dc1", epoch=4), None, SITES) == ON_DC1
    assert next_answer(ON_DC1, ActiveSite(site="dc2", epoch=5), None, SITES) == Answer("dc2", 5)


def test_a_site_that_is_moving_is_shown_until_the_switch() -> None:
    moving = ActiveSite(site="dc1", epoch=4, moving_to="dc2")
    assert next_answer(ON_DC1, moving, None, SITES) == ON_DC1


def test_while_nothing_is_said_what_is_known_stays() -> None:
    assert next_answer(ON_DC1, None, None, SITES) is ON_DC1


def test_no_site_is_shown_while_the_clusters_contradict_the_witness() -> None:
    shown = next_answer(ON_DC1, ActiveSite(site="dc1", epoch=4), "dc2 is active since 5", SITES)
    assert shown == Answer(None, 4, "dc2 is active since 5")


def test_an_old_copy_of_the_witness_is_told_by_its_epoch() -> None:
    shown = next_answer(Answer("dc2", 5), ActiveSite(site="dc1", epoch=4), None, SITES)
    assert shown.site is None
    assert "epoch 4, and has said 5 before" in shown.reason
    assert next_answer(shown, ActiveSite(site="dc2", epoch=5), None, SITES) == Answer("dc2", 5)


def test_a_site_that_the_file_does_not_have_is_named() -> None:
    shown = next_answer(ON_DC1, ActiveSite(site="dc3", epoch=5), None, SITES)
    assert shown == Answer(None, 5, "dc3, which is active, is not under `clusters`")


@given(st.lists(st.builds(ActiveSite, site=st.sampled_from(SITES), epoch=st.integers(0, 5))))
def test_no_answer_is_of_an_earlier_epoch_than_one_before(said: list[ActiveSite]) -> None:
    answer, shown = NOT_KNOWN, -1
    for one in said:
        answer = next_answer(answer, one, None, SITES)
        if answer.site is not None:
            assert answer.epoch >= shown
            shown = answer.epoch


async def test_connections_hear_of_another_site_and_of_nothing_else() -> None:
    followed = FollowedSite()
    followed.take(ON_DC1)
    before = followed.changed
    followed.take(Answer("dc1", 5))
    assert not before.is_set()
    followed.take(Answer(None, 5, "an old copy"))
    assert before.is_set()
    assert not followed.changed.is_set()


async def test_that_no_site_is_shown_stands_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    followed = FollowedSite()
    followed.take(ON_DC1)
    followed.take(Answer(None, 4, "an old copy"))
    assert "no site is shown to clients: an old copy" in caplog.text
