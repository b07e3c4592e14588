"""Records at a steady rate on one side, and when each of them is seen on the other."""

import os
from collections.abc import Collection, Container
from dataclasses import dataclass, field
from typing import Final

import trio

from runtime.process.clock import now_ms
from tests.bench.measure.ledger import RunFailed
from tests.bench.stage.served import Served, ends
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.net import Cluster, open_cluster
from wire.net.operations import append, read_partition
from wire.record_batch import Record, build_batch, iterate_records

MARK_BYTES: Final = 8
NUMBER_BYTES: Final = 8
FOREVER: Final = 2**62
LOOK_S: Final = 0.05


@dataclass(slots=True, kw_only=True)
class Stream:
    """Numbered records of one partition, on their way."""

    record_bytes: int
    per_batch: int = 1
    mark: bytes = field(default_factory=lambda: os.urandom(MARK_BYTES))
    """What its records begin with: a stream that was measured in vain lies in the same topic."""
    sent_at: list[float] = field(default_factory=list)
    """By number: when it was handed to the client."""
    seen: list[tuple[int, float]] = field(default_factory=list)
    """Number and time, in the order of the target's log."""
    acknowledged: set[int] = field(default_factory=set)
    """Numbers that lie in the source's log: an append that was given up may or may not."""
    arrived: set[int] = field(default_factory=set)
    """Different numbers that have been seen."""

    def next_batch(self, now_s: float) -> bytes:
        """Return the next records as one batch; they are on their way from now on."""
        first = len(self.sent_at)
        stamp = now_ms()
        padding = bytes(self.record_bytes - MARK_BYTES - NUMBER_BYTES)
        self.sent_at += [now_s] * self.per_batch
        return build_batch(
            [
                Record(place, stamp, None, self.mark + number.to_bytes(NUMBER_BYTES) + padding, ())
                for place, number in enumerate(range(first, len(self.sent_at)))
            ],
            compression=Compression.NONE,
        )

    def see(self, value: bytes, now_s: float) -> None:
        """Note a record that came out, if it is one of this stream."""
        if not value.startswith(self.mark):
            return
        number = int.from_bytes(value[MARK_BYTES : MARK_BYTES + NUMBER_BYTES])
        self.seen.append((number, now_s))
        self.arrived.add(number)

    def latencies_ms(self, numbers: Container[int]) -> list[float]:
        """Return how long each of these records took that came out."""
        return [1000 * (at - self.sent_at[place]) for place, at in self.seen if place in numbers]


async def send(
    stream: Stream,
    source: Served,
    topic: str,
    batches_per_s: float,
    ended: trio.Event | None = None,
) -> None:
    """Append batches at that rate until `ended`; a late one does not delay those behind it.

    Returns when what was under way by then is acknowledged. Raises RunFailed for what is refused.
    """
    async with (
        open_cluster(source.addresses, client_id="bench-source") as cluster,
        trio.open_nursery() as nursery,
    ):
        await cluster.leader(topic, 0)
        due = trio.current_time()
        while ended is None or not ended.is_set():
            await trio.sleep_until(due)
            first = len(stream.sent_at)
            batch = stream.next_batch(due)
            numbers = range(first, len(stream.sent_at))
            nursery.start_soon(_append, stream, numbers, cluster, (topic, batch))
            due += 1 / batches_per_s


async def receive(stream: Stream, target: Served, topic: str) -> None:
    """Read the topic, once it is there, until cancelled."""
    async with open_cluster(target.addresses, client_id="bench-target") as cluster:
        while True:
            if sum(await ends(cluster, topic, 1)):
                break
            await trio.sleep(LOOK_S)
        async for _, batch in read_partition(cluster, topic, 0, 0, FOREVER):
            now = trio.current_time()
            for record in iterate_records(batch):
                stream.see(record.value or b"", now)


async def wait_arrived(stream: Stream, numbers: Collection[int], limit_s: float) -> None:
    """Wait until each of these records has come out. Raises RunFailed."""
    missing = set(numbers)
    with trio.move_on_after(limit_s):
        while missing:
            missing -= stream.arrived
            await trio.sleep(LOOK_S)
        return
    found = len(numbers) - len(missing)
    raise RunFailed(f"{found} of {len(numbers)} records within {limit_s:g} s")


async def _append(
    stream: Stream, numbers: range, cluster: Cluster, to_append: tuple[str, bytes]
) -> None:
    topic, batch = to_append
    answer = await append(cluster, topic, 0, batch)
    if answer.error_code != ErrorCode.NONE:
        raise RunFailed(f"produce to {topic}-0: {ErrorCode(answer.error_code).name}")
    stream.acknowledged.update(numbers)
