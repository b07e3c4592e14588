"""The work of a request is what its steps take, not what it waits."""

import time

import pytest
import trio

from broker.quotas.work import Work, measured


def step(ms: int) -> None:
    time.sleep(ms / 1_000)  # noqa: TID251 - a step that takes so long


async def test_steps_count_and_waits_do_not(autojump_clock: trio.testing.MockClock) -> None:  # noqa: ARG001
    async def handled() -> str:
        step(20)
        await trio.sleep(3_600)
        step(10)
        return "answer"

    work = Work()
    assert await measured(handled(), work) == "answer"
    assert 0.03 <= work.spent_ns / 1e9 < 10
    assert work.percent_seconds == pytest.approx(work.spent_ns / 1e7)


async def test_what_is_raised_and_what_is_cancelled_passes_through() -> None:
    async def failing() -> None:
        await trio.lowlevel.checkpoint()
        raise LookupError

    with pytest.raises(LookupError):
        await measured(failing(), Work())

    has_cleaned_up = False

    async def waiting() -> None:
        nonlocal has_cleaned_up
        try:
            await trio.sleep_forever()
        finally:
            has_cleaned_up = True

    with trio.CancelScope() as scope:
        scope.cancel()
        await measured(waiting(), Work())
    assert scope.cancelled_caught
    assert has_cleaned_up
