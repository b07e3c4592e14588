"""`python -m tests.bench.audits`: the audit beside Spark's own Kafka connector, on the same data.

The connector reads both logs and a full outer join compares partition, a digest of each record, and
how often it is there: the same question, answered with counts only. Both count everything that
their process tree takes; the fixed price is that of a topic with ten records. The limit is a
reader in this process that fetches the same logs and looks at each batch's header.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, process_time
from typing import Final

import trio

from tests.bench.measure.ledger import say
from tests.bench.measure.processes import ProcessGone, cpu_and_memory
from tests.bench.measure.workloads import KIB, MIB, Workload
from tests.bench.stage.clusters import run_bundled
from tests.bench.stage.filling import drain
from tests.bench.stage.served import create_topic
from tests.clusters import RunningCluster
from tests.dc_yaml import dc_yaml, flow
from tests.interop.peers.artifacts import connector_jars
from wire.compression import Compression
from wire.net import open_cluster
from wire.net.operations import append
from wire.record_batch import Record, build_batch

PARTITIONS: Final = 4
TINY: Final = Workload(record_bytes=60, partitions=PARTITIONS, data_bytes=1)
LOOK_S: Final = 0.1
TIMEOUT_S: Final = 900
LEAST_SHARE: Final = 0.15
"""Between equal runs the fixed price differs by so much on a busy machine."""
JOIN: Final = """
import sys
from pyspark.sql import functions as F
from spark_audit.session import Cluster, open_session
jars, source, target, topic = sys.argv[1:]
settings = {"spark.driver.extraClassPath": jars, "spark.executor.extraClassPath": jars}
with open_session(cores=2, driver_memory="3g", cluster=Cluster(settings=settings)) as spark:
    def log(servers):
        read = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
        rows = read.option("subscribe", topic).option("includeHeaders", "true").load()
        content = F.concat_ws("|", F.hex("key"), F.hex("value"), F.col("timestamp").cast("string"))
        digests = rows.select("partition", F.sha1(content).alias("d"))
        return digests.groupBy("partition", "d").count()
    joined = log(source).withColumnRenamed("count", "ours").join(
        log(target).withColumnRenamed("count", "theirs"), ["partition", "d"], "full_outer"
    )
    print(joined.where("not (ours <=> theirs)").count())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a process tree took."""

    cpu_s: float
    seconds: float
    worker_bytes: int
    """The most that one Python process of it had in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """One workload on both clusters."""

    name: str
    workload: Workload

    @property
    def mb(self) -> float:
        """Return the values of both logs, before compression."""
        return 2 * self.workload.value_bytes / 1e6


def measure(command: Sequence[str], folder: Path) -> Cost:
    """Run a command in a session of its own and add up what all processes of that take."""
    began = monotonic()
    with (folder / "output").open("w") as output:
        child = subprocess.Popen(
            command, stdout=output, stderr=output, start_new_session=True, cwd=folder
        )
        spent: dict[int, float] = {}
        most = 0
        while child.poll() is None and monotonic() < began + TIMEOUT_S:
            for pid in _of_session(child.pid):
                try:
                    spent[pid], resident = cpu_and_memory(pid)
                except ProcessGone:
                    continue
                if pid != child.pid and _is_python(pid):
                    most = max(most, resident)
            trio.run(trio.sleep, LOOK_S)
    if child.returncode != 0:
        raise SystemExit(f"{command[:4]}: {(folder / 'output').read_text()[-2_000:]}")
    return Cost(cpu_s=sum(spent.values()), seconds=monotonic() - began, worker_bytes=most)


