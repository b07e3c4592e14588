"""The limit: a process that does nothing but take bytes from one socket and give them to another.

`python -m tests.bench.relay SOURCE_PORT TARGET_PORT` is that process; `run_relay` feeds it with
the batches of a workload, and measures it as a mirror is measured.
"""

import socket
import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Final

import trio

from tests.bench.figures import Sample, Throughput, throughput
from tests.bench.filling import batch_of
from tests.bench.ledger import Ledger
from tests.bench.processes import cpu_and_memory
from tests.bench.workloads import GIB, MIB, Workload
from tests.interop.peers.child import start_child

HOST: Final = "127.0.0.1"
CHUNK_BYTES: Final = MIB
LEAST_WIRE_BYTES: Final = 4 * GIB
"""It is quick: with less, a run would be over in a fraction of a second."""
LOOK_S: Final = 0.02
LIMIT_S: Final = 120


def run_relay(folder: Path, workload: Workload, ledger: Ledger) -> Throughput:
    """Relay a workload's batches over loopback and return the figures per value byte."""
    samples, records = ledger.run(_run_relay, folder, workload)
    return throughput(
        samples,
        records=records,
        value_bytes=records * workload.record_bytes,
        calm=ledger.neighbours.calm(samples[0].at_s, samples[-1].at_s),
    )


async def _run_relay(folder: Path, workload: Workload) -> tuple[list[Sample], int]:
    folder.mkdir(parents=True, exist_ok=True)
    chunk, records_each = chunk_of(workload)
    repeats = -(-LEAST_WIRE_BYTES // len(chunk))
    [source] = await trio.open_tcp_listeners(0, host=HOST)
    [target] = await trio.open_tcp_listeners(0, host=HOST)
    ports = [str(listener.socket.getsockname()[1]) for listener in (source, target)]
    command = [sys.executable, "-m", "tests.bench.relay", *ports]
    child = start_child("relay", command, log=folder / "relay.log")
    try:
        with trio.fail_after(LIMIT_S):
            async with (
                await source.accept() as feed,
                await target.accept() as sink,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(_feed, feed, chunk, repeats)
                samples = await _take(sink, repeats * len(chunk), child.pid)
    finally:
        child.kill()
        await source.aclose()
        await target.aclose()
    records = repeats * records_each
    by_record = [
        replace(look, records=look.records * records // (repeats * len(chunk))) for look in samples
    ]
    return by_record, records


async def _take(sink: trio.SocketStream, wanted: int, pid: int) -> list[Sample]:
    """Take so many bytes, and look at the relay now and then; `records` are bytes here."""
    samples: list[Sample] = []
    taken, due = 0, monotonic()
    while taken < wanted:
        taken += len(await sink.receive_some(CHUNK_BYTES))
        now = monotonic()
        if now >= due or taken == wanted:
            due = now + LOOK_S
            cpu_s, resident = cpu_and_memory(pid)
            samples.append(Sample(at_s=now, records=taken, cpu_s=cpu_s, resident_bytes=resident))
    return samples


def chunk_of(workload: Workload) -> tuple[bytes, int]:
    """Return whole batches of about a mebibyte together, and how many records they hold."""
    batch = batch_of(workload)
    count = max(1, CHUNK_BYTES // len(batch))
    return batch * count, count * workload.records_per_batch


async def _feed(stream: trio.SocketStream, chunk: bytes, repeats: int) -> None:
    for _ in range(repeats):
        await stream.send_all(chunk)
    await stream.send_eof()


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
