"""When a connection is given up whose oldest answer is overdue: once nothing moves."""

from hypothesis import given
from hypothesis import strategies as st

from wire.net.patience import LOOK, Motion, Patience

TIMEOUT_S = 30.0


def motion(
    delivered: int = 0,
    received: int = 0,
    *,
    request: int = 1,
    is_delivered: bool = False,
    is_coming: bool = False,
) -> Motion:
    return Motion(request, delivered, received, is_delivered, is_coming)


def given_up_at(moving_s: list[float]) -> float:
    """When a connection is given up on which a byte goes out at these times, from 0 on."""
    patience, now_s = Patience(TIMEOUT_S), TIMEOUT_S
    while True:
        sent = sum(at <= now_s for at in moving_s)
        later_s = patience.look_again_at(now_s, motion(sent))
        if later_s is None:
            return now_s
        assert now_s < later_s <= now_s + LOOK * TIMEOUT_S
        now_s = later_s


def test_a_broker_that_has_the_request_and_says_nothing_is_given_up_at_once() -> None:
    assert Patience(TIMEOUT_S).look_again_at(30, motion(9, is_delivered=True)) is None


def test_a_request_that_has_gone_out_whole_has_its_time_for_the_answer() -> None:
    patience = Patience(TIMEOUT_S)
    assert patience.look_again_at(30, motion(5)) == 37.5
    assert patience.look_again_at(37.5, motion(9, is_delivered=True)) == 67.5
    assert patience.look_again_at(67.5, motion(9, is_delivered=True)) is None


def test_an_answer_that_comes_slowly_is_waited_for() -> None:
    patience = Patience(TIMEOUT_S)
    now_s: float | None = 30.0
    for received in range(100):
        assert now_s is not None
        now_s = patience.look_again_at(
            now_s, motion(9, received, is_delivered=True, is_coming=True)
        )
    assert now_s is not None
    assert now_s > 700


def test_each_oldest_request_is_looked_at_anew() -> None:
    patience = Patience(TIMEOUT_S)
    patience.look_again_at(30, motion(5))
    patience.begin()
    assert patience.look_again_at(99, motion(9, request=2, is_delivered=True)) is None


@given(st.lists(st.floats(30.1, 400), max_size=40))
def test_a_line_is_given_up_a_timeout_after_it_has_moved_last(moving_s: list[float]) -> None:
    """Not sooner, and later by no more than a look."""
    ended_s = given_up_at(moving_s)
    heard = [at for at in moving_s if at <= ended_s]
    if heard:
        assert TIMEOUT_S <= ended_s - max(heard) <= TIMEOUT_S * (1 + LOOK)
    else:
        assert ended_s == TIMEOUT_S * (1 + LOOK)
