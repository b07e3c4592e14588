"""How long a record is on its way at a steady rate: through a mirror, or through one broker."""

from dataclasses import dataclass
from typing import Final

import trio

from tests.bench.figures import percentile
from tests.bench.ledger import Ledger
from tests.bench.results import MIRROR_P50, MIRROR_P99
from tests.bench.served import Served, create_topic
from tests.bench.stage import Stage
from tests.bench.steady import Stream, receive, send, wait_seen
from tests.bench.workloads import KIB

BENCHES: Final = (MIRROR_P50, MIRROR_P99)
TOPIC: Final = "bench-latency"
COMES_UP_S: Final = 120
ARRIVES_S: Final = 60
WARM_UP_S: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Single records at a rate, measured for a while after a warm-up."""

    per_s: int
    measured_s: float
    record_bytes: int = KIB

    @property
    def name(self) -> str:
        return f"1 KiB, {self.per_s}/s, batch 1 record, 1p"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Percentiles in milliseconds, from handing a record to the client until reading it."""

    p50: float
    p99: float


def mirror_latency(stage: Stage, system: str, rate: Rate, ledger: Ledger) -> Latency:
    """Run one mirror under a steady rate. Raises one of `ledger.FAULTS`."""
    names = stage.next_names()
    topic = f"{TOPIC}-{names.source}"
    create_topic(stage.source, topic, 1)
    mirror = stage.mirror(system, names, [topic])
    on_target = names.topic_on_target(system, topic)
    try:
        mirror.start()
        return ledger.run(measure, rate, (stage.source, topic), (stage.target, on_target))
    finally:
        mirror.kill()
        stage.clean()


async def measure(rate: Rate, source: tuple[Served, str], target: tuple[Served, str]) -> Latency:
    """Send at the rate into one topic, read the other, and return the percentiles."""
    stream = Stream(record_bytes=rate.record_bytes)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive, stream, *target)
        nursery.start_soon(send, stream, *source, rate.per_s)
        await wait_seen(stream, 1, COMES_UP_S)
        await trio.sleep(WARM_UP_S)
        first = len(stream.sent_at)
        await trio.sleep(rate.measured_s)
        last = len(stream.sent_at)
        await wait_seen(stream, last, ARRIVES_S)
        nursery.cancel_scope.cancel()
    taken = stream.latencies_ms(range(first, last))
    return Latency(p50=percentile(taken, 0.5), p99=percentile(taken, 0.99))
