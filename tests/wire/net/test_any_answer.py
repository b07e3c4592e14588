# ruff: noqa: ARG001 - asking for the clock is what makes it jump
"""Whoever answers first answers for the cluster, whatever others do."""

import pytest
import trio
from trio.testing import MockClock

from wire.net.any_answer import ASKED_WITHIN_S, BETWEEN_S, first_answer
from wire.net.errors import AuthenticationFailed, BrokerUnreachable


async def hangs() -> str:
    await trio.sleep(3_600)
    return "too late"


async def answers() -> str:
    await trio.sleep(0.05)
    return "here"


async def refuses() -> str:
    await trio.sleep(0.05)
    raise AuthenticationFailed("who are you?")


async def is_away() -> str:
    await trio.sleep(0.05)
    raise BrokerUnreachable("nobody there")


async def test_the_second_is_not_asked_where_the_first_answers(autojump_clock: MockClock) -> None:
    async def fails() -> str:
        pytest.fail("it was asked")

    assert await first_answer([answers, fails]) == "here"


async def test_one_that_answers_is_heard_however_many_hang(autojump_clock: MockClock) -> None:
    began = trio.current_time()
    assert await first_answer([*[hangs] * 200, answers]) == "here"
    assert trio.current_time() - began < ASKED_WITHIN_S + BETWEEN_S


async def test_one_that_answers_counts_more_than_one_that_does_not_believe_us(
    autojump_clock: MockClock,
) -> None:
    assert await first_answer([refuses, hangs, answers]) == "here"


async def test_who_does_not_believe_us_is_there_although_others_hang(
    autojump_clock: MockClock,
) -> None:
    with trio.fail_after(2 * ASKED_WITHIN_S), pytest.raises(AuthenticationFailed, match="who are"):
        await first_answer([hangs, refuses, is_away])


async def test_each_reason_is_told_once_nobody_is_left(autojump_clock: MockClock) -> None:
    with pytest.raises(BrokerUnreachable, match=r"^nobody there; nobody there$"):
        await first_answer([is_away, is_away])
    with pytest.raises(BrokerUnreachable, match="no bootstrap address was given"):
        await first_answer([])
    with pytest.raises(trio.TooSlowError), trio.fail_after(60):
        await first_answer([is_away, hangs])
