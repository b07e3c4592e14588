"""A connection lost while a broker starts costs time; one that never lasts is said."""

from typing import cast

import pytest
import trio
from trio.testing import MockClock

from broker.starting import retried
from runtime.coordination.zookeeper import NoNode, ZooKeeper, ZooKeeperUnreachable


class Connecting:
    """A session that is connected again after two seconds."""

    async def wait_connected(self) -> None:
        await trio.sleep(2)


SESSION = cast("ZooKeeper", Connecting())


class Steps:
    """A step that loses its connection so many times."""

    def __init__(self, losses: int) -> None:
        self.left = losses

    async def __call__(self) -> str:
        await trio.lowlevel.checkpoint()
        if self.left:
            self.left -= 1
            raise ZooKeeperUnreachable("ConnectionLoss")
        return "done"


async def test_a_step_is_repeated_once_connected_again(autojump_clock: MockClock) -> None:
    assert await retried(SESSION, 18, Steps(3)) == "done"
    assert autojump_clock.current_time() == pytest.approx(6.3)


async def test_a_connection_that_never_lasts_ends_the_start(autojump_clock: MockClock) -> None:
    with pytest.raises(ZooKeeperUnreachable):
        await retried(SESSION, 18, Steps(10**6))
    assert autojump_clock.current_time() == pytest.approx(18, abs=2.2)


async def test_other_faults_are_not_for_waiting() -> None:
    async def step() -> None:
        raise NoNode("/brokers")

    with pytest.raises(NoNode):
        await retried(SESSION, 18, step)
