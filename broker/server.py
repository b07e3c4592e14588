"""The listening sockets of one broker, and one task for each connection."""

import logging
import math
import resource
import socket
from collections.abc import Mapping, Sequence

import trio

from broker.apis.api import Api
from broker.config import BrokerConfig, Listener
from broker.connection import Connection, Limits
from broker.context import Node

_LOG = logging.getLogger(__name__)


class CannotListen(RuntimeError):
    """An address cannot be listened on; the message names it and says why."""


async def bind(listeners: Sequence[Listener], backlog: int) -> list[trio.SocketListener]:
    """Take the addresses, so that nobody else can. Raises CannotListen."""
    bound: list[trio.SocketListener] = []
    for listener in listeners:
        try:
            bound += await trio.open_tcp_listeners(
                listener.port, host=listener.host or None, backlog=backlog
            )
        except OSError as error:
            for opened in bound:
                await opened.aclose()
            reason = error.strerror or str(error)
            raise CannotListen(f"listeners: {listener}: cannot listen: {reason}") from error
    return bound


def bound_port(listeners: Sequence[trio.SocketListener]) -> int:
    """Return the port of the first socket, which tells the one chosen for port 0."""
    return int(listeners[0].socket.getsockname()[1])


class Server:
    """Accepts connections and serves each until it ends."""

    def __init__(self, node: Node, apis: Mapping[int, Api], config: BrokerConfig) -> None:
        self._node = node
        self._apis = apis
        self._asked_connections = config.max_connections
        idle_ms = config.connections_max_idle_ms
        self._limits = Limits(
            largest_request_bytes=config.socket_request_max_bytes,
            idle_s=math.inf if idle_ms < 0 else idle_ms / 1000,
        )

    async def serve(self, listeners: Sequence[trio.SocketListener]) -> None:
        """Serve until cancelled."""
        allow_many_files()
        await trio.serve_listeners(self._serve_connection, list(listeners))

    async def _serve_connection(self, stream: trio.SocketStream) -> None:
        # The plain socket: sendfile needs it, and what can go at once goes without a detour.
        peer_socket = socket.socket(fileno=stream.socket.detach())
        try:
            await self._serve_socket(peer_socket)
        finally:
            trio.lowlevel.notify_closing(peer_socket)
            peer_socket.close()

    async def _serve_socket(self, peer_socket: socket.socket) -> None:
        try:
            peer = _name_of(peer_socket.getpeername())
        except OSError:
            return  # it left before we looked
        metrics = self._node.metrics
        most = most_connections(self._asked_connections)
        if metrics.connections >= most:
            self._complain(f"{peer}: refused: {metrics.connections} connections are open")
            return
        peer_socket.settimeout(0)  # never blocks
        peer_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        metrics.connections += 1
        try:
            connection = Connection(
                peer_socket, peer, self._node, self._apis, self._limits, metrics
            )
            await connection.serve()
        finally:
            metrics.connections -= 1

    def _complain(self, text: str) -> None:
        line = self._limits.log_lines.line(text, trio.current_time())
        if line is not None:
            _LOG.warning("%s", line)


def most_connections(asked: int) -> int:
    """Return how many connections may be open: a quarter of all files is left for the logs.

    Without that, connections that do nothing would take the files which the logs need, and a log
    folder that cannot open a file is taken for broken.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return asked if files == resource.RLIM_INFINITY else min(asked, files * 3 // 4)


def allow_many_files() -> None:
    """Raise this process's limit of open files to what the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _name_of(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"{host}:{port}"
