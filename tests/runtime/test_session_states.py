"""What is told of a session's states, without a server."""

import trio
from trio.testing import MockClock

from runtime.coordination.zookeeper import SessionState, ZooKeeper
from runtime.coordination.zookeeper_access import OPEN


async def test_a_session_lost_and_replaced_within_one_turn_of_the_loop_is_told() -> None:
    """As after a pause: kazoo's thread has a new session before this loop has run once."""
    zookeeper = ZooKeeper("127.0.0.1:1", 4_000, OPEN)
    (tell,) = zookeeper._client.state_listeners
    with trio.fail_after(5):
        tell("CONNECTED")
        await zookeeper.wait_connected()
        async with zookeeper.watch_state() as states:
            assert await states.receive() is SessionState.CONNECTED
            for state in ("SUSPENDED", "LOST", "CONNECTED"):
                tell(state)
            assert await states.receive() is SessionState.CONNECTED


async def test_a_session_is_lost_a_timeout_after_it_was_cut_off_and_not_before(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    zookeeper = ZooKeeper("127.0.0.1:1", 4_000, OPEN)
    (tell,) = zookeeper._client.state_listeners
    async with trio.open_nursery() as nursery:
        nursery.start_soon(zookeeper.expire_suspended)
        tell("CONNECTED")
        seen = []
        for told in ("SUSPENDED", "CONNECTED", "SUSPENDED", "CONNECTED", "SUSPENDED"):
            tell(told)
            await trio.sleep(3.9)
            seen.append(zookeeper.state.name)
        assert seen == ["SUSPENDED", "CONNECTED", "SUSPENDED", "CONNECTED", "SUSPENDED"]
        await trio.sleep(0.2)
        assert zookeeper.state is SessionState.LOST
        nursery.cancel_scope.cancel()
