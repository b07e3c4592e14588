"""Mirrors before a full topic: how fast they copy it, and what that costs."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias

import trio

from tests.bench.measure.figures import RAMP_S, Sample, Throughput, TooFewSamples, throughput
from tests.bench.measure.ledger import (
    Cell,
    Ledger,
    RunFailed,
    cells,
    expected_faults,
    is_unavailable,
    reason_of,
    say,
)
from tests.bench.measure.processes import cpu_and_memory
from tests.bench.measure.results import (
    MIRROR_CPU,
    MIRROR_RATE,
    MIRROR_RSS,
    MIRROR_WARM_CPU,
    OF_OURS,
    OURS,
    RELAY,
)
from tests.bench.measure.rounds import repeat
from tests.bench.measure.turns import LIMIT_S, LOOK_S, Entrant, take_turns
from tests.bench.measure.workloads import Workload
from tests.bench.stage.clusters import Stage
from tests.bench.stage.filling import fill
from tests.bench.stage.relay import relaying
from tests.bench.stage.served import FREED_S, Served, create_topic, delete_topic, ends
from tests.interop.peers.child import pause
from wire.net import Cluster, open_cluster

BENCHES: Final = (MIRROR_CPU, MIRROR_WARM_CPU, MIRROR_RATE, MIRROR_RSS)
RAMP_ROUND_TRIPS: Final = 3

Outcome: TypeAlias = Throughput | Exception
"""What a system gave, or why there is nothing: one of `ledger.FAULTS`."""


def run_catching_up(
    stage: Stage,
    workload: Workload,
    systems: Sequence[str],
    runs: int,
    ledger: Ledger,
    name: str | None = None,
) -> None:
    """Fill a topic once and let the systems mirror it; `name` if it is not the workload's own."""
    row = name or workload.name

    def one_round(usable: Sequence[str], turn: int) -> list[str]:
        race = partial(_catch_up, stage, usable, workload, turn, ledger)
        return _take(race, row, usable, turn, ledger)

    with ledger.guard(systems, cells(row, BENCHES)), _filled(stage, workload, systems, ledger):
        repeat(runs, systems, cells(row, BENCHES), one_round, ledger)


def run_relay_alone(folder: Path, workload: Workload, runs: int, ledger: Ledger) -> None:
    """Measure the relay where there are no clusters for the others."""

    def one_round(usable: Sequence[str], turn: int) -> list[str]:
        race = partial(_relay_alone, folder, workload, ledger)
        return _take(race, workload.name, usable, turn, ledger)

    repeat(runs, (RELAY,), cells(workload.name, BENCHES), one_round, ledger)


def _take(
    race: Callable[[], Mapping[str, Outcome]],
    row: str,
    systems: Sequence[str],
    turn: int,
    ledger: Ledger,
) -> list[str]:
    """Take what each system gave; return those that can be had on this machine."""
    faults: list[Exception] = []
    found: Mapping[str, Outcome] = {}
    with expected_faults(faults.append):
        ledger.require_time()
        found = race()
    for fault in faults:
        found = dict.fromkeys(systems, fault)
    for system, outcome in found.items():
        if isinstance(outcome, Exception):
            ledger.miss(system, cells(row, BENCHES), outcome)
        else:
            ledger.add(system, turn, figures(row, outcome))
    return [
        system
        for system, outcome in found.items()
        if not (isinstance(outcome, Exception) and is_unavailable(outcome))
    ]


def warm_up_mirrored(
    stage: Stage, workload: Workload, copies: Sequence[Sequence[str]], ledger: Ledger
) -> None:
    """Let both clusters serve copies that do not count: Java's brokers become twice as fast."""

    def tell(fault: Exception) -> None:
        say(f"not warmed up: {reason_of(fault)}")  # whoever cannot run will say so in its row

    warmed = {system for systems in copies for system in systems}
    with expected_faults(tell), _filled(stage, workload, warmed, ledger):
        for systems in copies:
            _catch_up(stage, systems, workload, 0, ledger)


@contextmanager
def _filled(
    stage: Stage, workload: Workload, systems: Iterable[str], ledger: Ledger
) -> Iterator[None]:
    """Keep the systems' topics full of a workload on the source until the block ends.

    Raises one of `ledger.FAULTS`.
    """
    ledger.require_time()
    topics = {topic_of(system, workload) for system in systems}
    stage.kept |= topics
    try:
        for topic in sorted(topics):
            create_topic(stage.source, topic, workload.partitions)
            ledger.run(fill, stage.source, topic, workload)
        os.sync()  # or it is written to the disk while the first system is measured
        yield
    finally:
        stage.kept -= topics
        stage.clean()


