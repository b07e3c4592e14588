"""What arrives on one connection, and the end of those on which nothing does.

A wait has no timer of its own: to begin and end one takes a fifth of the time of a small request.
One task looks at all connections twice a second instead.
"""

import logging
import math
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio

from broker.framing import FrameBuffer
from broker.metrics import RequestMetrics

_LOG = logging.getLogger(__name__)

RELEASE_AFTER_S: Final = 1.0
"""A connection silent for so long gives its receive buffer back."""
LOOK_EVERY_S: Final = 0.5
LEAST_BETWEEN_LOOKS_S: Final = 0.02


class Incoming:
    """Fills the frame buffer of one connection from its socket."""

    def __init__(
        self,
        peer_socket: socket.socket,
        peer: str,
        recv_into: Callable[[memoryview], int],
        frames: FrameBuffer,
        metrics: RequestMetrics,
        *,
        is_drained: bool,
    ) -> None:
        """`is_drained` unless a request may have come already, as with the end of a handshake."""
        self._peer_socket = peer_socket
        self._peer = peer
        self._recv_into = recv_into
        self._frames = frames
        self._metrics = metrics
        self._is_drained = is_drained
        self._silent_since = math.inf

    async def receive(self) -> bool:
        """Take in what arrives; False when the peer has left, or was silent for too long."""
        if self._is_drained:
            await self._wait_readable()
        else:
            await trio.lowlevel.checkpoint()  # a busy peer leaves the others their turn
        while True:
            space = self._frames.space()
            try:
                received = self._recv_into(space)
            except BlockingIOError:
                await self._wait_readable()
                continue
            self._is_drained = received < len(space)  # to ask again at once would find nothing
            self._frames.grew(received)
            self._metrics.received_bytes += received
            return received > 0

    async def _wait_readable(self) -> None:
        self._silent_since = trio.current_time()
        try:
            await trio.lowlevel.wait_readable(self._peer_socket)
        finally:
            self._silent_since = math.inf

    def look(self, now: float, idle_s: float) -> None:
        """Release the buffer of a silent connection; end one that is silent for `idle_s`.

        To whoever waits for it, the end looks like that of a peer that has left.
        """
        silent_s = now - self._silent_since
        if silent_s >= idle_s:
            _LOG.debug("%s: closed after %.1f s of silence", self._peer, silent_s)
            self._silent_since = math.inf
            with suppress(OSError):  # the peer has reset it, which whoever waits hears as well
                self._peer_socket.shutdown(socket.SHUT_RD)
        elif silent_s >= RELEASE_AFTER_S:
            self._frames.release()


class SilenceWatch:
    """Looks after all connections of a server, of which each may be silent for so long."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._open: set[Incoming] = set()

    def begin(self, incoming: Incoming) -> None:
        """Look after a connection."""
        self._open.add(incoming)

    def end(self, incoming: Incoming) -> None:
        """Look after it no longer: its socket is about to be closed."""
        self._open.discard(incoming)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await trio.sleep(max(LEAST_BETWEEN_LOOKS_S, min(LOOK_EVERY_S, self._idle_s / 4)))
            now = trio.current_time()
            for incoming in tuple(self._open):
                incoming.look(now, self._idle_s)
