"""A broker comes back into the cluster with every new session, whatever happens meanwhile."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import trio
from trio.testing import MockClock

from broker.listeners import Listener
from broker.registration import Registration
from broker.zookeeper.store import ClusterStore
from broker.zookeeper.tree import BrokerRegistration
from runtime.coordination.zookeeper import SessionState, ZooKeeperUnreachable

LISTENER = Listener(name="PLAINTEXT", host="127.0.0.1", port=9092)


class Store:
    """A session that has just begun, in which so many attempts to register fail."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.registered = trio.Event()

    async def register(self, broker_id: int, *_: Any, **__: Any) -> BrokerRegistration:
        await trio.lowlevel.checkpoint()
        if self.failures:
            self.failures -= 1
            raise ZooKeeperUnreachable("it vanished while it was being replaced")
        self.registered.set()
        return BrokerRegistration(broker_id=broker_id, host="h", port=1, epoch=7)

    @asynccontextmanager
    async def watch_session(self) -> AsyncIterator[trio.MemoryReceiveChannel[SessionState]]:
        send, receive = trio.open_memory_channel[SessionState](1)
        await send.send(SessionState.CONNECTED)
        with send:
            yield receive


async def test_it_tries_until_it_is_registered(autojump_clock: MockClock) -> None:
    store = Store(failures=3)
    registration = Registration(1, [LISTENER], None, cast("ClusterStore", store))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(registration.run)
        with trio.fail_after(60):
            await store.registered.wait()
        nursery.cancel_scope.cancel()
    assert registration.epoch == 7
    assert autojump_clock.current_time() < 5
