"""A mirror that starts before a full topic: how fast it copies it, and what that costs."""

from time import monotonic
from typing import Final

import trio

from tests.bench.figures import Sample, Throughput, throughput
from tests.bench.ledger import Cell, Ledger, RunFailed
from tests.bench.processes import ProcessGone, cpu_and_memory
from tests.bench.results import MIRROR_CPU, MIRROR_RATE, MIRROR_RSS
from tests.bench.served import Served, ends
from tests.bench.stage import Stage
from tests.bench.workloads import Workload
from wire.net import open_cluster

BENCHES: Final = (MIRROR_CPU, MIRROR_RATE, MIRROR_RSS)
LOOK_S: Final = 0.02
LIMIT_S: Final = 300


def catch_up(stage: Stage, system: str, workload: Workload, ledger: Ledger) -> Throughput:
    """Run one mirror over the filled topic of a workload and return its figures.

    Raises one of `ledger.FAULTS`. The mirror is gone afterwards, and what it made as well.
    """
    names = stage.next_names()
    mirror = stage.mirror(system, names, [workload.topic])
    topic = names.topic_on_target(system, workload.topic)
    try:
        mirror.start()
        samples = ledger.run(watch, stage.target, topic, workload, mirror.pid)
        return throughput(
            samples,
            records=workload.records,
            value_bytes=workload.value_bytes,
            calm=ledger.neighbours.calm(samples[0].at_s, samples[-1].at_s),
        )
    except ProcessGone as gone:
        words = mirror.log.splitlines() or ["nothing"]
        raise RunFailed(f"the mirror ended by itself; it last said: {words[-1]}") from gone
    finally:
        mirror.kill()
        stage.clean()


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
        (row, MIRROR_RATE): found.mb_s,
        (row, MIRROR_RSS): found.peak_resident_mb,
    }
