"""How long a planned switch of many partitions and groups takes, and how long nobody can write.

Each run has clusters and a witness of its own, which are the same for all versions; the mirror and
`failover promote` are those of a checkout. The refused time is what a plain producer sees: from its
last acknowledgement on dc1 until the witness says that dc2 is active.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final

import trio
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from runtime.coordination.witness import ActiveSite, WitnessPaths
from tests.bench.measure.ledger import RunFailed, say
from tests.bench.stage.clusters import cold_stage, run_bundled
from tests.bench.stage.served import Served
from tests.dc_yaml import dc_yaml, flow
from tests.zookeeper import look
from wire.net import NetworkFault, open_cluster
from wire.net.operations import commit_offsets_of, fetch_offsets_of, list_offsets
from wire.topic_partition import TopicPartition

TOPIC_PARTITIONS: Final = 10
RECORDS: Final = 10
"""In each partition."""
POSITIONS: Final = 10
"""Of each group."""
PATH: Final = "/promotions"
PREFIX: Final = "many"
COMMAND_LIMIT_S: Final = 5.0
REFUSED_LIMIT_S: Final = 3.0
PATIENCE_S: Final = 180
WRITE_EVERY_S: Final = 0.005
COMPILED: Final = {"PYTHONDONTWRITEBYTECODE": ""}
"""As they are installed, programs have their modules compiled, which takes longer than loading."""
QUIET: Final[dict[str, Any]] = {"log_level": 0}
NO_RETRIES: Final[dict[str, Any]] = {"retries": 0, "linger.ms": 0, **QUIET}


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """What one promotion took."""

    command_s: float
    refused_s: float
    cpu_s: float
    """Of the command, with its start; other load on the machine hardly changes it."""
    report: str


def print_promotions(checkouts: Sequence[Path], *, partitions: int, groups: int, runs: int) -> bool:
    """Promote with each checkout by turns and print the figures; whether the first keeps limits.

    Raises RunFailed.
    """
    found: dict[Path, list[Switch]] = {checkout: [] for checkout in checkouts}
    for checkout in checkouts:
        _compile(checkout)
    for number in range(runs):
        for checkout in checkouts:
            say(f"run {number + 1} of {runs}: {partitions} partitions, {groups} groups, {checkout}")
            one = _run(checkout, partitions, groups)
            found[checkout].append(one)
            sys.stdout.write(f"{checkout}: {_figures([one])}\n{one.report}")
            sys.stdout.flush()
    for checkout, switches in found.items():
        sys.stdout.write(f"median of {runs}, {checkout}: {_figures(switches)}\n")
    first = found[checkouts[0]]
    return (
        median(one.command_s for one in first) < COMMAND_LIMIT_S
        and median(one.refused_s for one in first) < REFUSED_LIMIT_S
    )


def _compile(checkout: Path) -> None:
    """Have the modules that a promotion loads compiled."""
    loads = "import failover.commands.promotion, failover.commands.running, mirror.daemon"
    environment = {**os.environ, **COMPILED, "PYTHONPATH": str(checkout)}
    subprocess.run([sys.executable, "-c", loads], cwd=checkout, env=environment, check=True)


def _figures(switches: Sequence[Switch]) -> str:
    command_s = median(one.command_s for one in switches)
    refused_s = median(one.refused_s for one in switches)
    cpu_s = median(one.cpu_s for one in switches)
    return f"command {command_s:.2f} s ({cpu_s:.2f} CPU-s), writes refused {refused_s:.2f} s"


def _run(checkout: Path, partitions: int, groups: int) -> Switch:
    with (
        TemporaryDirectory(prefix="promotions-") as name,
        cold_stage(Path(name), run_bundled, run_bundled) as stage,
    ):
        places = _fill(stage.source, partitions)
        trio.run(_commit, stage.source, places, groups)
        file = Path(name) / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow("dc1", "dc2", f"{PREFIX}-.*"),
                dc1=stage.source.bootstrap,
                dc2=stage.target.bootstrap,
                witness=stage.witness,
                path=PATH,
            )
        )
        with _mirror(checkout, file):
            trio.run(_wait_mirrored, stage.target, places, groups)
            with _writer(stage.source.bootstrap, stage.witness) as writer:
                return _promote(checkout, file, writer)


def _fill(source: Served, partitions: int) -> list[TopicPartition]:
    """Make topics, and put some records into each partition."""
    names = [f"{PREFIX}-{number}" for number in range(partitions // TOPIC_PARTITIONS)]
    admin = AdminClient({"bootstrap.servers": source.bootstrap, **QUIET})
    for future in admin.create_topics(
        [NewTopic(one, TOPIC_PARTITIONS, 1) for one in names]
    ).values():
        future.result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": source.bootstrap, **QUIET})
    for name in names:
        for partition in range(TOPIC_PARTITIONS):
            for _ in range(RECORDS):
                producer.produce(name, b"value", partition=partition)
    if producer.flush(PATIENCE_S):
        raise RunFailed("not all records were written")
    return [TopicPartition(name, index) for name in names for index in range(TOPIC_PARTITIONS)]


def _positions(places: Sequence[TopicPartition], number: int) -> list[TopicPartition]:
    first = number * POSITIONS % len(places)
    return list(places[first : first + POSITIONS])


async def _commit(source: Served, places: Sequence[TopicPartition], groups: int) -> None:
    commits = {
        f"group-{number}": dict.fromkeys(_positions(places, number), (RECORDS // 2, ""))
        for number in range(groups)
    }
    async with open_cluster(source.addresses, client_id="bench") as cluster:
        answers = await commit_offsets_of(cluster, commits)
    for group, codes in answers.items():
        if isinstance(codes, NetworkFault) or set(codes.values()) != {0}:
            raise RunFailed(f"commit of {group}: {codes}")


async def _wait_mirrored(target: Served, places: Sequence[TopicPartition], groups: int) -> None:
    """Wait until all records and all positions are on the target."""
    names = [f"group-{number}" for number in range(groups)]
    with trio.move_on_after(PATIENCE_S):
        async with open_cluster(target.addresses, client_id="bench") as cluster:
            while True:
                ends = await list_offsets(cluster, places)
                stored = await fetch_offsets_of(cluster, names)
                positions = sum(
                    0 if isinstance(one, NetworkFault) else len(one) for one in stored.values()
                )
                if set(ends.values()) == {RECORDS} and positions == groups * POSITIONS:
                    return
                await trio.sleep(0.5)
    raise RunFailed(f"not everything was mirrored within {PATIENCE_S} s")


@contextmanager
def _mirror(checkout: Path, file: Path) -> Iterator[None]:
    with (file.parent / "mirror.log").open("wb") as log:
        daemon = _start(checkout, "mirror.cli", "run", str(file), output=log)
        try:
            yield
        finally:
            daemon.terminate()
            daemon.wait(60)


def _start(checkout: Path, module: str, *arguments: str, output: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=checkout,
        env={**os.environ, **COMPILED, "PYTHONPATH": str(checkout)},
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
    )


@dataclass(slots=True)
class Writer:
    """A plain producer on dc1: when it was acknowledged last, and when dc2 became active."""

    producer: Producer
    acknowledged_s: float = 0.0
    refused: int = 0
    switched_s: float | None = None

    def write(self) -> None:
        """Write a record, and hear of those before."""
        self.producer.produce(f"{PREFIX}-0", b"value", partition=0, on_delivery=self._note)
        self.producer.poll(WRITE_EVERY_S)

    def _note(self, error: object, _: object) -> None:
        if error is None:
            self.acknowledged_s = monotonic()
        else:
            self.refused += 1

    def see(self, data: bytes | None, *_: object) -> None:
        """Take note of the active site, in a thread of kazoo's."""
        if data and ActiveSite.decode(data).site == "dc2" and self.switched_s is None:
            self.switched_s = monotonic()


