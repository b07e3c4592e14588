"""How long a record is on its way at a steady rate: through a mirror, or through one broker."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import trio

from tests.bench.measure.figures import percentile
from tests.bench.measure.ledger import Cell, Ledger, cells, is_unavailable
from tests.bench.measure.results import MIRROR_P50, MIRROR_P99
from tests.bench.measure.rounds import in_turns, repeat
from tests.bench.measure.workloads import KIB
from tests.bench.stage.clusters import Stage
from tests.bench.stage.served import Served, create_topic
from tests.bench.stage.steady import Stream, receive, send, wait_arrived

BENCHES: Final = (MIRROR_P50, MIRROR_P99)
TOPIC: Final = "bench-latency"
DIRECT: Final = "bench-direct"
COMES_UP_S: Final = 120
ARRIVES_S: Final = 60

ServedTopic: TypeAlias = tuple[Served, str]
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


def run_latency(
    stage: Stage, rates: Sequence[Rate], systems: Sequence[str], runs: int, ledger: Ledger
) -> None:
    """Measure each system's latency at the rates, and what of it is the harness and the brokers."""
    all_rates = [cell for rate in rates for cell in cells(rate.name, BENCHES)]

    def attempt(system: str, turn: int) -> bool:
        faults: list[BaseException] = []
        running = _mirror_for_rates(stage, system, rates)
        with (
            ledger.guard([system], all_rates),
            ledger.started(running, faults.append) as places,
        ):
            for rate, (source, target) in zip(rates, places or (), strict=places is not None):
                run = partial(_latency, rate, source, target, ledger)
                ledger.try_run(system, turn, cells(rate.name, BENCHES), run)
        for fault in faults:
            ledger.miss(system, all_rates, fault)
        return not any(map(is_unavailable, faults))

    with ledger.guard(systems, all_rates):
        ledger.require_time()
        for rate in rates:
            _measure_without_mirror(stage, rate, ledger)
        repeat(runs, systems, all_rates, in_turns(attempt), ledger)


def _latency(
    rate: Rate, source: ServedTopic, target: ServedTopic, ledger: Ledger
) -> Mapping[Cell, float]:
    found = measure(rate, source, target, ledger)
    return {(rate.name, MIRROR_P50): found.p50, (rate.name, MIRROR_P99): found.p99}


def _measure_without_mirror(stage: Stage, rate: Rate, ledger: Ledger) -> None:
    """Note what of every latency is the harness and one broker."""
    create_topic(stage.source, DIRECT, 1)
    at_source = (stage.source, DIRECT)
    direct = measure(rate, at_source, at_source, ledger)
    ledger.harness[f"without a mirror, {rate.name}, p50 ms"] = round(direct.p50, 2)
    ledger.harness[f"without a mirror, {rate.name}, p99 ms"] = round(direct.p99, 2)
    stage.clean()


@contextmanager
def _mirror_for_rates(
    stage: Stage, system: str, rates: Sequence[Rate]
) -> Iterator[list[tuple[ServedTopic, ServedTopic]]]:
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


def measure(rate: Rate, source: ServedTopic, target: ServedTopic, ledger: Ledger) -> Latency:
    """Send at the rate into one topic, read the other, and return the percentiles.

    Raises one of `ledger.FAULTS`.
    """
    taken_ms = ledger.run(_stream, rate, source, target)
    return Latency(p50=percentile(taken_ms, 0.5), p99=percentile(taken_ms, 0.99))


async def _stream(rate: Rate, source: ServedTopic, target: ServedTopic) -> list[float]:
    """Return what each record took that was sent behind the warm-up."""
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
    return stream.latencies_ms(numbers)
