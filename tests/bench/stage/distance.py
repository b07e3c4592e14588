"""A site that is far away: a process that keeps each byte back for a while, in both directions.

`python -m tests.bench.stage.distance LISTEN_PORT TARGET_PORT ONE_WAY_MS` is that process. It delays
and does not lose, reorder or narrow; what the kernel does to a real long line it does not imitate.

It works on the processors that everything measured works on, so it takes a piece each millisecond,
not one for all that comes. It must not take fewer: with one each 4 ms ours made 257 MB/s of 375.
"""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from runtime.process.ports import free_port
from tests.bench.stage.clusters import run_apache
from tests.bench.stage.served import PERISHABLE, Served
from tests.interop.peers.child import start_child
from wire.net.buffers import BufferPool
from wire.net.client_settings import SYSTEMS_OWN
from wire.net.transport import connect_socket

HOST: Final = "127.0.0.1"
CHUNK_BYTES: Final = 1024 * 1024
MOST_CHUNKS: Final = 256
"""Under way in each direction of a connection, and TCP holds back what comes then."""
WAITING_BYTES: Final = 2 * CHUNK_BYTES
GATHER_S: Final = 0.001
"""Bytes gather for so long before they are taken, and are kept back for so much longer."""
SYSTEMS_BUFFER: Final = {"socket.send.buffer.bytes": "-1"}
"""A broker whose clients are far away needs more than the 100 KiB of Kafka's default. Of those the
delaying process gets 256 KiB at once, as it acknowledges what it takes: 145 MB/s a connection."""
LISTENS: Final = "listens"
COMES_UP_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class FarBroker:
    """A broker that all its clients reach by the delaying process only."""

    port: int
    pids: dict[int, int]

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [(HOST, self.port)]


@contextmanager
def run_far_apache(folder: Path, name: str, round_trip_ms: int) -> Iterator[Served]:
    """Run one Apache Kafka broker that is so far away. Raises PeerUnavailable or PeerFailed."""
    port = free_port()
    advertised = {"advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}
    settings = {**PERISHABLE, **advertised, **SYSTEMS_BUFFER}
    with run_apache(folder, name, settings=settings) as broker:
        [(_, real_port)] = broker.addresses
        command = [sys.executable, "-m", "tests.bench.stage.distance"]
        command += [str(port), str(real_port), str(round_trip_ms / 2)]
        child = start_child("distance", command, log=folder / f"{name}-distance.log")
        try:
            child.wait_until(lambda: LISTENS in child.said(), timeout_s=COMES_UP_S)
            yield FarBroker(port=port, pids=broker.pids)
        finally:
            child.kill()


async def serve(
    listen_port: int,
    target_port: int,
    one_way_s: float,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Take connections until cancelled, and give each its own one to the target, delayed.

    Starts by reporting the port it listens on, which is a free one for port 0.
    """

    async def one(near: trio.SocketStream) -> None:
        connected = trio.socket.from_stdlib_socket(await connect_socket((HOST, target_port)))
        async with near, trio.SocketStream(connected) as far:
            _widen(near)
            _widen(far)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_carry, near, far, one_way_s)
                    nursery.start_soon(_carry, far, near, one_way_s)
            except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # one side hung up: so does the other

    listeners = await trio.open_tcp_listeners(listen_port, host=HOST)
    task_status.started(listeners[0].socket.getsockname()[1])
    await trio.serve_listeners(one, listeners)


def _widen(stream: trio.SocketStream) -> None:
    """Let as much wait in the socket as a line of this length holds while nobody looks."""
    # By itself it grows by how fast the reader is, and this one comes every few milliseconds.
    # To ask for much at once makes room for it (tcp_set_rcvlowat), which stays.
    for least in (WAITING_BYTES, 1):
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
    # trio lets 128 KiB wait unsent: a piece would take a wake-up for each of those.
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, SYSTEMS_OWN)


async def _carry(source: trio.SocketStream, target: trio.SocketStream, one_way_s: float) -> None:
    """Bring everything over, each piece so long after it came; then say that it was all."""
    under_way, arriving = trio.open_memory_channel[tuple[float, memoryview]](MOST_CHUNKS)
    buffers = BufferPool(CHUNK_BYTES * MOST_CHUNKS)

    async def take() -> None:
        async with under_way:
            buffer = buffers.take(CHUNK_BYTES)
            while size := await source.socket.recv_into(buffer):
                await under_way.send((trio.current_time() + one_way_s, buffer[:size]))
                if size < CHUNK_BYTES:
                    await trio.sleep(GATHER_S)
                buffer = buffers.take(CHUNK_BYTES)

    async def give() -> None:
        async with arriving:
            async for due, data in arriving:
                await trio.sleep_until(due)
                await target.send_all(data)
        await target.send_eof()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        nursery.start_soon(give)


async def _main(listen_port: int, target_port: int, one_way_ms: float) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, listen_port, target_port, one_way_ms / 1000)
        print(LISTENS, flush=True)


if __name__ == "__main__":
    trio.run(_main, int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
