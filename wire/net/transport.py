"""Bytes to and from one peer without waiting, and waiting as a step of its own.

A connection writes from whichever task has something to send, so writing must not be able to stop
half way in a task that may be cancelled: `send_now` takes what the socket takes and returns. TLS
is another `Dial`, nothing else.
"""

import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from fcntl import ioctl
from functools import cache
from struct import Struct
from termios import FIONREAD, TIOCOUTQ
from typing import ClassVar, Final, Protocol, TypeAlias

import trio

from wire.net.client_settings import ORDINARY, SYSTEMS_OWN, SocketSettings
from wire.net.errors import BrokerUnreachable
from wire.primitives import Buffer

Address: TypeAlias = tuple[str, int]

SEND_BYTES: Final = 4 * 1024 * 1024
"""What may wait in a socket to be sent, where the system lets that be set (net.core.wmem_max, since
Linux 6.16). By itself it gives half of it: twice as many wake-ups for a stream of requests.

Measured at 100 KiB batches: fewer wake-ups (2,130 a GiB before, 1,180 after), huge pages and
answers that are settled together took 14 % off the mirror's processor time. A thread that receives
by MSG_WAITALL gained nothing (1.06 at 100 KiB, 0.96 at lz4). `splice` through pipes is dearer than
two copies, because it pays for each page. Sleeping for 4 ms instead of waiting for room to send was
8-20 % dearer."""
_INT: Final = Struct("i")
_DISCARD: Final = Struct("ii").pack(1, 0)
"""For SO_LINGER: closing ends the connection by a reset."""
MAX_PARTS_AT_ONCE: Final = min(os.sysconf("SC_IOV_MAX"), 1024)


class Transport(Protocol):
    """A byte stream both ways. Faults are OSError; after `close`, trio.ClosedResourceError."""

    waits_for_least: ClassVar[bool]
    """Whether `receive_into` knows how much has come before it is read."""

    def send_now(self, parts: Sequence[Buffer]) -> int:
        """Hand over as many bytes as go without waiting, and return how many went: maybe 0."""
        ...

    async def wait_sendable(self) -> None:
        """Wait until `send_now` would take something."""
        ...

    async def receive_into(self, buffer: memoryview, least: int = 1) -> int:
        """Wait for bytes, put them at the start of `buffer`, return how many; 0 at the end.

        That there are `least` is waited for, if it `waits_for_least`; fewer may come all the same.
        """
        ...

    def waiting_bytes(self) -> tuple[int, int]:
        """Return how many bytes the peer's system has not acknowledged, and how many are unread."""
        ...

    def close(self) -> None:
        """Close at once and wake who waits; may be called again."""
        ...


Dial: TypeAlias = Callable[[Address], Awaitable[Transport]]
"""Connects, and raises BrokerUnreachable where that cannot be done."""


class SocketTransport:
    """Plain TCP, on a socket that never blocks."""

    __slots__ = ("_closed", "_least", "_socket")
    waits_for_least: ClassVar = True

    def __init__(self, connected: socket.socket) -> None:
        connected.settimeout(0)
        self._socket = connected
        self._closed = False
        self._least = 1

    def send_now(self, parts: Sequence[Buffer]) -> int:
        if self._closed:
            raise trio.ClosedResourceError
        try:
            return self._socket.sendmsg(parts[:MAX_PARTS_AT_ONCE])
        except BlockingIOError:
            return 0

    async def wait_sendable(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError
        await trio.lowlevel.wait_writable(self._socket)

    async def receive_into(self, buffer: memoryview, least: int = 1) -> int:
        while True:
            if self._closed:
                raise trio.ClosedResourceError
            if least != self._least:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
                self._least = least
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv_into(buffer)
            except BlockingIOError:
                continue

    def waiting_bytes(self) -> tuple[int, int]:
        return (0, 0) if self._closed else waiting_in(self._socket)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            close_socket(self._socket, discards=True)


def waiting_in(connected: socket.socket) -> tuple[int, int]:
    """Return how many bytes of a socket are not acknowledged yet, and how many are unread."""
    unacknowledged, unread = (
        _INT.unpack(ioctl(connected, what, bytes(_INT.size)))[0] for what in (TIOCOUTQ, FIONREAD)
    )
    return unacknowledged, unread


def close_socket(connected: socket.socket, *, discards: bool) -> None:
    """Close at once; with `discards` take back what the system has not delivered yet.

    It would go on for minutes to deliver what nobody waits for an answer to any more, and who
    closes because another may write from now on must not be heard after that one.
    """
    trio.lowlevel.notify_closing(connected)
    if discards and _INT.unpack(ioctl(connected, TIOCOUTQ, bytes(_INT.size)))[0]:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD)
    connected.close()


def _reason(fault: OSError) -> str:
    """Return why the last attempt failed; trio's own text only says that all of them did."""
    cause = fault.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[-1]
    known = cause if isinstance(cause, OSError) else fault
    # trio adds the address to the text; numbers below zero are the resolver's, with their own.
    number = known.errno or 0
    return os.strerror(number) if number > 0 else known.strerror or str(known)


@cache
def _may_set_send_bytes() -> bool:
    # Setting it is for good and turns off the system's own growing, so another socket tries it.
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        return trial.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 2 * SEND_BYTES


async def connect_socket(address: Address, settings: SocketSettings = ORDINARY) -> socket.socket:
    """Connect by TCP, trying each of the host's addresses; BrokerUnreachable when its time is over.

    The system takes back what the other host has not acknowledged after `undelivered_ms`, and ends
    the connection, also while this process is stopped (tcp(7), TCP_USER_TIMEOUT).
    """
    host, port = address
    try:
        with trio.fail_after(settings.connect_timeout_s):
            stream = await trio.open_tcp_stream(host, port)
    except OSError as fault:
        raise BrokerUnreachable(f"{host}:{port}: {_reason(fault)}") from fault
    except UnicodeError as fault:  # the name comes from a broker, or out of somebody's file
        raise BrokerUnreachable(f"{host}:{port}: no host can have that name: {fault}") from fault
    except trio.TooSlowError as fault:
        raise BrokerUnreachable(
            f"{host}:{port}: no connection within {settings.connect_timeout_s:g} s"
        ) from fault
    connected = socket.socket(fileno=stream.socket.detach())
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # trio has lowered it to 128 KiB: a request of megabytes would take a wake-up for each of those.
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, SYSTEMS_OWN)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, settings.undelivered_ms)
    _set_buffers(connected, settings)
    return connected


def _set_buffers(connected: socket.socket, settings: SocketSettings) -> None:
    ours = SEND_BYTES if _may_set_send_bytes() else -1
    for option, size in (
        (socket.SO_SNDBUF, ours if settings.send_bytes is None else settings.send_bytes),
        (socket.SO_RCVBUF, settings.receive_bytes),
    ):
        if size is not None and size > 0:
            connected.setsockopt(socket.SOL_SOCKET, option, size)


async def dial_tcp(address: Address, settings: SocketSettings = ORDINARY) -> Transport:
    """Connect in the clear; fails as `connect_socket` does."""
    return SocketTransport(await connect_socket(address, settings))
