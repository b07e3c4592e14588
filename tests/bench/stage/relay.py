"""The limit: a process that does nothing but take bytes from one socket and give them to another.

`python -m tests.bench.stage.relay SOURCE_PORT TARGET_PORT` is that process; `relaying` feeds it
with the batches of a workload, so that it takes turns with mirrors.

It has one processor and what feeds it another: where the system puts them is 3 or 4 GB/s.
"""

import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import trio

from tests.bench.measure.racers import ChildRacer, children_on, first_core, last_core
from tests.bench.measure.results import RELAY
from tests.bench.measure.turns import Entrant
from tests.bench.measure.workloads import GIB, MIB, Workload
from tests.bench.stage.filling import batch_of
from tests.interop.peers.child import start_child

HOST: Final = "127.0.0.1"
CHUNK_BYTES: Final = MIB
WIRE_BYTES: Final = 4 * GIB
"""It is quick: with less, its turns would be over in a fraction of a second."""


@dataclass(slots=True, kw_only=True)
class Relay(ChildRacer):
    """The process between two ports of ours."""

    ports: Sequence[int]

    def start(self) -> None:
        """Start it; it connects to both ports."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.bench.stage.relay", *map(str, self.ports)]
        with children_on(last_core()):
            self._child = start_child("relay", command, log=self.folder / "relay.log")


@asynccontextmanager
async def relaying(folder: Path, workload: Workload) -> AsyncIterator[Entrant]:
    """Feed a relay, once it is started, with a workload's batches until the block ends."""
    chunk, records_each = chunk_of(workload)
    taken = Taken()
    [source] = await trio.open_tcp_listeners(0, host=HOST)
    [target] = await trio.open_tcp_listeners(0, host=HOST)
    ports = [listener.socket.getsockname()[1] for listener in (source, target)]

    async def moved() -> int:
        return taken.count * records_each // len(chunk)

    async with source, target, trio.open_nursery() as nursery:
        nursery.start_soon(_in_thread, source, partial(_feed, chunk=chunk))
        nursery.start_soon(_in_thread, target, partial(_take, taken=taken))
        yield Entrant(
            system=RELAY,
            racer=Relay(folder=folder, ports=ports),
            records=WIRE_BYTES * records_each // len(chunk),
            moved=moved,
            leave=trio.lowlevel.checkpoint,
        )
        nursery.cancel_scope.cancel()


@dataclass(slots=True)
class Taken:
    """The bytes that came out so far."""

    count: int = 0


async def _in_thread(listener: trio.SocketListener, work: Callable[[socket.socket], None]) -> None:
    """Let a thread work on the connection that comes, until the other end of it is killed."""
    stream = await listener.accept()
    connected = socket.socket(fileno=stream.socket.detach())
    connected.settimeout(None)

    def run() -> None:
        with connected, children_on(first_core()), suppress(ConnectionError):
            work(connected)  # until the relay is killed: its turns are over

    await trio.to_thread.run_sync(run)


def _take(connected: socket.socket, taken: Taken) -> None:
    buffer = bytearray(CHUNK_BYTES)
    while found := connected.recv_into(buffer):
        taken.count += found


def _feed(connected: socket.socket, chunk: bytes) -> None:
    while True:
        connected.sendall(chunk)


def chunk_of(workload: Workload) -> tuple[bytes, int]:
    """Return whole batches of about a mebibyte together, and how many records they hold."""
    batch = batch_of(workload)
    count = max(1, CHUNK_BYTES // len(batch))
    return batch * count, count * workload.records_per_batch


def relay(source_port: int, target_port: int) -> None:
    """Take and give until the source is at its end."""
    buffer = memoryview(bytearray(CHUNK_BYTES))
    with (
        socket.create_connection((HOST, source_port)) as source,
        socket.create_connection((HOST, target_port)) as target,
    ):
        while count := source.recv_into(buffer):
            target.sendall(buffer[:count])
        target.shutdown(socket.SHUT_WR)
        target.recv(1)  # stays until it has been looked at a last time


if __name__ == "__main__":
    relay(int(sys.argv[1]), int(sys.argv[2]))
