"""A broker comes back into the cluster with every new session, whatever happens meanwhile."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.listeners import Listener
from broker.registration import BrokerRegistrar
from broker.server import Bound, bind
from broker.zookeeper.store import BrokerIdTaken, ClusterStore
from broker.zookeeper.tree import BrokerRegistration
from runtime.coordination.zookeeper import SessionState, ZooKeeperUnreachable
from tests.broker.rig import config

LISTENER = Listener(name="PLAINTEXT", host="127.0.0.1", port=9092)
BOUND = [Bound(listener=LISTENER, sockets=())]


class Store:
    """A session that has just begun, in which so many attempts to register fail."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.holder: tuple[str, int] | None = None
        """Where the broker that has the id until its session ends is registered."""
        self.looks = 0
        self.at_once = 0
        self.registered = trio.Event()
        self.endpoints: list[str] = []
        """What was registered, one after the other."""

    async def register(
        self, broker_id: int, endpoints: Sequence[Listener], *_: Any, **__: Any
    ) -> BrokerRegistration:
        assert not self.at_once
        self.at_once += 1
        await trio.lowlevel.checkpoint()
        self.at_once -= 1
        if self.failures:
            self.failures -= 1
            if self.holder is not None:
                raise BrokerIdTaken("broker.id 0 is in use")
            raise ZooKeeperUnreachable("it vanished while it was being replaced")
        self.registered.set()
        self.endpoints.append(",".join(map(str, endpoints)))
        return BrokerRegistration(broker_id=broker_id, host="h", port=1, epoch=7)

    async def brokers(self, _: list[str]) -> dict[int, BrokerRegistration]:
        await trio.lowlevel.checkpoint()
        self.looks += 1
        if self.holder is None:
            return {}
        host, port = self.holder
        return {0: BrokerRegistration(broker_id=0, host=host, port=port)}

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


async def test_new_addresses_and_a_new_session_do_not_register_at_the_same_time(
    autojump_clock: MockClock,
) -> None:
    """The second of two would find the node of the first, and take it for a stranger's."""
    store = Store(failures=0)
    registration = BrokerRegistrar(config(), BOUND, cast("ClusterStore", store))
    far = replace(LISTENER, host="far.example", port=9)
    registration.advertise(config(advertised_listeners=(far,)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(registration.run)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert store.endpoints == ["PLAINTEXT://far.example:9"] * 2
    assert autojump_clock.current_time() == 1


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
async def test_a_broker_that_is_back_under_another_name_is_not_kept_out_by_itself(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Its dead self is registered at an address that leads to this one."""
    monkeypatch.setattr("broker.registration.RETRY_S", 0.001)
    store = Store(failures=3)
    async with serving(host) as (bound, port):
        store.holder = ("127.0.0.1", port)
        registration = BrokerRegistrar(config(), [bound], cast("ClusterStore", store))
        await registration.register_first()
    assert (store.looks, registration.epoch) == (3, 7)


async def test_a_broker_that_answers_elsewhere_keeps_its_id() -> None:
    store = Store(failures=3)
    async with serving("127.0.0.1") as (bound, _), serving("127.0.0.1") as (_, other_port):
        store.holder = ("127.0.0.1", other_port)
        registration = BrokerRegistrar(config(), [bound], cast("ClusterStore", store))
        with pytest.raises(BrokerIdTaken):
            await registration.register_first()
    assert store.looks == 1


@asynccontextmanager
async def serving(host: str) -> AsyncIterator[tuple[Bound, int]]:
    [bound] = await bind([Listener(name="PLAINTEXT", host=host, port=0)], backlog=5)
    try:
        yield bound, bound.port
    finally:
        for listening in bound.sockets:
            await listening.aclose()
