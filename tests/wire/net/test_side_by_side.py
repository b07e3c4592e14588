"""Many are asked about at once, and a fault is raised as itself once all have been."""

from functools import partial

import pytest
import trio
from trio.testing import MockClock

from wire.errors import ErrorCode
from wire.net.errors import ConnectionClosed, RequestRefused
from wire.net.side_by_side import ask_both, ask_each, or_refusal


async def test_so_many_are_asked_about_at_once_and_no_more(autojump_clock: MockClock) -> None:
    asking = most = 0

    async def ask(key: int) -> int:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await trio.sleep(1)
        asking -= 1
        return 2 * key

    answers = await ask_each(range(10), ask, at_once=3)
    assert answers == {key: 2 * key for key in range(10)}
    assert most == 3
    assert autojump_clock.current_time() == pytest.approx(4)


async def test_a_refusal_is_an_answer_and_a_fault_is_raised_behind_the_others() -> None:
    asked = []

    async def ask(key: str) -> str:
        await trio.lowlevel.checkpoint()
        asked.append(key)
        if key == "refused":
            raise RequestRefused("reading", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if key == "closed":
            raise ConnectionClosed("dc2: h:1: closed")
        return key

    answers = await ask_each(["refused", "a"], or_refusal(ask), at_once=1)
    assert isinstance(answers["refused"], RequestRefused)
    assert answers["a"] == "a"
    asked.clear()
    with pytest.raises(ConnectionClosed):
        await ask_each(["closed", "a", "b"], or_refusal(ask), at_once=1)
    assert sorted(asked) == ["a", "b", "closed"]


async def test_two_questions_are_asked_side_by_side(autojump_clock: MockClock) -> None:
    async def ask(answer: str) -> str:
        await trio.sleep(1)
        return answer

    assert await ask_both(partial(ask, "dc1"), partial(ask, "dc2")) == ("dc1", "dc2")
    assert autojump_clock.current_time() == pytest.approx(1)


@pytest.mark.parametrize(("first_s", "second_s"), [(1, 2), (2, 1)])
async def test_a_fault_of_either_question_is_raised_as_itself_and_the_first_ones_before(
    first_s: int, second_s: int, autojump_clock: MockClock
) -> None:
    async def fail(after_s: int, why: str) -> None:
        await trio.sleep(after_s)
        raise ConnectionClosed(why)

    async def answer() -> str:
        await trio.sleep(second_s)
        return "dc2"

    with pytest.raises(ConnectionClosed, match="dc1"):
        await ask_both(partial(fail, first_s, "dc1"), partial(fail, second_s, "dc2"))
    assert autojump_clock.current_time() == pytest.approx(2)
    with pytest.raises(ConnectionClosed, match="dc1"):
        await ask_both(answer, partial(fail, first_s, "dc1"))
