"""How long a record is on its way at a steady rate: through a mirror, or through one broker."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Final, TypeAlias

import trio

from tests.bench.calm import ALWAYS, Span, is_within, share_of
from tests.bench.figures import LEAST_CALM, percentile
from tests.bench.ledger import Ledger
from tests.bench.results import MIRROR_P50, MIRROR_P99
from tests.bench.served import Served, create_topic
from tests.bench.stage import Stage
from tests.bench.steady import Stream, receive, send, wait_arrived
from tests.bench.workloads import KIB

BENCHES: Final = (MIRROR_P50, MIRROR_P99)
TOPIC: Final = "bench-latency"
COMES_UP_S: Final = 120
ARRIVES_S: Final = 60

Place: TypeAlias = tuple[Served, str]
"""A topic of one partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Records at a rate, measured for a while after a warm-up."""

    per_s: int
    measured_s: float
    per_batch: int = 1
    record_bytes: int = KIB
    warm_up_s: float = 3.0

    @property
    def name(self) -> str:
        batch = "1 record" if self.per_batch == 1 else f"{self.per_batch} records"
        return f"1 KiB, {self.per_s:,}/s, batch {batch}, 1p"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Percentiles in milliseconds, from handing a record to the client until reading it."""

    p50: float
    p99: float


@contextmanager
def mirror_for_rates(
    stage: Stage, system: str, rates: Sequence[Rate]
) -> Iterator[list[tuple[Place, Place]]]:
    """Run one mirror until the block ends; give for each rate where it comes in and goes out.

    Raises one of `ledger.FAULTS`.
    """
    names = stage.next_names()
    topics = [f"{TOPIC}-{names.source}-{number}" for number, _ in enumerate(rates)]
    for topic in topics:
        create_topic(stage.source, topic, 1)
    mirror = stage.mirror(system, names, topics)
    try:
        mirror.start()
        yield [
            ((stage.source, topic), (stage.target, names.topic_on_target(system, topic)))
            for topic in topics
        ]
    finally:
        mirror.kill()
        stage.clean()


def measure(rate: Rate, source: Place, target: Place, ledger: Ledger) -> Latency:
    """Send at the rate into one topic, read the other, and return the percentiles."""
    stream, numbers, ahead_s = ledger.run(_stream, rate, source, target)
    sent = [at - ahead_s for at in stream.sent_at]
    calm = ledger.neighbours.calm(sent[numbers[0]], sent[numbers[-1]])
    return percentiles(stream, numbers, [(start + ahead_s, end + ahead_s) for start, end in calm])


def percentiles(stream: Stream, numbers: range, calm: Sequence[Span] = ALWAYS) -> Latency:
    """Return those of the records that were sent in calm, in the stream's clock, if it was any."""
    sent = stream.sent_at
    share = share_of(calm, sent[numbers[0]], sent[numbers[-1]])
    spans = calm if share >= LEAST_CALM else ALWAYS
    counted = {each for each in numbers if is_within(spans, sent[each], sent[each])}
    taken = stream.latencies_ms(counted)
    return Latency(p50=percentile(taken, 0.5), p99=percentile(taken, 0.99))


async def _stream(rate: Rate, source: Place, target: Place) -> tuple[Stream, range, float]:
    """Return what became of the records, which of them count, and how far trio's clock is ahead."""
    stream = Stream(record_bytes=rate.record_bytes, per_batch=rate.per_batch)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive, stream, *target)
        nursery.start_soon(send, stream, *source, rate.per_s / rate.per_batch)
        await wait_arrived(stream, [0], COMES_UP_S)
        await trio.sleep(rate.warm_up_s)
        first = len(stream.sent_at)
        await trio.sleep(rate.measured_s)
        numbers = range(first, len(stream.sent_at))
        await wait_arrived(stream, numbers, ARRIVES_S)
        nursery.cancel_scope.cancel()
    return stream, numbers, trio.current_time() - monotonic()
