"""Mirrors before a full topic: how fast they copy it, and what that costs."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias

import trio

from tests.bench.figures import (
    RAMP_S,
    Sample,
    Throughput,
    TooFewSamples,
    calm_for_all,
    throughput,
)
from tests.bench.heat import LIMIT_S, LOOK_S, Entrant, run_heat
from tests.bench.ledger import Cell, Ledger, RunFailed
from tests.bench.processes import cpu_and_memory
from tests.bench.relay import relaying
from tests.bench.results import MIRROR_CPU, MIRROR_RATE, MIRROR_RSS, MIRROR_WARM_CPU, RELAY
from tests.bench.served import Served, delete_topic, ends
from tests.bench.stage import Stage
from tests.bench.workloads import Workload
from wire.net import Cluster, open_cluster

BENCHES: Final = (MIRROR_CPU, MIRROR_WARM_CPU, MIRROR_RATE, MIRROR_RSS)
RAMP_ROUND_TRIPS: Final = 3

Outcome: TypeAlias = Throughput | Exception
"""What a system gave, or why there is nothing: one of `ledger.FAULTS`."""


def catch_up(
    stage: Stage, systems: Sequence[str], workload: Workload, shift: int, ledger: Ledger
) -> Mapping[str, Outcome]:
    """Let systems mirror the filled topic of a workload by turns; `shift` says who is the first.

    Raises one of `ledger.FAULTS` where nobody can run. All mirrors are gone afterwards, and what
    they made as well.
    """
    stage.hold_what_is_freed()
    try:
        entrants = ledger.run(_between_clusters, stage, systems, workload, shift)
    finally:
        stage.clean()
    ramp_s = RAMP_S + RAMP_ROUND_TRIPS * stage.round_trip_s
    return _outcomes(entrants, workload, ledger, ramp_s)


def relay_alone(folder: Path, workload: Workload, ledger: Ledger) -> Mapping[str, Outcome]:
    """Let the relay run where there are no clusters for the others."""
    return _outcomes(ledger.run(_relay_alone, folder, workload), workload, ledger)


async def _between_clusters(
    stage: Stage, systems: Sequence[str], workload: Workload, shift: int
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
        await run_heat(entrants, shift)
        return entrants


async def _relay_alone(folder: Path, workload: Workload) -> Sequence[Entrant]:
    async with relaying(folder, workload) as entrant:
        await run_heat([entrant])
        return [entrant]


def _mirror(stage: Stage, system: str, workload: Workload, target: Cluster) -> Entrant:
    names = stage.next_names()
    topic = names.topic_on_target(system, workload.topic)

    async def moved() -> int:
        return sum(await ends(target, topic, workload.partitions))

    def free() -> None:
        delete_topic(stage.target, topic)
        stage.hold_what_is_freed()

    return Entrant(
        system=system,
        racer=stage.mirror(system, names, [workload.topic]),
        records=workload.records,
        moved=moved,
        leave=partial(trio.to_thread.run_sync, free),
    )


def _outcomes(
    entrants: Sequence[Entrant], workload: Workload, ledger: Ledger, ramp_s: float = RAMP_S
) -> Mapping[str, Outcome]:
    looks = [look.at_s for entrant in entrants for turn in entrant.turns for look in turn]
    calm = ledger.neighbours.calm(min(looks), max(looks)) if looks else []
    counted = calm_for_all([each.turns for each in entrants if each.fault is None], calm)
    outcomes: dict[str, Outcome] = {}
    for entrant in entrants:
        ledger.keep_log(entrant.system, entrant.log)
        try:
            outcomes[entrant.system] = entrant.fault or throughput(
                entrant.turns,
                records=entrant.records,
                record_bytes=workload.record_bytes,
                peak_resident_bytes=entrant.peak_resident_bytes,
                calm=counted,
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
