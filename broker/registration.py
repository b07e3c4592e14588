"""This broker's name in the cluster: an ephemeral node, renewed with every new session.

It says where clients and brokers reach this one, which may change while the broker runs.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import trio

from broker.config import BrokerConfig
from broker.controller.cluster import UNKNOWN_BROKER_EPOCH
from broker.listeners import EVERYWHERE, Listener
from broker.server import Bound
from broker.zookeeper.store import BrokerIdTaken, ClusterStore
from broker.zookeeper.tree import MalformedNode
from runtime.coordination.zookeeper import SessionState, ZooKeeperFault
from runtime.process import clock

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 0.5
PROBE_S: Final = 1.0
LONGEST_SESSION_S: Final = 60.0


class BrokerRegistrar:
    """Keeps `/brokers/ids/<id>` in place as long as the broker runs."""

    def __init__(
        self, config: BrokerConfig, listeners: Sequence[Bound], store: ClusterStore
    ) -> None:
        self._broker_id = config.broker_id
        self._rack = config.broker_rack
        self._listeners = listeners
        self.endpoints = _advertised(config, listeners)
        self._store = store
        self.epoch = UNKNOWN_BROKER_EPOCH
        """The epoch of the registration as this broker last wrote it."""
        self._registered = trio.Event()
        self._moved = trio.Event()
        self._one_at_a_time = trio.Lock()
        """Of two attempts at once the second would take the first one's node for a stranger's."""

    def advertise(self, config: BrokerConfig) -> None:
        """Tell the cluster where these settings say that this broker is reached."""
        endpoints = _advertised(config, self._listeners)
        if endpoints != self.endpoints:
            _LOG.info("broker %s is reached at %s", self._broker_id, ",".join(map(str, endpoints)))
            self.endpoints = endpoints
            self._moved.set()

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
                    registered is not None
                    and await self._another_answers(registered.host, registered.port)
                ):
                    raise
                _LOG.info("%s; nobody else answers there; waiting for its session to end", error)
                await trio.sleep(RETRY_S)
            else:
                return

    async def run(self) -> None:
        """Register again whenever a new session has begun, or the addresses are others."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_addresses)
            async with self._store.watch_session() as states:
                async for state in states:
                    if state is SessionState.CONNECTED:
                        await self._register_again()
            nursery.cancel_scope.cancel()

    async def _follow_addresses(self) -> None:
        while True:
            await self._moved.wait()
            self._moved = trio.Event()
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
        async with self._one_at_a_time:
            registered = await self._store.register(
                self._broker_id, self.endpoints, self._rack, now_ms=clock.wall_ms()
            )
        self.epoch = registered.epoch
        self._registered.set()

    async def _another_answers(self, host: str, port: int) -> bool:
        """Return whether somebody else listens there.

        A broker that comes back under another name serves at the address of its dead self already.
        """
        with trio.move_on_after(PROBE_S):
            try:
                stream = await trio.open_tcp_stream(host, port)
            except OSError:
                return False
            async with stream:
                return not _is_ours(stream, self._listeners)
        return False

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


def _advertised(config: BrokerConfig, listeners: Sequence[Bound]) -> tuple[Listener, ...]:
    """Return what clients are told: the hosts they can reach and the ports that were taken."""
    told: list[Listener] = []
    for bound in listeners:
        endpoint = config.advertised(bound.listener)
        if endpoint is None:
            continue
        if endpoint.host in EVERYWHERE:
            endpoint = replace(endpoint, host=trio.socket.gethostname())
        told.append(endpoint if endpoint.port else replace(endpoint, port=bound.port))
    return tuple(told)


def _is_ours(stream: trio.SocketStream, listeners: Sequence[Bound]) -> bool:
    """Tell whether a connection leads to one of these listeners, which this process holds."""
    host, port = stream.socket.getpeername()[:2]
    is_local = host == stream.socket.getsockname()[0]
    bound = {
        tuple(listening.socket.getsockname()[:2]) for one in listeners for listening in one.sockets
    }
    return (host, port) in bound or (
        is_local and any((everywhere, port) in bound for everywhere in EVERYWHERE)
    )
