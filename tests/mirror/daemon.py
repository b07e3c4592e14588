"""A running `mirror run` for tests, and what the two logs hold, batch by batch."""

import json
import re
import signal
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import trio
from kazoo.client import KazooClient

from mirror.report.status import FlowReport, GroupReport, PartitionReport, StatusReport
from offset_translation import checkpoint
from offset_translation.checkpoint import Checkpoint, checkpoint_topic_name
from runtime.coordination.map_writers import MapWriters
from runtime.coordination.witness import WitnessPaths
from tests.clusters import RunningCluster
from tests.dc_yaml import dc_yaml, flow
from tests.failover.two_sites import (
    Sites,
    pause,
)
from tests.forked import Process, start_program
from tests.zookeeper import look
from wire.errors import ErrorCode
from wire.net import open_cluster
from wire.net.operations import append, list_offsets, read_partition
from wire.record_batch import BatchHeader, Record, build_batch, iterate_records
from wire.topic_partition import TopicPartition

TIMEOUT_S = 120
STOP_TIMEOUT_S = 25
LONGEST_PAUSE_S = 0.2
"""A daemon that is looked at too often does little else."""

MAP_WRITER = 90_001
"""A producer id that no cluster gives during a test."""
OFTEN: dict[str, Any] = {"discovery_interval_ms": 300}
SHORT_SESSION = {"session_timeout_ms": 2_000}


def one_flow(
    dc1: str, dc2: str, witness: str, path: str, topics: str, more: str = "", *, back: str = ""
) -> str:
    """Return a configuration of one flow, to whose settings `more` lines are added.

    `back` are the topics of a flow in the other direction, which rests: its map is read.
    """
    return dc_yaml(
        flow("dc1", "dc2", topics, more, **OFTEN),
        *([flow("dc2", "dc1", back)] if back else []),
        dc1=dc1,
        dc2=dc2,
        witness=witness,
        path=path,
        coordination=SHORT_SESSION,
        **({"failover": {"initial_active": "dc1"}} if back else {}),
    )