def _of_session(leader: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == leader:
                    yield int(entry.name)
            except ProcessLookupError:
                continue


def _is_python(pid: int) -> bool:
    try:
        return "python" in Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return False


async def write(clusters: Sequence[RunningCluster], data: Data) -> None:
    """Write the same batches to both clusters; no two records are alike."""
    workload = data.workload
    number = 0
    addresses = [one.addresses for one in clusters]
    async with (
        open_cluster(addresses[0], client_id="bench") as first,
        open_cluster(addresses[1], client_id="bench") as second,
    ):
        for _ in range(workload.batches_per_partition):
            for partition in range(workload.partitions):
                records = []
                for place in range(workload.records_per_batch):
                    number += 1
                    value = b"%012d " % number * (workload.record_bytes // 13 + 1)
                    records.append(
                        Record(place, 1_700_000_000_000, None, value[: workload.record_bytes])
                    )
                batch = build_batch(records, compression=workload.codec)
                for cluster in (first, second):
                    await append(cluster, data.name, partition, batch)


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mb", type=int, default=512, help="of each log; of 60 B an eighth of it")
    parser.add_argument("--only", action="append", help="measure only this; may be repeated")
    options = parser.parse_args()
    whole = options.mb * MIB
    kinds = [
        Data(name="tiny", workload=TINY),
        Data(name="kib-16", workload=_workload(KIB, 16 * KIB, whole)),
        Data(name="kib-100", workload=_workload(KIB, 100 * KIB, whole)),
        Data(name="b-60", workload=_workload(60, 16 * KIB, whole // 8)),
        Data(name="zstd", workload=_workload(KIB, 16 * KIB, whole, Compression.ZSTD)),
        Data(name="kib-16-more", workload=_workload(KIB, 16 * KIB, 4 * whole)),
    ]
    if options.only:
        kinds = [kinds[0], *(one for one in kinds if one.name in options.only)]
    jars = connector_jars()
    with tempfile.TemporaryDirectory(prefix="audits-") as name:
        folder = Path(name)
        with (
            run_bundled(folder / "one", "dc1") as dc1,
            run_bundled(folder / "two", "dc2") as dc2,
        ):
            _measure_all(folder, (dc1, dc2), kinds, jars)
    return 0


def _workload(
    record: int, batch: int, data: int, codec: Compression = Compression.NONE
) -> Workload:
    return Workload(
        record_bytes=record,
        batch_bytes=batch,
        partitions=PARTITIONS,
        data_bytes=data,
        codec=codec,
    )


def _measure_all(
    folder: Path,
    clusters: tuple[RunningCluster, RunningCluster],
    kinds: Sequence[Data],
    jars: str,
) -> None:
    fixed: dict[str, float] = {}
    for data in kinds:
        for cluster in clusters:
            create_topic(cluster, data.name, PARTITIONS)
        trio.run(write, clusters, data)
        for system, command in _commands(folder, clusters, data, jars).items():
            tell_cost(data, system, measure(command, folder), fixed)
        began = process_time()
        ends = [data.workload.batches_per_partition * data.workload.records_per_batch] * PARTITIONS
        for cluster in clusters:
            trio.run(drain, cluster, data.name, ends)
        tell_cost(
            data, "limit", Cost(cpu_s=process_time() - began, seconds=0, worker_bytes=0), fixed
        )


def _commands(
    folder: Path, clusters: tuple[RunningCluster, RunningCluster], data: Data, jars: str
) -> dict[str, list[str]]:
    file = folder / "dc.yaml"
    dc1, dc2 = clusters
    patient = {"in_flight_limit_ms": 10**12, "cores": 2}
    file.write_text(
        dc_yaml(
            flow(topics=[data.name]),
            dc1=dc1.bootstrap,
            dc2=dc2.bootstrap,
            witness=dc2.zookeeper,
            audit=patient,
        )
    )
    ours = [sys.executable, "-m", "spark_audit.cli", "run", str(file), "--output"]
    join = [sys.executable, "-c", JOIN, jars, dc1.bootstrap, dc2.bootstrap, data.name]
    return {"ours": [*ours, str(folder / "result")], "connector": join}


def tell_cost(data: Data, system: str, cost: Cost, fixed: dict[str, float]) -> None:
    """Say what one measurement came to; the first of a system is its fixed price."""
    if data.workload is TINY:
        fixed[system] = cost.cpu_s
        say(f"{'fixed price':<12} {system:<10} {cost.cpu_s:6.1f} CPU-s")
        return
    own = cost.cpu_s - fixed[system]
    records = 2 * data.workload.records
    if own <= LEAST_SHARE * fixed[system]:
        rates = "no more than the fixed price varies by, so no rate: take more data"
    else:
        rates = f"{data.mb / own:,.0f} MB/s, {records / own:,.0f} records/s a core"
    say(
        f"{data.name:<12} {system:<10} {cost.cpu_s:6.1f} CPU-s, {own:6.1f} behind the fixed price: "
        f"{rates}; {cost.seconds:.0f} s, a Python worker had {cost.worker_bytes / MIB:.0f} MiB"
    )


if __name__ == "__main__":
    sys.exit(main())
