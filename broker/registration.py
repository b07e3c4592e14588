"""This broker's name in the cluster: an ephemeral node, renewed with every new session."""

import logging
from collections.abc import Sequence
from typing import Final

import trio

from broker.controller.cluster import UNKNOWN_BROKER_EPOCH
from broker.listeners import Listener
from broker.zookeeper.store import BrokerIdTaken, ClusterStore
from broker.zookeeper.tree import MalformedNode
from runtime.coordination.zookeeper import SessionState, ZooKeeperFault
from runtime.process import clock

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 0.5
PROBE_S: Final = 1.0
LONGEST_SESSION_S: Final = 60.0


class Registration:
    """Keeps `/brokers/ids/<id>` in place as long as the broker runs."""

    def __init__(
        self,
        broker_id: int,
        endpoints: Sequence[Listener],
        rack: str | None,
        store: ClusterStore,
    ) -> None:
        self._broker_id = broker_id
        self._endpoints = endpoints
        self._rack = rack
        self._store = store
        self.epoch = UNKNOWN_BROKER_EPOCH
        """Of the registration as this broker last wrote it."""
        self._registered = trio.Event()

    async def register_first(self) -> None:
        """Register, or raise BrokerIdTaken when another broker lives under this id.

        A dead one's registration goes with its session; that is waited for.
        """
        deadline = trio.current_time() + LONGEST_SESSION_S
        while True:
            try:
                await self._register()
            except BrokerIdTaken as error:
                holder = await self._store.brokers([str(self._broker_id)])
                registered = holder.get(self._broker_id)
                is_late = trio.current_time() > deadline
                if is_late or (
                    registered is not None and await _answers(registered.host, registered.port)
                ):
                    raise
                _LOG.info("%s, which does not answer; waiting for its session to end", error)
                await trio.sleep(RETRY_S)
            else:
                return

    async def run(self) -> None:
        """Register again whenever a new session has begun."""
        async with self._store.watch_session() as states:
            async for state in states:
                if state is SessionState.CONNECTED:
                    await self._register_again()

    async def _register_again(self) -> None:
        """Register, however often ZooKeeper has to be asked: nothing else would try again."""
        while True:
            try:
                await self._register()
            except (ZooKeeperFault, MalformedNode) as fault:
                _LOG.warning("not registered: %s; trying again", fault)
                await trio.sleep(RETRY_S)
            else:
                return

    async def _register(self) -> None:
        registered = await self._store.register(
            self._broker_id, self._endpoints, self._rack, now_ms=clock.wall_ms()
        )
        self.epoch = registered.epoch
        self._registered.set()

    async def is_present(self, epoch: int) -> bool:
        """Say whether who names this epoch speaks of the present registration, or a newer one.

        A controller hears of a registration before its broker does, and one that was deposed, or a
        request that was long under way, speaks of an earlier life (KIP-380). Waits until there is
        a registration. A controller that names none, as before KIP-380, is believed.
        """
        if epoch == UNKNOWN_BROKER_EPOCH:
            return True
        await self._registered.wait()
        return epoch >= self.epoch

    async def unregister(self) -> None:
        """Leave the cluster."""
        await self._store.unregister(self._broker_id)


async def _answers(host: str, port: int) -> bool:
    """Return whether somebody listens there."""
    with trio.move_on_after(PROBE_S):
        try:
            stream = await trio.open_tcp_stream(host, port)
        except OSError:
            return False
        await stream.aclose()
        return True
    return False
