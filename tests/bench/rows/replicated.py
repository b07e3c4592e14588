"""Three brokers that replicate: ours beside Apache Kafka, each alone with librdkafka's clients.

All clients ask for the acknowledgement of every in-sync replica, and two must be in sync.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import trio

from tests.bench.measure.figures import MEGABYTE
from tests.bench.measure.ledger import Cell, Ledger, RunFailed, cells
from tests.bench.measure.processes import cpu_and_memory
from tests.bench.measure.results import (
    APACHE,
    BROKER_CONSUME,
    BROKER_P99,
    BROKER_PRODUCE,
    BROKER_RSS,
    OURS,
)
from tests.bench.measure.rounds import in_turns, repeat
from tests.bench.measure.workloads import MIB
from tests.bench.rows.brokers import LATENCY_BENCHES, RATE_BENCHES
from tests.bench.rows.clients import RECORD_BYTES, TRICKLE_PER_S, Task, begin, result_of
from tests.bench.stage.clusters import run_apache, run_bundled, scratch
from tests.bench.stage.served import PERISHABLE, Served, create_topic, delete_topics, ends
from tests.interop.peers.resources import require_disk
from wire.net import open_cluster

SYSTEMS: Final = (OURS, APACHE)
BROKERS: Final = 3
PARTITIONS: Final = 12
SETTINGS: Final = {**PERISHABLE, "min.insync.replicas": "2"}
BOTH_BENCHES: Final = (BROKER_PRODUCE, BROKER_CONSUME)
SETTING: Final = f"{PARTITIONS}p, {BROKERS} brokers, rf {BROKERS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedPlan:
    """What to run and how often."""

    codecs: Sequence[str]
    data_bytes: int
    trickle_s: int
    runs: int

    @property
    def records(self) -> int:
        return self.data_bytes // RECORD_BYTES

    @property
    def disk_mb(self) -> int:
        """Return the room for two topics, one of which is not deleted yet."""
        return 2 * BROKERS * self.data_bytes // MIB + 1000


def one_name(codec: str) -> str:
    """Return the row of writing, and then reading, a topic."""
    return f"1 KiB, {codec}, {SETTING}"


def both_name(codec: str) -> str:
    """Return the row of writing and reading a topic at the same time."""
    return f"1 KiB, {codec}, {SETTING}, both at once"


TRICKLE_NAME: Final = f"written only, 1 KiB, {TRICKLE_PER_S:,}/s, {SETTING}"


def run_replicated(folder: Path, plan: ReplicatedPlan, ledger: Ledger) -> None:
    """Run the part `replicated`."""

    def attempt(system: str, turn: int) -> bool:
        return _run_one(folder / f"round-{turn}", system, turn, plan, ledger)

    repeat(plan.runs, SYSTEMS, all_cells(plan), in_turns(attempt), ledger)


def all_cells(plan: ReplicatedPlan) -> list[Cell]:
    """Return every row of the part."""
    rows = [cells(one_name(codec), RATE_BENCHES) for codec in plan.codecs]
    rows += [cells(both_name(codec), BOTH_BENCHES) for codec in plan.codecs]
    rows.append(cells(TRICKLE_NAME, LATENCY_BENCHES))
    return [cell for row in rows for cell in row]


def _run_one(folder: Path, system: str, turn: int, plan: ReplicatedPlan, ledger: Ledger) -> bool:
    """Run everything on one fresh cluster; return whether to try this system again."""
    tell = partial(ledger.miss, system, all_cells(plan))
    with scratch(folder), ledger.started(_warm(folder, system, plan), tell) as cluster:
        if cluster is None:
            return False
        scene = Scene(cluster=cluster, folder=folder, records=plan.records)
        for codec in plan.codecs:
            one, both = partial(_one_after_the_other, scene, codec), partial(_both, scene, codec)
            ledger.try_run(system, turn, cells(one_name(codec), RATE_BENCHES), one)
            ledger.try_run(system, turn, cells(both_name(codec), BOTH_BENCHES), both)
        rate = partial(_trickle, scene, plan.trickle_s)
        ledger.try_run(system, turn, cells(TRICKLE_NAME, LATENCY_BENCHES), rate)
    return True


@dataclass(slots=True, kw_only=True)
class Scene:
    """A cluster under load; topics are numbered, for one that was deleted may linger."""

    cluster: Served
    folder: Path
    records: int
    topics: int = 0

    @contextmanager
    def topic(self) -> Iterator[str]:
        """Give a fresh topic that is gone afterwards."""
        self.topics += 1
        name = f"bench-{self.topics}"
        create_topic(self.cluster, name, PARTITIONS, BROKERS)
        try:
            yield name
        finally:
            delete_topics(self.cluster)

    def task(self, what: str, topic: str, codec: str) -> Task:
        """Return what an application does to all the records."""
        return Task(
            what=what,
            bootstrap=self.cluster.bootstrap,
            topic=topic,
            count=self.records,
            codec=codec,
        )

    def rate_of(self, result: dict[str, float]) -> float:
        """Return MB/s."""
        return self.records * RECORD_BYTES / MEGABYTE / result["seconds"]

    def require_all(self, topic: str) -> None:
        """Raise RunFailed unless every record is there, once."""
        found = trio.run(_count, self.cluster, topic)
        if found != self.records:
            raise RunFailed(f"{found} of {self.records} records lie in the topic")


def _one_after_the_other(scene: Scene, codec: str) -> dict[Cell, float]:
    with scene.topic() as topic:
        written = result_of(begin(scene.task("produce", topic, codec), scene.folder))
        scene.require_all(topic)
        read = result_of(begin(scene.task("consume", topic, codec), scene.folder))
        resident = sum(cpu_and_memory(pid)[1] for pid in scene.cluster.pids.values())
    row = one_name(codec)
    return {
        (row, BROKER_PRODUCE): scene.rate_of(written),
        (row, BROKER_CONSUME): scene.rate_of(read),
        (row, BROKER_RSS): resident / MEGABYTE,
    }


def _both(scene: Scene, codec: str) -> dict[Cell, float]:
    with scene.topic() as topic:
        reading = begin(scene.task("consume", topic, codec), scene.folder)
        try:
            written = result_of(begin(scene.task("produce", topic, codec), scene.folder))
            read = result_of(reading)
        finally:
            reading.kill()
        scene.require_all(topic)
    row = both_name(codec)
    return {
        (row, BROKER_PRODUCE): scene.rate_of(written),
        (row, BROKER_CONSUME): scene.rate_of(read),
    }


def _trickle(scene: Scene, seconds: int) -> dict[Cell, float]:
    with scene.topic() as topic:
        task = Task(what="trickle", bootstrap=scene.cluster.bootstrap, topic=topic, count=seconds)
        found = result_of(begin(task, scene.folder))
    return {(TRICKLE_NAME, BROKER_P99): found["p99"]}


async def _count(cluster: Served, topic: str) -> int:
    async with open_cluster(cluster.addresses, client_id="bench") as client:
        return sum(await ends(client, topic, PARTITIONS))


@contextmanager
def _warm(folder: Path, system: str, plan: ReplicatedPlan) -> Iterator[Served]:
    """Run a cluster that has worked a little: Java compiles what it sees often."""
    require_disk(folder, plan.disk_mb)
    run = run_bundled if system == OURS else run_apache
    running: AbstractContextManager[Served] = run(folder, system, BROKERS, SETTINGS)
    with running as cluster:
        scene = Scene(cluster=cluster, folder=folder, records=plan.records // 4)
        _one_after_the_other(scene, plan.codecs[-1])
        yield cluster