def topic_of(system: str, workload: Workload) -> str:
    """Return the topic of a workload that a system mirrors.

    Each mirror of ours has one to itself: two pairs do not move the same topic.
    """
    is_another_of_ours = system in OF_OURS and system != OURS
    return f"{workload.topic}-{system}" if is_another_of_ours else workload.topic


def _catch_up(
    stage: Stage, systems: Sequence[str], workload: Workload, shift: int, ledger: Ledger
) -> Mapping[str, Outcome]:
    """Let systems mirror the filled topic of a workload by turns; `shift` says who is the first.

    Raises one of `ledger.FAULTS` where nobody can run. All mirrors are gone afterwards, and what
    they made as well.
    """
    pause(FREED_S)
    try:
        entrants = ledger.run(_between_clusters, stage, systems, workload, shift, ledger.left_s)
    finally:
        stage.clean()
    ramp_s = RAMP_S + RAMP_ROUND_TRIPS * stage.round_trip_s
    return _outcomes(entrants, workload, ledger, ramp_s)


def _relay_alone(folder: Path, workload: Workload, ledger: Ledger) -> Mapping[str, Outcome]:
    """Let the relay run where there are no clusters for the others."""
    return _outcomes(ledger.run(_feed_relay, folder, workload, ledger.left_s), workload, ledger)


async def _between_clusters(
    stage: Stage, systems: Sequence[str], workload: Workload, shift: int, limit_s: float
) -> Sequence[Entrant]:
    async with AsyncExitStack() as stack:
        client = open_cluster(stage.target.addresses, client_id="bench")
        target = await stack.enter_async_context(client)
        entrants = [
            await stack.enter_async_context(relaying(stage.folder / RELAY, workload))
            if system == RELAY
            else _mirror(stage, system, workload, target)
            for system in systems
        ]
        await take_turns(entrants, shift, limit_s)
        return entrants


async def _feed_relay(folder: Path, workload: Workload, limit_s: float) -> Sequence[Entrant]:
    async with relaying(folder, workload) as entrant:
        await take_turns([entrant], limit_s=limit_s)
        return [entrant]


def _mirror(stage: Stage, system: str, workload: Workload, target: Cluster) -> Entrant:
    names = stage.next_names()
    source_topic = topic_of(system, workload)
    topic = names.topic_on_target(system, source_topic)

    async def moved() -> int:
        return sum(await ends(target, topic, workload.partitions))

    def free() -> None:
        delete_topic(stage.target, topic)
        pause(FREED_S)

    return Entrant(
        system=system,
        racer=stage.mirror(system, names, [source_topic]),
        records=workload.records,
        moved=moved,
        leave=partial(trio.to_thread.run_sync, free),
    )


def _outcomes(
    entrants: Sequence[Entrant], workload: Workload, ledger: Ledger, ramp_s: float = RAMP_S
) -> Mapping[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for entrant in entrants:
        ledger.keep_log(entrant.system, entrant.log)
        try:
            outcomes[entrant.system] = entrant.fault or throughput(
                entrant.turns,
                records=entrant.records,
                record_bytes=workload.record_bytes,
                peak_resident_bytes=entrant.peak_resident_bytes,
                ramp_s=ramp_s,
            )
        except TooFewSamples as fault:
            outcomes[entrant.system] = fault
    return outcomes


async def watch(
    target: Served, topic: str, workload: Workload, pid: int, until: float = 1.0
) -> list[Sample]:
    """Look at the target's ends and at the mirror until that share of the records is there."""
    samples: list[Sample] = []
    wanted = workload.records * until
    async with open_cluster(target.addresses, client_id="bench") as cluster:
        with trio.move_on_after(LIMIT_S):
            while not samples or samples[-1].records < wanted:
                records = sum(await ends(cluster, topic, workload.partitions))
                cpu_s, resident = cpu_and_memory(pid)
                samples.append(
                    Sample(
                        at_s=monotonic(),
                        records=records,
                        cpu_s=cpu_s,
                        resident_bytes=resident,
                    )
                )
                await trio.sleep(LOOK_S)
            return samples
    reached = samples[-1].records if samples else 0
    raise RunFailed(f"{reached} of {workload.records} records within {LIMIT_S} s")


def figures(row: str, found: Throughput) -> dict[Cell, float]:
    """Return the figures by row."""
    return {
        (row, MIRROR_CPU): found.cpu_s_per_gib,
        (row, MIRROR_WARM_CPU): found.warm_cpu_s_per_gib,
        (row, MIRROR_RATE): found.mb_s,
        (row, MIRROR_RSS): found.peak_resident_mb,
    }
