"""What is told of a session's states, without a server."""

import pytest
import trio
from kazoo.client import KazooClient

from runtime.zookeeper import SessionState, ZooKeeper


async def test_a_session_lost_and_replaced_within_one_turn_of_the_loop_is_told() -> None:
    """As after a pause: kazoo's thread has a new session before this loop has run once."""
    client = KazooClient(hosts="127.0.0.1:1")
    zookeeper = ZooKeeper(client, "127.0.0.1:1", 4_000)
    (tell,) = client.state_listeners
    with trio.fail_after(5):
        tell("CONNECTED")
        await zookeeper.wait_connected()
        async with zookeeper.watch_state() as states:
            assert await states.receive() is SessionState.CONNECTED
            for state in ("SUSPENDED", "LOST", "CONNECTED"):
                tell(state)
            assert await states.receive() is SessionState.CONNECTED


@pytest.mark.usefixtures("autojump_clock")
async def test_a_session_is_lost_a_timeout_after_it_was_cut_off_and_not_before() -> None:
    client = KazooClient(hosts="127.0.0.1:1")
    zookeeper = ZooKeeper(client, "127.0.0.1:1", 4_000)
    (tell,) = client.state_listeners
    async with trio.open_nursery() as nursery:
        nursery.start_soon(zookeeper._expire_suspended)
        tell("CONNECTED")
        for _ in range(3):
            tell("SUSPENDED")
            await trio.sleep(3.9)
            assert zookeeper.state is SessionState.SUSPENDED
            tell("CONNECTED")
            await trio.sleep(3.9)
            assert zookeeper.state is SessionState.CONNECTED
        tell("SUSPENDED")
        await trio.sleep(4.1)
        assert zookeeper.state is SessionState.LOST
        nursery.cancel_scope.cancel()
