"""One drill: a cluster, its clients, faults from a seed, and the verdict on what happened."""

import math
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Final

import trio

from demo.doors import Doors
from tests.drill import faults, replicas
from tests.drill.checker import Offence, Promises, Story, check, story_of
from tests.drill.cluster import (
    CLIENTS,
    Cluster,
    DrillFailed,
    create_topic,
    run_cluster,
)
from tests.drill.faults import Planned, Targets
from tests.drill.group_checker import check_group
from tests.drill.history import Fault, line_of, read_events
from tests.drill.injecting import inject
from tests.drill.links import Links
from tests.drill.members import CLASSIC, NEWER
from tests.drill.workload import PARTITIONS, TOPIC, Group, Progress, open_clients

PRODUCERS: Final = ("p0", "p1")
TRANSACTORS: Final = ("t0",)
CONSUMERS: Final = ("c0", "reread0")
MEMBERS: Final = 2
"""Of each group."""
PROGRESS_S: Final = 15.0
FIRST_ACKS_S: Final = 90.0
LAST_WORDS_S: Final = 120.0
DRAINED_S: Final = 240.0
READ_S: Final = 240.0
POLL_S: Final = 0.25
OTHER_SEED: Final = 1_000_000
"""Each group has a plan of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is drilled, and how."""

    seed: int
    seconds: float
    folder: Path
    brokers: int = 3
    factor: int = 3
    min_in_sync: int = 2
    rate: int = 400
    progress_s: float = PROGRESS_S
    """After the last fault; a machine that is busy with other tests needs longer."""
    groups: tuple[str, ...] = (CLASSIC, NEWER)
    is_secured: bool = False
    """Whether everybody comes over TLS and SASL."""

    @property
    def group_s(self) -> float:
        """The same for the group that shares the logs."""
        return 2 * self.progress_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out."""

    planned: Sequence[Planned]
    story: Story
    offences: Sequence[Offence]
    began_s: float
    died: Sequence[str]
    seconds: float


async def drill(options: Options, tell: Callable[[str], None]) -> Result:
    """Run one drill. Raises DrillFailed when it could not be carried out.

    `tell` is given a line for each part that has ended: together they take minutes.
    """
    options.folder.mkdir(parents=True)
    links = Links()
    doors = Doors(options.folder / "doors") if options.is_secured else None
    size = options.brokers, options.factor
    async with run_cluster(options.folder, links, *size, doors=doors) as cluster:
        await create_topic(
            cluster,
            TOPIC,
            partitions=PARTITIONS,
            factor=options.factor,
            min_in_sync=options.min_in_sync,
        )
        return await _drill(options, cluster, tell)


async def _drill(options: Options, cluster: Cluster, tell: Callable[[str], None]) -> Result:
    targets = Targets(processes=(*cluster.brokers, cluster.zookeeper), bystanders=(CLIENTS,))
    planned = faults.plan(options.seed, options.seconds, targets)
    died: list[str] = []
    with open_clients(options.folder, cluster.client, options.rate) as clients:
        for name in CONSUMERS:
            clients.start("consume", name)
        for name in PRODUCERS:
            clients.start("produce", name)
        for name in TRANSACTORS:
            clients.start("transact", name)
        groups = [Group(clients, name, MEMBERS) for name in options.groups]
        progress = Progress(options.folder, (*PRODUCERS, *TRANSACTORS, *CONSUMERS))
        await wait_first_acks(progress, (*PRODUCERS, *TRANSACTORS))
        began_s = monotonic()
        with (options.folder / "faults.jsonl").open("w") as file:

            def note(fault: Fault) -> None:
                file.write(line_of(fault))
                died.extend(name for name in cluster.died() if name not in died)

            async with trio.open_nursery() as nursery:
                for number, group in enumerate(groups):
                    seed = options.seed + number * OTHER_SEED
                    absences = faults.plan_absences(seed, options.seconds, MEMBERS)
                    nursery.start_soon(group.change, absences, note)
                nursery.start_soon(inject, cluster, planned, note)
        quiet_s = monotonic()
        tell(f"  the last fault has ended, {quiet_s - began_s:.0f} s")
        with trio.move_on_after(options.group_s):
            await _wait_progress(progress, groups, quiet_s)
        seconds = monotonic() - began_s
        tell(f"  every client goes on, {seconds:.0f} s; the groups read what is left")
        for name in (*PRODUCERS, *TRANSACTORS, *CONSUMERS):
            await clients.finish(name, LAST_WORDS_S)
        members = [name for one in groups for name in one.names]
        clients.let_go(members)
        for name in (*members, *(one.watcher for one in groups)):
            await clients.finish(name, DRAINED_S)
        died.extend(name for name in cluster.died() if name not in died)
        tell(
            f"  the clients have ended, {monotonic() - began_s:.0f} s; the logs are read once more"
        )
        clients.start("read", "final")
        await clients.finish("final", READ_S, lets_go=False)
        for name in cluster.brokers:
            await cluster.stop(name, signal.SIGTERM)
    story, offences = _judged(options, cluster)
    return Result(
        planned=planned,
        story=story,
        offences=offences,
        began_s=began_s,
        died=died,
        seconds=seconds,
    )


def _judged(options: Options, cluster: Cluster) -> tuple[Story, list[Offence]]:
    """Return what happened, and what of it breaks a promise."""
    story = story_of(read_events(sorted(options.folder.glob("*.jsonl"))))
    logs = frozenset(f"{TOPIC}-{index}" for index in range(PARTITIONS))
    promises = Promises(
        logs=logs, progress_within_s=options.progress_s, group_within_s=options.group_s
    )
    offences = check(story, promises)
    offences += check_group(story)
    if options.factor > 1:
        offences += replicas.compare(options.folder, cluster.brokers, logs)
    return story, offences


async def wait_first_acks(progress: Progress, names: Sequence[str] = PRODUCERS) -> None:
    """Wait until each of them was told something. Raises DrillFailed."""
    with trio.move_on_after(FIRST_ACKS_S):
        while any(not progress.logs(name, 0.0) for name in names):
            await trio.sleep(POLL_S)
            progress.follow()
        return
    raise DrillFailed("the producers were not acknowledged anything before the first fault")


async def _wait_progress(progress: Progress, groups: Sequence[Group], quiet_s: float) -> None:
    """Wait until every log takes records, and every consumer and group is given some."""

    def is_seen() -> bool:
        taken = set().union(*(progress.logs(name, quiet_s) for name in PRODUCERS))
        served = [progress.logs(name, quiet_s) for name in CONSUMERS]
        shared = [any(progress.logs(name, quiet_s) for name in one.names) for one in groups]
        return len(taken) == PARTITIONS and all(served) and all(shared)

    for one in groups:
        progress.also(one.names)
    progress.skip()
    while not is_seen():
        await trio.sleep(POLL_S)
        progress.follow()


def report(result: Result, options: Options) -> Iterator[str]:
    """Return the lines that a person reads."""
    yield f"drill SEED={options.seed} SECONDS={options.seconds:g}, factor {options.factor}"
    for fault in sorted(result.story.faults, key=lambda one: one.at_s):
        begins, ends = fault.at_s - result.began_s, fault.ended_s - result.began_s
        yield f"  {begins:7.2f} s - {ends:7.2f} s  {fault.what}"
    acked = len(result.story.acked)
    yield f"  {acked} records acknowledged, {acked / result.seconds:.0f} a second"
    yield f"  {len(result.story.refused)} given up by producers, {_longest_gap(result.story)}"
    for group in options.groups:
        yield f"  {_group_says(result.story, group)}"
    yield f"  {_transactions_say(result.story)}"
    yield f"  every log took records {_recovery_s(result.story):.1f} s after the last fault"
    for name in result.died:
        yield f"  {name} ended by itself"
    for offence in result.offences[:50]:
        yield f"  {offence}"
    if len(result.offences) > 50:
        yield f"  ... {len(result.offences)} offences"
    kept = "PASSED" if not result.offences and not result.died else "FAILED"
    yield f"{kept}: 0 lost, 0 duplicates" if kept == "PASSED" else kept


def _group_says(story: Story, group: str) -> str:
    given = [(read.log, read.offset) for read in story.reads if read.group == group]
    again = len(given) - len(set(given))
    committed = sum(one.group == group for one in story.committed)
    took = sum(one.group == group for one in story.took)
    return (
        f"the {group} group was given {len(given)} records, {again} of them again; it committed "
        f"{committed} times and took logs over {took} times"
    )


def _transactions_say(story: Story) -> str:
    committed = sum(ack.who in TRANSACTORS for ack in story.acked)
    return f"in transactions {committed} records were committed and {len(story.aborted)} given up"


def _recovery_s(story: Story) -> float:
    """Return how long after the last fault the last log was acknowledged a record again."""
    quiet_s = max((fault.ended_s for fault in story.faults), default=0.0)
    first_s: dict[str, float] = {}
    for ack in story.acked:
        if ack.at_s > quiet_s:
            first_s[ack.log] = min(first_s.get(ack.log, math.inf), ack.at_s)
    return max(first_s.values(), default=math.inf) - quiet_s


def _longest_gap(story: Story) -> str:
    times = sorted(ack.at_s for ack in story.acked)
    longest = max((late - early for early, late in pairwise(times)), default=0)
    return f"longest time without any acknowledgement {longest:.1f} s"