@contextmanager
def _writer(bootstrap: str, witness: str) -> Iterator[Writer]:
    writer = Writer(Producer({"bootstrap.servers": bootstrap, **NO_RETRIES}))
    client = look(witness)
    client.start()
    client.DataWatch(WitnessPaths(root=PATH).active, writer.see)
    try:
        while not writer.acknowledged_s:
            writer.write()
        yield writer
    finally:
        client.stop()
        client.close()


def _promote(checkout: Path, file: Path, writer: Writer) -> Switch:
    """Promote while somebody writes. Raises RunFailed."""
    said = file.parent / "promote.txt"
    began_s, used_s = monotonic(), _used_by_ended()
    with said.open("wb") as output:
        program = _start(checkout, "failover.cli", "promote", "dc2", str(file), output=output)
        while program.poll() is None:
            writer.write()
    command_s, cpu_s = monotonic() - began_s, _used_by_ended() - used_s
    writer.producer.flush(5)
    report = said.read_text()
    if program.returncode != 0 or writer.switched_s is None:
        raise RunFailed(f"promote ended with {program.returncode}: {report}")
    if not writer.refused or writer.acknowledged_s > writer.switched_s:
        raise RunFailed("dc1 took writes all the while")
    steps = [line for line in report.splitlines() if " done " in line]
    return Switch(
        command_s=command_s,
        refused_s=writer.switched_s - writer.acknowledged_s,
        cpu_s=cpu_s,
        report="".join(f"  {line[:60]}\n" for line in steps),
    )


def _used_by_ended() -> float:
    """Return the processor time of all programs of ours that have ended."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
