"""Two clusters with a mirror between them, which is killed, paused and cut off; who compares reads
both logs itself.

Two daemons share the work: a paused one wakes up when the other has long taken its part over.
"""

import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

import trio
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.drill import faults
from tests.drill.checker import Kind, Offence, Promises, Story, check, story_of
from tests.drill.cluster import Cluster, Process, create_topic, run_cluster
from tests.drill.drill import LAST_WORDS_S, READ_S, wait_first_acks
from tests.drill.faults import Targets
from tests.drill.history import Fault, line_of, read_events
from tests.drill.injecting import inject
from tests.drill.links import Links
from tests.drill.mirrored import compare
from tests.drill.workload import PARTITIONS, TOPIC, Progress, open_clients

MIRRORS: Final = ("mirror-a", "mirror-b")
PRODUCERS: Final = ("p0",)
LEVEL_WITHIN_S: Final = 60.0
CONFIGURATION: Final = """\
clusters:
  dc1: {{bootstrap: "{dc1}"}}
  dc2: {{bootstrap: "{dc2}"}}
flows:
  - source: dc1
    target: dc2
    topics: {{include: ["{topic}"]}}
    discovery_interval_ms: 300
coordination: {{zookeeper: "{witness}", path: "/drill", session_timeout_ms: 3000}}
metrics: {{mirror_port: 0, failover_port: 0, audit_port: 0}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is drilled, and how."""

    seed: int
    seconds: float
    folder: Path
    rate: int = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out; `mirrored` counts the records on the target."""

    faults: Sequence[Fault]
    offences: Sequence[Offence]
    began_s: float
    produced: int
    mirrored: int
    level_after_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Everything that runs; `all` has the processes that can be hit."""

    source: Cluster
    target: Cluster
    all: Cluster


async def drill_mirror(options: Options) -> Result:
    """Run one drill. Raises DrillFailed when it could not be carried out."""
    options.folder.mkdir(parents=True)
    async with _stage(options.folder) as stage:
        await create_topic(stage.source, TOPIC, partitions=PARTITIONS, factor=1, min_in_sync=1)
        for name in MIRRORS:
            stage.all.start(name)
        return await _drill(options, stage)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[Stage]:
    links = Links()
    async with (
        run_cluster(folder / "dc1", links, 1, 1, "dc1-") as source,
        run_cluster(folder / "dc2", links, 1, 1, "dc2-") as target,
        run_cluster(folder / "witness", links, 0, 1, "witness-") as witness,
    ):
        everything = Cluster(
            folder=folder, links=links, processes={**source.processes, **target.processes}
        )
        configuration = folder / "dc.yaml"
        configuration.write_text(
            CONFIGURATION.format(
                dc1=source.bootstrap,
                dc2=target.bootstrap,
                topic=TOPIC,
                witness=f"127.0.0.1:{witness.ports[witness.zookeeper]}",
            )
        )
        for name in MIRRORS:
            everything.processes[name] = Process(
                name=name,
                command=[sys.executable, "-m", "mirror.cli", "run", str(configuration)],
                log=folder / f"{name}.log",
            )
        try:
            yield Stage(source=source, target=target, all=everything)
        finally:
            with trio.CancelScope(shield=True):
                for name in MIRRORS:
                    await everything.stop(name, signal.SIGKILL)


async def _drill(options: Options, stage: Stage) -> Result:
    brokers = (*stage.source.brokers, *stage.target.brokers)
    targets = Targets(
        processes=(*MIRRORS, *MIRRORS, *brokers), bystanders=("witness-zookeeper",), together=2
    )
    planned = faults.plan(options.seed, options.seconds, targets)
    with open_clients(options.folder, stage.source.bootstrap, options.rate) as clients:
        for name in PRODUCERS:
            clients.start("produce", name)
        clients.start("consume", "c0", stage.target.bootstrap)
        await wait_first_acks(Progress(options.folder, PRODUCERS), PRODUCERS)
        began_s = monotonic()
        with (options.folder / "faults.jsonl").open("w") as file:

            def note(fault: Fault) -> None:
                file.write(line_of(fault))

            await inject(stage.all, planned, note)
        quiet_s = monotonic()
        for name in PRODUCERS:
            await clients.finish(name, LAST_WORDS_S)
        level_s = await _wait_level(stage)
        await clients.finish("c0", LAST_WORDS_S)
        for name, cluster in (("source", stage.source), ("target", stage.target)):
            clients.start("read", f"final-{name}", cluster.bootstrap)
            await clients.finish(f"final-{name}", READ_S, lets_go=False)
    source = _story(options.folder, (*PRODUCERS, "final-source", "faults"))
    target = _story(options.folder, ("c0", "final-target"))
    nothing = Promises(logs=frozenset(), progress_within_s=float("inf"))
    offences = [
        *check(source, nothing),
        *check(target, nothing),
        *compare(source.final, target.final),
    ]
    if level_s is None:
        says = f"the target has not caught up within {LEVEL_WITHIN_S:g} s"
        offences.append(Offence(Kind.NO_PROGRESS.name, TOPIC, -1, says))
    return Result(
        faults=source.faults,
        offences=offences,
        began_s=began_s,
        produced=sum(map(len, source.final.values())),
        mirrored=sum(map(len, target.final.values())),
        level_after_s=None if level_s is None else level_s - quiet_s,
    )


def _story(folder: Path, names: Sequence[str]) -> Story:
    return story_of(read_events([folder / f"{name}.jsonl" for name in names]))


async def _wait_level(stage: Stage) -> float | None:
    """Return when the target's logs ended where the source's do, None when not in time."""
    with trio.move_on_after(LEVEL_WITHIN_S):
        while True:
            ends = [
                await trio.to_thread.run_sync(_ends, cluster.bootstrap)
                for cluster in (stage.source, stage.target)
            ]
            if ends[0] is not None and ends[0] == ends[1]:
                return monotonic()
            await trio.sleep(0.25)
    return None


def _ends(bootstrap: str) -> list[int] | None:
    """Return where each log ends, None where that cannot be had."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends", "log_level": 0})
    try:
        return [
            consumer.get_watermark_offsets(TopicPartition(TOPIC, index), timeout=5)[1]
            for index in range(PARTITIONS)
        ]
    except KafkaException:
        return None
    finally:
        consumer.close()


def report(result: Result, options: Options) -> list[str]:
    """Return the lines that a person reads."""
    lines = [f"mirror drill SEED={options.seed} SECONDS={options.seconds:g}"]
    for fault in sorted(result.faults, key=lambda one: one.at_s):
        begins, ends = fault.at_s - result.began_s, fault.ended_s - result.began_s
        lines.append(f"  {begins:7.2f} s - {ends:7.2f} s  {fault.what}")
    lines.append(f"  {result.produced} records on the source, {result.mirrored} on the target")
    if result.level_after_s is not None:
        lines.append(f"  level {result.level_after_s:.1f} s after the last fault")
    lines += [f"  {offence}" for offence in result.offences[:50]]
    kept = "PASSED: each record once, in order" if not result.offences else "FAILED"
    return [*lines, kept]
