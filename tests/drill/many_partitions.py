"""Very many partitions on three brokers: how long a start takes, and how soon leaders move.

A broker has started when its answer names a living leader for every partition; leaders have moved
when no surviving broker names the dead one any more. The session's end is seen in ZooKeeper.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import trio

from broker.zookeeper.tree import BROKERS
from tests.clusters import RunningCluster, run_cluster
from tests.drill.cluster import DrillFailed
from tests.zookeeper import open_witness_of_tests
from wire.errors import ErrorCode
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.metadata import MetadataRequest, MetadataResponse
from wire.net.connecting import ConnectionSettings
from wire.net.errors import NetworkFault
from wire.net.pool import ConnectionPool
from wire.net.transport import Address

BROKER_IDS: Final = range(3)
A_TOPIC: Final = 100
"""Partitions of each topic."""
STARTED_WITHIN_S: Final = 20.0
MOVED_WITHIN_S: Final = 5.0
PATIENCE_S: Final = 60.0
ANSWER_S: Final = 5.0
LOOK_EVERY_S: Final = 0.25
NAME: Final = "many"
SETTINGS: Final = {"default.replication.factor": "3", "auto.create.topics.enable": "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What took how long; `bar_s` is None for what is only told."""

    what: str
    seconds: float
    bar_s: float | None = None

    @property
    def is_missed(self) -> bool:
        return self.bar_s is not None and self.seconds > self.bar_s

    def __str__(self) -> str:
        bar = "" if self.bar_s is None else f" (bar {self.bar_s:g} s{', MISSED' * self.is_missed})"
        took = f"{self.seconds:6.2f} s" if self.seconds >= 1 else f"{self.seconds * 1_000:6.1f} ms"
        return f"{took}  {self.what}{bar}"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one broker says of the partitions: how many, who leads them, how many lack nobody."""

    total: int
    leaders: frozenset[int]
    full: int


Wanted: TypeAlias = Callable[[View], bool]


def view_of(answer: MetadataResponse) -> View:
    """Return what an answer says of the drilled topics."""
    told = [
        partition
        for topic in answer.topics
        if (topic.name or "").startswith(NAME)
        for partition in topic.partitions
    ]
    return View(
        total=len(told),
        leaders=frozenset(partition.leader_id for partition in told),
        full=sum(len(one.isr_nodes) == len(one.replica_nodes) for one in told),
    )


def all_led(partitions: int, brokers: Sequence[int]) -> Wanted:
    """Every partition is known, and led by one of these."""
    return lambda view: view.total == partitions and view.leaders <= set(brokers)


def all_full(partitions: int) -> Wanted:
    """Every replica of every partition is in sync."""
    return lambda view: view.total == view.full == partitions


@dataclass(slots=True)
class Many:
    """The cluster that is measured, and what came out so far."""

    cluster: RunningCluster
    partitions: int
    pool: ConnectionPool
    figures: list[Figure] = field(default_factory=list)

    def tell(self, what: str, began_s: float, bar_s: float | None = None) -> None:
        seconds = max(0.0, trio.current_time() - began_s)
        self.figures.append(Figure(what=what, seconds=seconds, bar_s=bar_s))

    async def answer(self, address: Address) -> MetadataResponse | None:
        """Return a broker's metadata, None while it does not answer."""
        with trio.move_on_after(ANSWER_S):
            try:
                connection = await self.pool.connection(address)
                return await connection.request(MetadataRequest(topics=None))
            except NetworkFault:
                return None
        return None

    async def wait_all(self, brokers: Sequence[int], wanted: Wanted) -> None:
        """Wait until each of these brokers says so. Raises DrillFailed."""
        left = list(brokers)
        with trio.move_on_after(PATIENCE_S):
            while left:
                answer = await self.answer(self.cluster.addresses[left[0]])
                if answer is not None and wanted(view_of(answer)):
                    left.pop(0)
                else:
                    await trio.sleep(LOOK_EVERY_S)
            return
        raise DrillFailed(f"broker {left[0]} does not come to it within {PATIENCE_S:g} s")

    async def controller(self) -> int:
        """Return who the controller is. Raises DrillFailed."""
        with trio.move_on_after(PATIENCE_S):
            while True:
                answer = await self.answer(self.cluster.addresses[0])
                if answer is not None and answer.controller_id >= 0:
                    return answer.controller_id
                await trio.sleep(LOOK_EVERY_S)
        raise DrillFailed("there is no controller")

    async def create(self) -> None:
        """Create the topics. Raises DrillFailed."""
        began_s = trio.current_time()
        connection = await self.pool.connection(self.cluster.addresses[await self.controller()])
        for number in range(0, self.partitions, A_TOPIC):
            topic = CreatableTopic(
                name=f"{NAME}-{number}",
                num_partitions=min(A_TOPIC, self.partitions - number),
                replication_factor=len(BROKER_IDS),
                assignments=(),
                configs=(),
            )
            request = CreateTopicsRequest(topics=(topic,), timeout_ms=int(PATIENCE_S * 1000))
            [created] = (await connection.request(request)).topics
            if created.error_code != ErrorCode.NONE:
                raise DrillFailed(f"{topic.name}: {ErrorCode(created.error_code).name}")
        await self.wait_all(BROKER_IDS, all_full(self.partitions))
        self.tell("all created", began_s)

    async def start(self, end: Callable[[], None], after: str) -> None:
        """End all brokers and start them."""
        self.pool.close("all brokers are ended")
        await trio.to_thread.run_sync(end)
        began_s = trio.current_time()
        await trio.to_thread.run_sync(self.cluster.start)
        await self.wait_all(BROKER_IDS, all_led(self.partitions, BROKER_IDS))
        self.tell(f"started after {after}: every partition is led", began_s, STARTED_WITHIN_S)
        await self.wait_all(BROKER_IDS, all_full(self.partitions))
        self.tell("  every replica in sync", began_s)

    async def lose(self, broker: int, who: str) -> None:
        """Kill one broker; when all is led elsewhere, let it come back."""
        others = [one for one in BROKER_IDS if one != broker]
        async with (
            open_witness_of_tests(self.cluster.zookeeper, 10_000) as zookeeper,
            zookeeper.watch_children(BROKERS) as listings,
        ):
            killed_s = trio.current_time()
            await trio.to_thread.run_sync(self.cluster.kill_broker, broker)
            with trio.move_on_after(PATIENCE_S):
                async for names in listings:
                    if str(broker) not in (names or ()):
                        break
            expired_s = trio.current_time()
        self.tell(f"{who} dies: its session expires", killed_s)
        await self.wait_all(others, all_led(self.partitions, others))
        self.tell("  all its leaders have moved", expired_s, MOVED_WITHIN_S)
        began_s = trio.current_time()
        self.cluster.start_broker(broker)
        await self.wait_all(BROKER_IDS, all_full(self.partitions))
        self.tell("  it is back, every replica in sync", began_s)


