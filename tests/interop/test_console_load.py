"""A mirror that forwards while fifty pages of its console are live, and while none is, by turns."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition

from runtime.process.ports import free_port
from tests.bench.measure.processes import cpu_and_memory
from tests.docs.pages import ROOT
from tests.failover.promoting import run_mirror
from tests.failover.two_sites import QUIET, Sites, create_topic, pause, run_sites
from tests.mirror.daemon import wait_until
from tests.zookeeper import run_witness

PAGES_OPEN: Final = 50
TURNS: Final = 4
"""Of each kind; the first of each only warms up."""
STEADY_S: Final = 6.0
STEADY_PER_S: Final = 200
FLOOD_RECORDS: Final = 60_000
VALUE_BYTES: Final = 1_024
PATIENCE_S: Final = 120
FIGURES: Final = ROOT / "build" / "console-load.json"
LEAST_THROUGHPUT: Final = 0.7
MOST_CORES: Final = 0.35
"""Of a processor, for all pages: a fifth for making them, and sending them beside."""

pytestmark = pytest.mark.matrix(subject="The console", against="fifty live pages")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFigures:
    """What one turn has shown."""

    latency_p50_ms: float
    latency_p99_ms: float
    idle_cores: float
    """What the mirror takes of a processor under the steady load."""
    flood_mb_s: float


def produce_steadily(sites: Sites) -> list[float]:
    """Write at a rate, and return how long each record took to be read on dc2, in ms."""
    producer = Producer({"bootstrap.servers": sites.dc1.bootstrap, "linger.ms": 0, **QUIET})
    consumer = Consumer({"bootstrap.servers": sites.dc2.bootstrap, "group.id": "steady", **QUIET})
    end = consumer.get_watermark_offsets(TopicPartition("steady", 0), timeout=30)[1]
    consumer.assign([TopicPartition("steady", 0, end)])
    took: list[float] = []
    wanted = round(STEADY_S * STEADY_PER_S)
    sent, began = 0, time.monotonic()
    while len(took) < wanted:
        assert time.monotonic() < began + PATIENCE_S, f"{len(took)} of {wanted} records came"
        while sent < wanted and sent < (time.monotonic() - began) * STEADY_PER_S:
            producer.produce("steady", time.time_ns().to_bytes(8, "big"), partition=0)
            sent += 1
        producer.poll(0)
        message = consumer.poll(0.002)
        if message is not None and message.error() is None:
            value = message.value()
            assert isinstance(value, bytes)
            took.append((time.time_ns() - int.from_bytes(value, "big")) / 1e6)
    consumer.close()
    return took


def flood(sites: Sites) -> float:
    """Write as fast as it goes; return the MB/s until all of it is on dc2."""
    producer = Producer({"bootstrap.servers": sites.dc1.bootstrap, "linger.ms": 5, **QUIET})
    reader = Consumer({"bootstrap.servers": sites.dc2.bootstrap, "group.id": "flood", **QUIET})

    def there() -> int:
        ends = (
            reader.get_watermark_offsets(TopicPartition("flood", index), timeout=30)[1]
            for index in range(4)
        )
        return sum(ends)

    before, value = there(), bytes(VALUE_BYTES)
    began = time.monotonic()
    for number in range(FLOOD_RECORDS):
        producer.produce("flood", value, partition=number % 4)
        if number % 1_000 == 0:
            producer.poll(0.01)
    assert producer.flush(PATIENCE_S) == 0
    while there() < before + FLOOD_RECORDS:
        assert time.monotonic() < began + PATIENCE_S
        pause(0.01)
    took_s = time.monotonic() - began
    reader.close()
    return FLOOD_RECORDS * VALUE_BYTES / took_s / 1e6


def one_turn(sites: Sites, pid: int) -> TurnFigures:
    """Measure the mirror once."""
    cpu_before, _ = cpu_and_memory(pid)
    began = time.monotonic()
    took = sorted(produce_steadily(sites))
    cores = (cpu_and_memory(pid)[0] - cpu_before) / (time.monotonic() - began)
    return TurnFigures(
        latency_p50_ms=median(took),
        latency_p99_ms=took[len(took) * 99 // 100],
        idle_cores=cores,
        flood_mb_s=flood(sites),
    )


@contextmanager
def pages_open(port: int, seen: list[dict[str, Any]]) -> Iterator[None]:
    """Have pages live during the block; what they have got is added to `seen`."""
    command = [sys.executable, "-m", "tests.interop.console_readers", str(port), str(PAGES_OPEN)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as readers:
        assert readers.stdin is not None
        assert readers.stdout is not None
        try:
            assert readers.stdout.readline() == "open\n"
            yield
            readers.stdin.close()
            seen.append(json.loads(readers.stdout.readline()))
        finally:
            readers.kill()


def ratio(watched: Sequence[TurnFigures], alone: Sequence[TurnFigures], name: str) -> float:
    """Return the median with pages as a part of that without."""
    with_pages, without = (
        median(getattr(one, name) for one in turns) for turns in (watched, alone)
    )
    return float(with_pages / without)


def test_fifty_live_pages_leave_the_mirror_its_throughput(tmp_path: Path) -> None:
    with run_witness(tmp_path) as witness, run_sites(tmp_path, witness) as sites:
        for topic, partitions in (("steady", 1), ("flood", 4), ("many", 100)):
            create_topic(sites.dc1, topic, partitions)
        file = sites.configure(tmp_path, "/load", ".*")
        config = yaml.safe_load(file.read_text())
        port = config["metrics"]["mirror_port"] = free_port()
        file.write_text(yaml.safe_dump(config))
        with run_mirror(file) as mirror:
            wait_until("all topics are there", lambda: has_topics(sites))
            alone: list[TurnFigures] = []
            watched: list[TurnFigures] = []
            seen: list[dict[str, Any]] = []
            for _ in range(TURNS):
                alone.append(one_turn(sites, mirror.pid))
                with pages_open(port, seen):
                    watched.append(one_turn(sites, mirror.pid))
    alone, watched = alone[1:], watched[1:]
    names = ("latency_p50_ms", "latency_p99_ms", "idle_cores", "flood_mb_s")
    ratios = {name: round(ratio(watched, alone, name), 3) for name in names}
    figures = {
        "alone": [asdict(one) for one in alone],
        "watched": [asdict(one) for one in watched],
        "ratios": ratios,
        "pages": seen,
    }
    FIGURES.write_text(json.dumps(figures, indent=1))
    assert all(one["live"] == PAGES_OPEN for one in seen), seen
    more = median(one.idle_cores for one in watched) - median(one.idle_cores for one in alone)
    assert more < MOST_CORES, figures
    assert ratios["flood_mb_s"] > LEAST_THROUGHPUT, figures


def has_topics(sites: Sites) -> bool:
    """Tell whether the mirror has made all topics on dc2."""
    consumer = Consumer({"bootstrap.servers": sites.dc2.bootstrap, "group.id": "look", **QUIET})
    found = set(consumer.list_topics(timeout=10).topics)
    consumer.close()
    return found >= {"steady", "flood", "many"}
