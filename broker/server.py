"""The listening sockets of one broker, and one task for each connection."""

import logging
import math
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import trio

from broker.apis.api import Api
from broker.config import BrokerConfig
from broker.connection import Connection, SocketLimits
from broker.connection_limits import ConnectionLimits, OpenConnections
from broker.context import Node
from broker.incoming import SilenceWatch
from broker.listeners import CannotListen, Listener
from broker.security.entry import Entrance, IncomingConnection
from broker.security.settings import security_of
from broker.security.tls import HandshakeFailed, reason_of
from broker.sending import PeerGone
from runtime.process.open_files import most_open
from wire.kernel.chosen import walker
from wire.values import frozen

_LOG = logging.getLogger(__name__)


@frozen
class Bound:
    """A listener whose address is taken, on one socket for each family it has."""

    listener: Listener
    sockets: Sequence[trio.SocketListener]

    @property
    def port(self) -> int:
        """Return the port of the first socket, which tells the one chosen for port 0."""
        return int(self.sockets[0].socket.getsockname()[1])


async def bind(listeners: Sequence[Listener], backlog: int) -> list[Bound]:
    """Take the addresses, so that nobody else can. Raises CannotListen."""
    bound: list[Bound] = []
    for listener in listeners:
        try:
            sockets = await trio.open_tcp_listeners(
                listener.port, host=listener.host or None, backlog=backlog
            )
        except OSError as error:
            for opened in bound:
                for taken in opened.sockets:
                    await taken.aclose()
            reason = error.strerror or str(error)
            raise CannotListen(f"listeners: {listener}: cannot listen: {reason}") from error
        bound.append(Bound(listener=listener, sockets=sockets))
    return bound


class Server:
    """Accepts connections and serves each until it ends."""

    def __init__(self, node: Node, apis: Mapping[int, Api], config: BrokerConfig) -> None:
        self._node = node
        self._apis = apis
        self._open = OpenConnections(_limits(config, lambda: node.dynamic.running))
        idle_ms = config.connections_max_idle_ms
        self._limits = SocketLimits(
            largest_request_bytes=config.socket_request_max_bytes,
            idle_s=math.inf if idle_ms < 0 else idle_ms / 1000,
            largest_request_of_strangers_bytes=config.sasl_server_max_receive_size,
            refusal_delay_s=config.connection_failed_authentication_delay_ms / 1000,
            read_run=walker(may_be_native=config.chunk_kernel_enable).read_run,
        )
        self._silence = SilenceWatch(self._limits.idle_s)
        self._entrances = {
            listener.name: _entrance(config, listener, node) for listener in config.listeners
        }

    async def serve(self, listeners: Sequence[Bound]) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._silence.run)
            for bound in listeners:
                entrance = self._entrances[bound.listener.name]
                serve_one = partial(self._serve_connection, entrance)
                nursery.start_soon(trio.serve_listeners, serve_one, list(bound.sockets))

    async def _serve_connection(self, entrance: Entrance, stream: trio.SocketStream) -> None:
        # The plain socket: sendfile needs it, and what can go at once goes without a detour.
        peer_socket = socket.socket(fileno=stream.socket.detach())
        try:
            await self._serve_socket(entrance, peer_socket)
        finally:
            trio.lowlevel.notify_closing(peer_socket)
            peer_socket.close()

    async def _serve_socket(self, entrance: Entrance, peer_socket: socket.socket) -> None:
        try:
            peer = _name_of(peer_socket.getpeername())
        except OSError:
            return  # it left before we looked
        metrics = self._node.metrics
        listener, address = entrance.listener.name, peer.rpartition(":")[0]
        refusal = self._open.why_not(listener, address)
        if refusal is not None:
            self._complain(f"{peer}: refused: {refusal}")
            return
        peer_socket.settimeout(0)  # never blocks
        peer_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        metrics.connections += 1
        self._open.opened(listener, address)
        try:
            entry = await self._admit(entrance, peer_socket, peer)
            if entry is None:
                return
            connection = Connection(peer_socket, peer, self._node, self._apis, self._limits, entry)
            self._silence.begin(connection.incoming)
            try:
                await connection.serve()
            finally:
                self._silence.end(connection.incoming)
            if entry.tls is not None:
                entry.tls.say_goodbye()
        finally:
            metrics.connections -= 1
            self._open.closed(listener, address)

    async def _admit(
        self, entrance: Entrance, peer_socket: socket.socket, peer: str
    ) -> IncomingConnection | None:
        """Return how it came in; who does not is counted, and named in one line."""
        try:
            return await entrance.admit(peer_socket)
        except (HandshakeFailed, OSError, PeerGone) as reason:
            self._node.metrics.failed_tls_handshakes += 1
            listener = entrance.listener.name
            self._complain(f"{peer}: TLS handshake failed on {listener}: {reason}")
        except Exception:  # noqa: BLE001
            # As in `Connection.serve`: a mistake of ours must not take the listener away.
            self._complain(f"{peer}: connection closed: our mistake", _LOG.exception)
        return None

    def _complain(self, text: str, log: Callable[..., None] = _LOG.warning) -> None:
        line = self._limits.log_lines.line(text, trio.current_time())
        if line is not None:
            log("%s", line)


def _entrance(config: BrokerConfig, listener: Listener, node: Node) -> Entrance:
    """Make a listener's entrance. Raises CannotListen."""
    security = security_of(config, listener)
    try:
        for_brokers = node.cluster_brokers.gate(config, listener)
        return Entrance(listener, security, node.scram_users, for_brokers)
    except OSError as fault:
        why = reason_of(fault) if isinstance(fault, ssl.SSLError) else str(fault)
        keystore = "" if security.tls is None else security.tls.keystore
        raise CannotListen(f"listeners: {listener}: TLS files ({keystore}): {why}") from fault


def _limits(config: BrokerConfig, running: Callable[[], BrokerConfig]) -> ConnectionLimits:
    own = {
        name: settings.get("max.connections") for name, settings in config.listener_settings.items()
    }
    return ConnectionLimits(
        most_in_all=lambda: most_open(running().max_connections),
        most_of=lambda address: most_of_address(running(), address),
        of_listener={name: most for name, most in own.items() if most is not None},
    )


def most_of_address(config: BrokerConfig, address: str) -> int:
    """Return how many connections of this address may be open."""
    return config.max_connections_per_ip_overrides.get(address, config.max_connections_per_ip)


def _name_of(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"{host}:{port}"
