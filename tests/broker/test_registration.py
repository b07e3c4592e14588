"""A broker comes back into the cluster with every new session, whatever happens meanwhile."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.listeners import Listener
from broker.registration import BrokerRegistrar
from broker.server import Bound
from broker.zookeeper.store import ClusterStore
from broker.zookeeper.tree import BrokerRegistration
from runtime.coordination.zookeeper import SessionState, ZooKeeperUnreachable
from tests.broker.rig import config

LISTENER = Listener(name="PLAINTEXT", host="127.0.0.1", port=9092)
BOUND = [Bound(listener=LISTENER, sockets=())]


class Store:
    """A session that has just begun, in which so many attempts to register fail."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.registered = trio.Event()
        self.endpoints: list[str] = []
        """What was registered, one after the other."""

    async def register(
        self, broker_id: int, endpoints: Sequence[Listener], *_: Any, **__: Any
    ) -> BrokerRegistration:
        await trio.lowlevel.checkpoint()
        if self.failures:
            self.failures -= 1
            raise ZooKeeperUnreachable("it vanished while it was being replaced")
        self.registered.set()
        self.endpoints.append(",".join(map(str, endpoints)))
        return BrokerRegistration(broker_id=broker_id, host="h", port=1, epoch=7)

    @asynccontextmanager
    async def watch_session(self) -> AsyncIterator[trio.MemoryReceiveChannel[SessionState]]:
        send, receive = trio.open_memory_channel[SessionState](1)
        await send.send(SessionState.CONNECTED)
        with send:
            yield receive


async def test_it_tries_until_it_is_registered(autojump_clock: MockClock) -> None:
    store = Store(failures=3)
    registration = BrokerRegistrar(config(), BOUND, cast("ClusterStore", store))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(registration.run)
        with trio.fail_after(60):
            await store.registered.wait()
        nursery.cancel_scope.cancel()
    assert registration.epoch == 7
    assert autojump_clock.current_time() < 5


async def test_it_registers_again_where_it_is_reached_now_and_not_where_it_always_was(
    autojump_clock: MockClock,
) -> None:
    store = Store(failures=0)
    registration = BrokerRegistrar(config(), BOUND, cast("ClusterStore", store))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(registration.run)
        await store.registered.wait()
        registration.advertise(config())
        await wait_all_tasks_blocked()
        store.failures = 1
        far = replace(LISTENER, host="far.example", port=9)
        registration.advertise(config(advertised_listeners=(far,)))
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert autojump_clock.current_time() == 5
    assert store.endpoints == ["PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://far.example:9"]
