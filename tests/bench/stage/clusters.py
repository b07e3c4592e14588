"""Two clusters and a witness, and a mirror of any system between them, fresh for each run."""

import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import trio

from runtime.process.ports import free_port
from tests.bench.measure.machine import KIND, MM2_VERSION
from tests.bench.measure.racers import ChildRacer, Mirror, Pinned
from tests.bench.measure.results import (
    MM2_DEFAULT,
    MM2_TUNED,
    OF_OURS,
    OURS_EARLIER,
    OURS_IN_PYTHON,
)
from tests.bench.measure.workloads import KIB, MIB, Workload
from tests.bench.stage.filling import drain, fill
from tests.bench.stage.served import PERISHABLE, Served, create_topic, delete_topics
from tests.clusters import RunningCluster
from tests.interop.peers import (
    FULL_SPEED,
    SINGLE_COPY,
    TUNED,
    KafkaCluster,
    MirrorMaker,
    Site,
)
from tests.interop.peers.child import start_child
from tests.interop.peers.resources import require_disk

BROKER_HEAP_MB: Final = 1024
MM2_HEAP_MB: Final = 2048
"""What their start scripts give them."""
STOP_TIMEOUT_S: Final = 30
WARM_UP: Final = Workload(batch_bytes=4 * KIB, data_bytes=64 * MIB)
"""Many small batches: what counts is how often a path is taken."""
WITNESS_TIMEOUT_S: Final = 60
WITHOUT_KERNEL: Final = "    chunk_kernel: false\n"

RunCluster: TypeAlias = Callable[[Path, str], AbstractContextManager[Served]]
"""Run a cluster of that name with its data in that folder."""

CONFIGURATION: Final = """\
clusters:
  {source}: {{bootstrap: "{source_bootstrap}"}}
  {target}: {{bootstrap: "{target_bootstrap}"}}
flows:
  - source: {source}
    target: {target}
    topics: {{include: [{topics}]}}
    groups: {{include: ["bench-.*"]}}
    replication_factor: 1
{more}coordination: {{zookeeper: "{witness}", path: "/{source}-{target}"}}
metrics: {{mirror_port: 0, failover_port: 0, audit_port: 0}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What both clusters are called in one run: nothing of another run is taken up again."""

    source: str
    target: str

    def topic_on_target(self, system: str, topic: str) -> str:
        """Return where a topic of the source goes."""
        return topic if system in OF_OURS else f"{self.source}.{topic}"


@dataclass(slots=True, kw_only=True)
class OurMirror(ChildRacer):
    """`mirror run` as a child process."""

    configuration: str
    checkout: Path | None = None
    """Whose code runs; None: this one's."""

    def start(self) -> None:
        """Start it; it comes up a moment later."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "dc.yaml"
        file.write_text(self.configuration)
        command = [sys.executable, "-m", "mirror.cli", "run", str(file)]
        if self.checkout is not None:  # -P: and not what is in the working directory
            command = ["env", f"PYTHONPATH={self.checkout}", command[0], "-P", *command[1:]]
        self._child = start_child("mirror", command, log=self.folder / "mirror.log")

    def stop(self) -> None:
        """End it as SIGTERM does."""
        if self._child is not None:
            self._child.stop(patience_s=STOP_TIMEOUT_S)
            self._child = None


@dataclass(slots=True, kw_only=True)
class Stage:
    """What runs; `kept` are the source's topics that outlive a run."""

    folder: Path
    source: Served
    target: Served
    witness: str
    kept: set[str] = field(default_factory=set)
    earlier: Path | None = None
    """The checkout of OURS_EARLIER."""
    mirror_cores: Collection[int] = ()
    """The processors that mirrors may use; empty: all."""
    round_trip_s: float = 0.0
    """Added between the clusters."""
    _runs: Iterator[int] = field(default_factory=partial(count, 1))

    def next_names(self) -> Names:
        """Return names that no other run has."""
        run = next(self._runs)
        return Names(source=f"s{run}", target=f"t{run}")

    def mirror(self, system: str, names: Names, topics: Sequence[str]) -> Mirror:
        """Return a mirror of that system for these topics and the groups `bench-*`."""
        mirror = self._mirror(system, names, topics)
        return Pinned(mirror=mirror, cores=self.mirror_cores) if self.mirror_cores else mirror

    def _mirror(self, system: str, names: Names, topics: Sequence[str]) -> Mirror:
        folder = self.folder / names.source
        if system in OF_OURS:
            return OurMirror(
                folder=folder,
                checkout=self.earlier if system == OURS_EARLIER else None,
                configuration=CONFIGURATION.format(
                    source=names.source,
                    target=names.target,
                    source_bootstrap=self.source.bootstrap,
                    target_bootstrap=self.target.bootstrap,
                    witness=self.witness,
                    topics=", ".join(f'"{topic}"' for topic in topics),
                    more=WITHOUT_KERNEL if system == OURS_IN_PYTHON else "",
                ),
            )
        assert system in {MM2_DEFAULT, MM2_TUNED}
        return MirrorMaker(
            version=MM2_VERSION,
            folder=folder,
            source=Site(alias=names.source, bootstrap=self.source.bootstrap),
            target=Site(alias=names.target, bootstrap=self.target.bootstrap),
            settings={
                **SINGLE_COPY,
                "topics": ",".join(topics),
                "groups": "bench-.*",
                **(TUNED if system == MM2_TUNED else {}),
            },
            heap_mb=MM2_HEAP_MB,
            jvm_options=FULL_SPEED,
        )

    def clean(self) -> None:
        """Delete what a run left on both clusters."""
        delete_topics(self.target)
        delete_topics(self.source, self.kept)


