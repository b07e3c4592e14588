"""A transport without sockets, for tests in virtual time; its far end is a trio stream."""

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar

import trio

from tests.doubles.fake_cluster import FakeBroker, FakeCluster
from wire.net.connecting import ConnectionSettings, connect
from wire.net.connection import Connection
from wire.net.transport import Address, Transport
from wire.primitives import Buffer


class MemoryTransport:
    """The client's end. Takes at most `room` bytes at once, if that is given."""

    waits_for_least: ClassVar = True

    def __init__(
        self, outgoing: trio.MemorySendChannel[bytes], incoming: trio.MemoryReceiveChannel[bytes]
    ) -> None:
        self._outgoing = outgoing
        self._incoming = incoming
        self._held = b""
        self._closed = trio.Event()
        self.room: int | None = None
        self.unacknowledged_bytes = 0
        """Of what was sent: on its way still, as over a slow line."""
        self.receptions = 0
        """How many times bytes were waited for."""

    def send_now(self, parts: Sequence[Buffer]) -> int:
        if self._closed.is_set():
            raise trio.ClosedResourceError
        data = b"".join(parts)[: self.room]
        try:
            if data:
                self._outgoing.send_nowait(data)
        except trio.BrokenResourceError:
            raise BrokenPipeError("the far end is closed") from None
        return len(data)

    async def wait_sendable(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.room == 0:
            await self._closed.wait()
        if self._closed.is_set():
            raise trio.ClosedResourceError

    async def receive_into(self, buffer: memoryview, least: int = 1) -> int:
        self.receptions += 1
        while len(self._held) < least:
            try:
                self._held += await self._incoming.receive()
            except trio.EndOfChannel:
                break
        size = min(len(buffer), len(self._held))
        buffer[:size], self._held = self._held[:size], self._held[size:]
        return size

    def waiting_bytes(self) -> tuple[int, int]:
        return self.unacknowledged_bytes, len(self._held)

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._outgoing.close()
            self._incoming.close()


class _FarEnd(trio.abc.Stream):
    def __init__(
        self, outgoing: trio.MemorySendChannel[bytes], incoming: trio.MemoryReceiveChannel[bytes]
    ) -> None:
        self._outgoing = outgoing
        self._incoming = incoming

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._outgoing.send(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        assert max_bytes is None
        try:
            return await self._incoming.receive()
        except trio.EndOfChannel:
            return b""

    async def aclose(self) -> None:
        await self._outgoing.aclose()
        await self._incoming.aclose()


def memory_transport() -> tuple[MemoryTransport, trio.abc.Stream]:
    """Return both ends of a connection."""
    to_broker, at_broker = trio.open_memory_channel[bytes](math.inf)
    to_client, at_client = trio.open_memory_channel[bytes](math.inf)
    transport = MemoryTransport(to_broker, at_client)
    checked: Transport = transport
    assert checked is transport
    return transport, _FarEnd(to_client, at_broker)


SETTINGS = ConnectionSettings(client_id="test")


@asynccontextmanager
async def connected_in_memory(
    settings: ConnectionSettings = SETTINGS,
) -> AsyncIterator[tuple[FakeBroker, Connection, MemoryTransport]]:
    """Give the same without sockets, for virtual time."""
    cluster = FakeCluster()
    cluster.brokers[0] = broker = FakeBroker(cluster, 0)
    transport, far_end = memory_transport()

    async def dial(_: Address) -> Transport:
        return transport

    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.serve, far_end)
        settings = ConnectionSettings(
            client_id=settings.client_id,
            request_timeout_ms=settings.request_timeout_ms,
            max_response_bytes=settings.max_response_bytes,
            dial=dial,
        )
        yield broker, await connect(nursery, ("memory", 0), settings), transport
        nursery.cancel_scope.cancel()