async def measure(cluster: RunningCluster, partitions: int) -> list[Figure]:
    """Return what took how long. Raises DrillFailed."""
    async with trio.open_nursery() as nursery:
        settings = ConnectionSettings(client_id="drill")
        many = Many(cluster, partitions, ConnectionPool(nursery, settings))
        await many.create()
        await many.start(cluster.stop, "a stop")
        await many.start(cluster.kill, "SIGKILL")
        controller = await many.controller()
        await many.lose((controller + 1) % len(BROKER_IDS), "a broker")
        await many.lose(await many.controller(), "the controller's broker")
        nursery.cancel_scope.cancel()
    return many.figures


async def drill_many(folder: Path, partitions: int) -> list[Figure]:
    """Measure a cluster of its own in `folder`. Raises DrillFailed."""
    folder.mkdir(parents=True)
    with run_cluster(folder, brokers=len(BROKER_IDS), overrides=SETTINGS) as cluster:
        return await measure(cluster, partitions)


def report(figures: Sequence[Figure], partitions: int) -> list[str]:
    """Return the lines that a person reads, the verdict last."""
    missed = sum(figure.is_missed for figure in figures)
    verdict = f"FAILED: {missed} of the bars missed" if missed else "PASSED"
    heading = f"{partitions} partitions, 3 replicas each, on {len(BROKER_IDS)} brokers"
    machine = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    return [heading, *map(str, figures), f"  {machine}; others' work counts as ours", verdict]
