"""How fast an audit's worker reads the logs of a site that is far away.

One worker of an audit reads a topic's logs, in this process: what Spark adds is the same near and
far. The site is behind the delaying process in both rows, so the line is as fast in both.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Final
from uuid import UUID

import trio

from runtime.process.ports import free_port
from spark_audit.scan.scan import scan
from spark_audit.scan.scan_plan import ScanTask, read_together, splits
from spark_audit.scan.scan_rows import RowKind, ScannedLog
from spark_audit.snapshot.side import Side
from tests.bench.measure.ledger import Cell, Ledger, RunFailed
from tests.bench.measure.results import AUDIT_FAR, OURS
from tests.bench.measure.workloads import Workload
from tests.bench.stage.distance import COMES_UP_S, HOST, LISTENS, FarBroker
from tests.bench.stage.filling import fill_alike
from tests.bench.stage.served import PERISHABLE, create_topic
from tests.clusters import RunningCluster
from tests.interop.peers.child import start_child
from wire.errors import ErrorCode
from wire.net import open_cluster
from wire.net.operations import list_offsets
from wire.topic_partition import TopicPartition

ROUND_TRIPS_MS: Final = (0, 80)
_LATEST: Final = -1
MB: Final = 1e6


def far_cells(workloads: Sequence[Workload]) -> list[Cell]:
    """Return the rows: each workload near and far."""
    return [(_row(one, far), AUDIT_FAR) for one in workloads for far in ROUND_TRIPS_MS]


def run_far_logs(folder: Path, workloads: Sequence[Workload], runs: int, ledger: Ledger) -> None:
    """Read the logs near and far by turns."""
    port, real_port = free_port(), free_port()
    settings = {**PERISHABLE, "advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}
    cluster = RunningCluster(
        name="far", data=folder / "far", broker_count=1, overrides=settings, port=real_port
    )
    site = FarBroker(port=port, pids={})
    topics = {f"far-{number}": one for number, one in enumerate(workloads)}
    try:
        with _at_a_distance(folder, port, real_port, 0):
            cluster.start()
            for topic, one in topics.items():
                create_topic(site, topic, one.partitions)
                trio.run(fill_alike, [site], topic, one)
        for run in range(runs):
            for round_trip_ms in ROUND_TRIPS_MS:
                with _at_a_distance(folder, port, real_port, round_trip_ms):
                    for topic, one in topics.items():
                        _measure(site, topic, one, round_trip_ms, run, ledger)
    finally:
        cluster.kill()


def _measure(
    site: FarBroker, topic: str, one: Workload, round_trip_ms: int, run: int, ledger: Ledger
) -> None:
    cell = _row(one, round_trip_ms), AUDIT_FAR

    def measure() -> Mapping[Cell, float]:
        ledger.require_time()
        tasks = trio.run(_tasks, site, topic, one.partitions)
        began = monotonic()
        rows = [row for some in read_together(tasks) for of_task in scan(some) for row in of_task]
        took = monotonic() - began
        failed = [row.detail or "" for row in rows if row.kind == RowKind.FAILURE.value]
        if failed:
            raise RunFailed(failed[0])
        return {cell: one.value_bytes / MB / took}

    ledger.try_run(OURS, run, [cell], measure)


def _row(one: Workload, round_trip_ms: int) -> str:
    return f"{one.name}, {round_trip_ms} ms away" if round_trip_ms else f"{one.name}, near"


@contextmanager
def _at_a_distance(folder: Path, port: int, real_port: int, round_trip_ms: int) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.bench.stage.distance"]
    command += [str(port), str(real_port), str(round_trip_ms / 2)]
    child = start_child("distance", command, log=folder / f"distance-{round_trip_ms}.log")
    try:
        child.wait_until(lambda: LISTENS in child.said(), timeout_s=COMES_UP_S)
        yield
    finally:
        child.kill()


async def _tasks(site: FarBroker, topic: str, partitions: int) -> list[ScanTask]:
    """Return what an audit reads of the topic."""
    async with open_cluster(site.addresses, client_id="bench") as cluster:
        topic_id = (await cluster.metadata([topic])).topics[topic].topic_id
        places = {TopicPartition(topic, number) for number in range(partitions)}
        ends = await list_offsets(cluster, places, _LATEST)
    return [
        _task(site, topic_id, place, start, stop, end)
        for place, end in sorted(ends.items())
        if not isinstance(end, ErrorCode)
        for start, stop in splits(0, end)
    ]


def _task(
    site: FarBroker, topic_id: UUID, place: TopicPartition, start: int, stop: int, end: int
) -> ScanTask:
    return ScanTask(
        cluster="far",
        bootstrap=tuple(site.addresses),
        topic_id=topic_id,
        place=place,
        log=ScannedLog(side=Side.SOURCE, topic=place.topic, partition=place.partition),
        start=start,
        stop=stop,
        log_stop=end,
        starts_log=start == 0,
    )