def wait_until(what: str, condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
    """Look again and again until it holds."""
    deadline, pause_s = monotonic() + timeout_s, 0.05
    while not condition():
        assert monotonic() < deadline, f"not within {timeout_s} s: {what}"
        pause(pause_s)
        pause_s = min(1.2 * pause_s, LONGEST_PAUSE_S)


async def wait_until_aside(what: str, condition: Callable[[], bool]) -> None:
    """Look again and again, in a thread, so that trio goes on."""
    with trio.move_on_after(TIMEOUT_S):
        while True:
            if await trio.to_thread.run_sync(condition):
                return
            await trio.sleep(0.1)
    raise AssertionError(f"not within {TIMEOUT_S} s: {what}")


def configure(sites: Sites, folder: Path, topics: str, more: str = "", *, back: str = "") -> Path:
    """Write a configuration with a tree in the witness of its own."""
    file = folder / "dc.yaml"
    addresses = (sites.dc1.bootstrap, sites.dc2.bootstrap, sites.witness)
    file.write_text(one_flow(*addresses, f"/{folder.name}", topics, more, back=back))
    return file


def register_map_writer(sites: Sites, folder: Path, source: str, target: str) -> None:
    """Have the witness of a configuration in this folder know MAP_WRITER as a program of ours."""
    path = WitnessPaths(root=f"/{folder.name}").map_writers(source, target)
    client = look(sites.witness)
    client.start()
    client.create(path, MapWriters(registered={MAP_WRITER: 0}).encode(), makepath=True)
    client.stop()
    client.close()


def map_batch(*records: tuple[bytes, bytes | None]) -> bytes:
    """Return records of a map as MAP_WRITER writes them."""
    return build_batch(
        [Record(at, 0, *record) for at, record in enumerate(records)],
        producer_id=MAP_WRITER,
        producer_epoch=0,
        base_sequence=0,
    )


@dataclass(slots=True)
class MirrorProcess:
    """One daemon; may be killed and started again on the same configuration."""

    configuration: Path
    name: str = "mirror"
    options: tuple[str, ...] = ()
    _process: Process | None = None
    _log_starts_at: int = field(default=0)

    @property
    def pid(self) -> int:
        """Return the process id of the daemon that runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """Return what the present daemon has said."""
        return self._log_path.read_text(errors="replace")[self._log_starts_at :]

    @property
    def _log_path(self) -> Path:
        return self.configuration.parent / f"{self.name}.log"

    def start(self) -> None:
        """Start a daemon; does not wait for it."""
        self._log_path.touch()
        self._log_starts_at = len(self._log_path.read_text(errors="replace"))
        with self._log_path.open("ab") as log:
            self._process = start_program(
                "mirror.cli", "run", *self.options, str(self.configuration), output=log
            )

    def kill(self) -> None:
        """End it by SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """End it by SIGTERM; return its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_TIMEOUT_S)

    def hang_up(self) -> None:
        """Have it read its configuration again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def end(self) -> None:
        """Make sure that it is gone."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def status(self) -> FlowReport:
        """Return the first flow's report; that of a daemon that has just been started."""
        wait_until("the metrics port", lambda: "metrics on port" in self.log)
        port = re.findall(r"metrics on port (\d+)", self.log)[-1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=60) as answer:
            report: StatusReport = json.load(answer)
        return report["flows"][0]

    def metrics(self) -> str:
        """Return the page of metrics."""
        port = re.findall(r"metrics on port (\d+)", self.log)[-1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text: str = answer.read().decode()
        return text

    def partition(self, topic: str, index: int = 0) -> PartitionReport | None:
        """Return one partition's line, None before it is known."""
        for one in self.status()["partitions"]:
            if (one["topic"], one["partition"]) == (topic, index):
                return one
        return None

    def group(self, group: str, topic: str, index: int = 0) -> GroupReport | None:
        """Return one group's line, None before it is known."""
        for one in self.status()["groups"]:
            if (one["group"], one["topic"], one["partition"]) == (group, topic, index):
                return one
        return None

    def wait_state(self, topic: str, state: str, index: int = 0) -> PartitionReport:
        """Return the partition's line once it is in this state."""
        seen: list[PartitionReport | None] = [None]

        def is_there() -> bool:
            seen[0] = self.partition(topic, index)
            return seen[0] is not None and seen[0]["state"] == state

        try:
            wait_until(f"{topic}-{index} {state}", is_there)
        except AssertionError as late:
            raise AssertionError(f"{late}; it is {seen[0]}; {self.log}") from late
        assert seen[0] is not None
        return seen[0]

    def mirrored_end(self, topic: str, index: int = 0) -> int:
        """Return the source offset before which everything is mirrored, 0 before it is known."""
        one = self.partition(topic, index)
        return 0 if one is None else one["mirrored_source_end"] or 0

    def wait_mirrored(self, topic: str, source_end: int, index: int = 0) -> None:
        """Wait until everything before this source offset is mirrored."""

        def is_there() -> bool:
            return self.mirrored_end(topic, index) >= source_end

        try:
            wait_until(f"{topic}-{index} mirrored to {source_end}", is_there)
        except AssertionError as late:
            raise AssertionError(f"{late}; {self.partition(topic, index)}; {self.log}") from late


@contextmanager
def run_mirror(configuration: Path, name: str = "mirror", *options: str) -> Iterator[MirrorProcess]:
    """Run a daemon until the block ends."""
    daemon = MirrorProcess(configuration, name, options)
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.end()


@contextmanager
def witness_on(folder: Path, port: int) -> Iterator[None]:
    """Run a witness on a given port, which may have run there before."""
    arguments = ["runtime.process.zookeeper_server", "--data", str(folder), "--port", str(port)]
    with (folder.parent / "witness.log").open("ab") as log:
        process = start_program(*arguments, output=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def witness_of(address: str, configuration: Path) -> Iterator[tuple[KazooClient, WitnessPaths]]:
    """Open a client of the witness, and the paths of a configuration that ``configure`` wrote."""
    client = look(address)
    client.start()
    try:
        yield client, WitnessPaths(root=f"/{configuration.parent.name}")
    finally:
        client.stop()
        client.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """One batch as it lies in a log."""

    header: BatchHeader
    data: bytes

    @property
    def records(self) -> bytes:
        """Return everything behind the header."""
        return self.data[61:]


def read_batches(cluster: RunningCluster, topic: str, partition: int = 0) -> list[StoredBatch]:
    """Return all batches of a partition."""

    async def read() -> list[StoredBatch]:
        async with open_cluster(cluster.addresses, client_id="test") as client:
            end = (await list_offsets(client, [TopicPartition(topic, partition)]))[
                TopicPartition(topic, partition)
            ]
            assert not isinstance(end, ErrorCode)
            return [
                StoredBatch(header=header, data=bytes(data))
                async for header, data in read_partition(client, topic, partition, 0, end)
            ]

    return trio.run(read)


def append_batches(
    cluster: RunningCluster, topic: str, batches: Sequence[bytes], partition: int = 0
) -> None:
    """Produce whole batches as they are."""
    append_to_all(cluster, topic, {partition: batches})


def append_to_all(
    cluster: RunningCluster, topic: str, batches: Mapping[int, Sequence[bytes]]
) -> None:
    """Produce whole batches as they are, by partition, over one connection."""

    async def write() -> None:
        async with open_cluster(cluster.addresses, client_id="test") as client:
            for partition, of_partition in batches.items():
                for batch in of_partition:
                    answer = await append(client, topic, partition, batch)
                    assert answer.error_code == ErrorCode.NONE, answer

    trio.run(write)


def checkpoints(sites: Sites) -> dict[tuple[str, str], Checkpoint]:
    """Return the last checkpoint of each group and topic on dc2."""
    found = {}
    for stored in read_batches(sites.dc2, checkpoint_topic_name("dc1")):
        for record in iterate_records(stored.data):
            one = checkpoint.decode(record.key or b"", record.value or b"")
            found[one.group, one.topic] = one
    return found
