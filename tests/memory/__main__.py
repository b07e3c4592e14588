"""`python -m tests.memory [--partitions N ...]`: what a mirror of so many partitions has in memory.

A backlog in all partitions fills the mirror's buffers; its peak counts. What it costs the processor
afterwards, with nothing to mirror, is told beside it. Exit status: 0 it stays below the limits, 1
it does not, 2 some run came to no figure.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import trio

from mirror.state.in_flight import NEAR
from runtime.configuration.config import load
from tests.bench.measure.ledger import RunFailed, run_reported, say
from tests.bench.measure.processes import cpu_and_memory, peak_bytes
from tests.bench.measure.results import OURS
from tests.bench.measure.workloads import KIB, MIB, Workload
from tests.bench.stage.clusters import Stage, cold_stage, run_apache, run_bundled
from tests.bench.stage.filling import fill
from tests.bench.stage.served import create_topic, ends
from tests.memory.figures import BASE_PARTITIONS, MANY_PARTITIONS, Footprint
from wire.net import NetworkFault, open_cluster

EACH: Final = 250
"""Partitions of one topic at most."""
REST_S: Final = 5.0
AT_REST_S: Final = 10.0
"""So long it is looked at behind that: what it does without work, it does every few seconds."""
LOOK_S: Final = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each number of partitions between fresh clusters."""
    options = _parser().parse_args(arguments)
    return max(
        run_reported(f"{partitions} partitions", partial(_reach, partitions, options))
        for partitions in options.partitions
    )


def _reach(partitions: int, options: argparse.Namespace) -> int:
    found = _measure(partitions, options)
    say(str(found))
    return 0 if found.is_reached else 1


def _measure(partitions: int, options: argparse.Namespace) -> Footprint:
    run_site = run_apache if options.apache else run_bundled
    with (
        tempfile.TemporaryDirectory() as name,
        cold_stage(Path(name), run_site, run_site) as stage,
    ):
        each = min(partitions, EACH)
        size = options.backlog_mb * MIB * each // partitions
        workload = Workload(batch_bytes=4 * KIB, partitions=each, data_bytes=size)
        topics = [f"memory-{number}" for number in range(-(-partitions // each))]
        for topic in topics:
            create_topic(stage.source, topic, each)
            trio.run(fill, stage.source, topic, workload)
        return _watch(stage, topics, workload, limit_s=options.limit_s)


def _watch(stage: Stage, topics: Sequence[str], workload: Workload, *, limit_s: float) -> Footprint:
    names = stage.next_names()
    mirror = stage.mirror(OURS, names, topics)
    mirror.start()
    try:
        trio.run(_wait_mirrored, stage, topics, workload, limit_s)
        trio.run(trio.sleep, REST_S)
        began_s, _ = cpu_and_memory(mirror.pid)
        trio.run(trio.sleep, AT_REST_S)
        ended_s, rest_bytes = cpu_and_memory(mirror.pid)
        return Footprint(
            partitions=workload.partitions * len(topics),
            mirrored_bytes=workload.value_bytes * len(topics),
            buffer_bytes=_buffers(stage, names.source),
            most_bytes=peak_bytes(mirror.pid),
            rest_bytes=rest_bytes,
            rest_load=(ended_s - began_s) / AT_REST_S,
        )
    finally:
        mirror.kill()


async def _wait_mirrored(
    stage: Stage, topics: Sequence[str], workload: Workload, limit_s: float
) -> None:
    """Return when the target has every record."""
    wanted = workload.records * len(topics)
    seen = 0
    async with open_cluster(stage.target.addresses, client_id="bench") as cluster:
        with trio.move_on_after(limit_s):
            while True:
                try:
                    counts = [await ends(cluster, topic, workload.partitions) for topic in topics]
                except NetworkFault:
                    counts = []  # a topic is not there yet
                seen = sum(map(sum, counts))
                if seen >= wanted:
                    return
                await trio.sleep(LOOK_S)
    raise RunFailed(f"{seen} of {wanted} records are on the target after {limit_s:g} s")


def _buffers(stage: Stage, source: str) -> int:
    """Return what the configuration lets the mirror's one flow hold."""
    [flow] = load(stage.folder / source / "dc.yaml").flows
    return NEAR.in_flight_bytes + flow.fetch_max_bytes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.memory", description=__doc__)
    usual = [BASE_PARTITIONS, MANY_PARTITIONS]
    parser.add_argument("--partitions", type=int, nargs="+", default=usual)
    parser.add_argument("--backlog-mb", type=int, default=256, help="in all partitions together")
    parser.add_argument("--limit-s", type=float, default=600, help="for mirroring the backlog")
    parser.add_argument("--apache", action="store_true", help="between Apache Kafka brokers")
    return parser


if __name__ == "__main__":
    sys.exit(main())