def apache_stage(
    folder: Path, data_mb: int, run_source: RunCluster | None = None
) -> AbstractContextManager[Stage]:
    """Run two single Apache Kafka brokers and a witness; the source may be another one.

    `data_mb` is what all brokers store at once. Raises PeerUnavailable or PeerFailed.
    """
    return _stage_of(folder, data_mb, run_source or run_apache, run_apache)


def bundled_stage(folder: Path, data_mb: int) -> AbstractContextManager[Stage]:
    """Run two single bundled brokers, each with its ZooKeeper, and a witness."""
    return _stage_of(folder, data_mb, run_bundled, run_bundled)


@contextmanager
def _stage_of(
    folder: Path, data_mb: int, run_source: RunCluster, run_target: RunCluster
) -> Iterator[Stage]:
    folder.mkdir(parents=True, exist_ok=True)
    require_disk(folder, data_mb)
    with cold_stage(folder, run_source, run_target) as stage:
        for cluster in (stage.source, stage.target):
            warm_up(cluster)
        yield stage


@contextmanager
def cold_stage(folder: Path, run_source: RunCluster, run_target: RunCluster) -> Iterator[Stage]:
    """Run two clusters that have not worked yet, and a witness."""
    with (
        run_source(folder, "dc1") as source,
        run_target(folder, "dc2") as target,
        run_witness(folder) as witness,
    ):
        yield Stage(folder=folder / "runs", source=source, target=target, witness=witness)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make a folder, and remove it behind the block with all that is in it."""
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def warm_up(broker: Served) -> None:
    """Write and read a topic, and delete it."""
    create_topic(broker, WARM_UP.topic, WARM_UP.partitions)
    trio.run(fill, broker, WARM_UP.topic, WARM_UP)
    each = WARM_UP.records_per_batch * WARM_UP.batches_per_partition
    trio.run(drain, broker, WARM_UP.topic, [each] * WARM_UP.partitions)
    delete_topics(broker)


@contextmanager
def run_apache(
    folder: Path, name: str, brokers: int = 1, settings: Mapping[str, str] = PERISHABLE
) -> Iterator[KafkaCluster]:
    """Run Apache Kafka brokers with the optimising compiler on."""
    cluster = KafkaCluster(
        name=name,
        kind=KIND,
        data=folder / name,
        broker_count=brokers,
        overrides=settings,
        heap_mb=BROKER_HEAP_MB,
        jvm_options=FULL_SPEED,
    )
    folder.mkdir(parents=True, exist_ok=True)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.kill()  # its data is thrown away: nothing to close in order


@contextmanager
def run_bundled(
    folder: Path, name: str, brokers: int = 1, settings: Mapping[str, str] = PERISHABLE
) -> Iterator[RunningCluster]:
    """Run bundled brokers with their ZooKeeper. Raises ClusterFailed."""
    cluster = RunningCluster(
        name=name, data=folder / name, broker_count=brokers, overrides=settings
    )
    folder.mkdir(parents=True, exist_ok=True)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.kill()


@contextmanager
def run_witness(folder: Path) -> Iterator[str]:
    """Run the ZooKeeper that the daemon coordinates by; its address."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "runtime.process.zookeeper_server",
        "--data",
        str(folder / "witness"),
    ]
    child = start_child("witness", [*command, "--port", str(port)], log=folder / "witness.log")
    try:
        child.wait_until(lambda: "ZooKeeper serves" in child.said(), timeout_s=WITNESS_TIMEOUT_S)
        yield f"127.0.0.1:{port}"
    finally:
        child.kill()
