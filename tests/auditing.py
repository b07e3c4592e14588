"""What an audit counts in the flows' only partition: by the program, and without its Spark.

An audit of a few records takes as long as a whole failback. `compared` takes the audit's own
snapshot, with its bounds and origins, but reads the logs itself and has the drill's comparer
judge them, of which `tests/drill/test_mirrored.py` shows that it finds what is planted.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import trio

from runtime.configuration.config import ClusterConfig, Configuration, load
from spark_audit.compare.outcomes import Kind
from spark_audit.snapshot.bounds import PartitionBounds
from spark_audit.snapshot.directions import comparable_flows, has_ways_back
from spark_audit.snapshot.origins import Part
from spark_audit.snapshot.side import Side
from spark_audit.snapshot.snapshot import TopicFilter, active_site, take_snapshot
from tests.drill.mirrored import compare
from wire.net import open_cluster
from wire.net.operations import read_partition
from wire.record_batch import iterate_records, parse_header

TIMEOUT_S = 600
"""An audit takes about ten seconds; this is for machines that do much else."""


def audited(file: Path, *, status: int) -> dict[str, dict[str, int]]:
    """Return what an audit, run as users run it, counts of records read and not equal."""
    ended = subprocess.run(
        [sys.executable, "-m", "spark_audit.cli", "run", file, "--json", "--output", file.parent],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == status, f"{ended.stdout}\n{ended.stderr}"
    found = {}
    for flow in json.loads(ended.stdout)["flows"]:
        (row,) = flow["partitions"]
        kinds = ("source_records", "target_records", *(kind.column for kind in Kind))
        found[flow["flow"]] = {kind: row[kind] for kind in kinds if row[kind]}
    return found


def compared(file: Path) -> dict[str, dict[str, int]]:
    """Return the same counts by the comparer; nothing may still be on its way."""
    return trio.run(_compared, load(file))


async def _compared(configuration: Configuration) -> dict[str, dict[str, int]]:
    active = await active_site(configuration) if has_ways_back(configuration) else None
    found = {}
    for flow, is_both_ways in comparable_flows(configuration, active):
        wants = TopicFilter(flow=flow, is_both_ways=is_both_ways)
        snapshot = await take_snapshot(configuration, wants, now_ms=0)
        (bounds,) = snapshot.partitions
        clusters = configuration.clusters
        source = await _read(clusters[flow.source], bounds, Side.SOURCE)
        target = await _read(clusters[flow.target], bounds, Side.TARGET)
        found[flow.name] = counts(source, target)
    return found


async def _read(cluster: ClusterConfig, bounds: PartitionBounds, side: Side) -> dict[int, str]:
    _, start, stop = bounds.side(side)
    async with open_cluster(cluster.bootstrap, client_id="test") as client:
        reading = read_partition(client, bounds.topic, bounds.partition, start, stop)
        batches = [bytes(data) async for _, data in reading]
    return contents(batches, bounds.part(side), range(start, stop))


def contents(batches: Iterable[bytes], part: Part | None, offsets: range) -> dict[int, str]:
    """Return what the records of a part of a log, None for all of it, are made of."""
    found = {}
    for batch in batches:
        header = parse_header(batch)
        if not header.is_control and (part is None or part.takes(header)):
            for record in iterate_records(batch):
                if record.offset in offsets:
                    _, *made_of = record
                    found[record.offset] = repr(made_of)
    return found


def counts(source: Mapping[int, str], target: Mapping[int, str]) -> dict[str, int]:
    """Count the records of both sides and, by kind, how the target differs."""
    offences = Counter(one.kind.lower() for one in compare({"log": source}, {"log": target}))
    sizes = {"source_records": len(source), "target_records": len(target)}
    return {kind: count for kind, count in (sizes | offences).items() if count}
