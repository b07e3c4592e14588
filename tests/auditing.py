"""What an audit counts in the flows' only partition: by the command, and by another's eyes.

`audited` runs the command from the file to the stored verdict, in a Spark without a JVM. `compared`
takes the audit's own snapshot, with its bounds and origins, but reads the logs itself and has the
drill's comparer judge them, of which `tests/drill/test_mirrored.py` shows that it finds what is
planted.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trio

from runtime.configuration.config import ClusterConfig, Configuration, load
from spark_audit.compare.key_ends import KeyEnds
from spark_audit.compare.outcomes import Kind
from spark_audit.compare.settling import Differences
from spark_audit.scan.scan_plan import ScanTask
from spark_audit.session import spark_failures
from spark_audit.snapshot.bounds import PartitionBounds
from spark_audit.snapshot.directions import comparable_flows, has_ways_back
from spark_audit.snapshot.origins import Part
from spark_audit.snapshot.side import Side
from spark_audit.snapshot.snapshot import TopicFilter, active_site, take_snapshot
from spark_audit.spark_reader import SparkReader
from tests.commands import run_audit_command
from tests.doubles.local_spark import LocalSpark, local_sessions
from tests.drill.mirrored import compare
from wire.net import open_cluster
from wire.net.operations import read_partition
from wire.record_batch import iterate_records, parse_header


@dataclass(frozen=True, slots=True)
class InProcess:
    """Reads logs as Spark's workers do, in this process; see `flow_audit.Reader`."""

    spark: object
    meanwhile: Callable[[Sequence[ScanTask]], Sequence[ScanTask]] = list
    """What happens before logs are read, and what is then read instead of the tasks."""

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        """Return the rows of these tasks."""
        return _reader().scan(list(self.meanwhile(tasks)))

    def settle(self, questions: Sequence[Differences | KeyEnds]) -> pa.Table:
        """Return the judgements of these partitions."""
        return _reader().settle(questions)


def _reader() -> SparkReader:
    spark: Any = LocalSpark()
    return SparkReader(spark)


def without_spark(
    patch: pytest.MonkeyPatch, reader: Callable[[object], object] = InProcess
) -> None:
    """Let audits and digests read by another reader; what Spark raises in it is Spark failing."""

    @contextmanager
    def no_session(**_: object) -> Iterator[None]:
        with spark_failures():
            yield None

    for program in ("run", "site_digest"):
        patch.setattr(f"spark_audit.{program}.open_session", no_session)
        patch.setattr(f"spark_audit.{program}.SparkReader", reader)


def audited(file: Path, *words: str, status: int) -> dict[str, dict[str, int]]:
    """Return what the audit's command counts of records read and not equal."""
    with local_sessions():
        ended = run_audit_command("run", file, *words, "--json", "--output", file.parent)
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
        reading = read_partition(client, *bounds.place(side), start, stop)
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
