"""The drilled cluster: ZooKeeper and brokers as processes, each behind a relay of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final

import trio
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from demo.doors import LISTENER, Doors
from runtime.process.ports import free_ports
from tests import forked
from tests.drill.links import Links, children_of, relay
from tests.zookeeper import brokers_login

CLIENTS: Final = "clients"
ZOOKEEPER: Final = "zookeeper"
READY_S: Final = 180.0
END_S: Final = 12.0
SETUP_MS: Final = 20_000
REPLICATED: Final = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")
SETTINGS: Final[Mapping[str, str]] = {
    "zookeeper.session.timeout.ms": "6000",
    # Faults in a row can keep ZooKeeper away from a broker that starts for longer than Kafka's
    # default of 18 s, at which it gives up as Kafka does: nobody would start it again here.
    "zookeeper.connection.timeout.ms": "90000",
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "auto.create.topics.enable": "false",
    "request.timeout.ms": "5000",
    "log.segment.bytes": "1000000",
}


class DrillFailed(RuntimeError):
    """The drill could not be carried out: that says nothing about the drilled."""


@dataclass(slots=True, kw_only=True)
class Process:
    """One program that may be killed and started again."""

    name: str
    command: list[str]
    log: Path
    child: forked.Process | None = None
    is_wanted: bool = False
    """Whether it is to run: one that is just being ended has not died by itself."""

    def start(self) -> None:
        self.is_wanted = True
        with self.log.open("ab") as sink:
            self.child = forked.start_command(self.command, sink)

    @property
    def pid(self) -> int:
        assert self.child is not None, f"{self.name} was started"
        return self.child.pid

    def send(self, how: signal.Signals) -> None:
        """Send a signal, if the process still runs."""
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(how)

    async def wait_ended(self, patience_s: float = END_S) -> None:
        """Wait for the end, and bring it about when it does not come in time."""
        if self.child is None:
            return
        child = self.child
        try:
            await trio.to_thread.run_sync(partial(child.wait, patience_s))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        _close(child.stdin)
        self.child = None


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        pipe.close()


@dataclass(slots=True, kw_only=True)
class Cluster:
    """Brokers `broker-0`... and `zookeeper`; the relays know them by these names.

    `site` stands before each name, so that two clusters may share relays. With `doors` everybody
    comes over TLS and SASL, brokers to each other as well.
    """

    folder: Path
    links: Links
    site: str = ""
    processes: dict[str, Process] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    """Where each process's relay listens."""
    doors: Doors | None = None

    @property
    def brokers(self) -> list[str]:
        return [name for name in self.processes if name.startswith(f"{self.site}broker-")]

    @property
    def zookeeper(self) -> str:
        return self.site + ZOOKEEPER

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self.ports[name]}" for name in self.brokers)

    @property
    def client(self) -> dict[str, Any]:
        """Return the settings of a client of librdkafka."""
        if self.doors is None:
            return {"bootstrap.servers": self.bootstrap}
        # A login takes several round trips, and on a busy machine seconds.
        patient = {"socket.connection.setup.timeout.ms": SETUP_MS}
        return self.doors.client(self.bootstrap) | patient

    @property
    def section(self) -> str | dict[str, Any]:
        """Return what `dc.yaml` says of the cluster."""
        return self.bootstrap if self.doors is None else self.doors.cluster(self.bootstrap)

    def start(self, name: str) -> None:
        """Start a process that does not run."""
        process = self.processes[name]
        process.start()
        self.links.pids[process.pid] = name

    async def stop(self, name: str, how: signal.Signals) -> None:
        """End a process, and what it has started."""
        process = self.processes[name]
        if process.child is None:
            return
        process.is_wanted = False
        self.links.pids.pop(process.pid, None)
        for child in children_of(process.pid):
            _signal(child, how)
        process.send(how)
        await process.wait_ended()

    def signal(self, name: str, how: signal.Signals) -> None:
        """Send a signal to a process and what it has started."""
        process = self.processes[name]
        process.send(how)
        for child in children_of(process.pid):
            _signal(child, how)

    def died(self) -> list[str]:
        """Return the processes that ended although nobody ended them."""
        return [
            name
            for name, process in self.processes.items()
            if process.is_wanted and process.child is not None and process.child.poll() is not None
        ]


def _signal(pid: int, how: signal.Signals) -> None:
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        return


@asynccontextmanager
async def run_cluster(
    folder: Path,
    links: Links,
    brokers: int,
    factor: int,
    site: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
    *,
    doors: Doors | None = None,
) -> AsyncIterator[Cluster]:
    """Run a cluster until the block ends; data and logs are kept in `folder`.

    `more` are settings of its brokers.
    """
    async with cluster_of(folder, links, site) as (cluster, stand_before):
        cluster.doors = doors
        free = free_ports("127.0.0.1")
        zookeeper_port = next(free)
        await stand_before(cluster.zookeeper, zookeeper_port)
        # A witness has no brokers, whose own ZooKeeper speaks no TLS.
        options = doors.witness_options if doors is not None and not brokers else ()
        _add_zookeeper(cluster, zookeeper_port, options)
        for number in range(brokers):
            name, port = f"{site}broker-{number}", next(free)
            await stand_before(name, port)
            replicated = {key: str(factor) for key in REPLICATED}
            _add_broker(cluster, number, port, {**replicated, **SETTINGS, **more})
        cluster.start(cluster.zookeeper)
        await _wait_listening(zookeeper_port)
        for name in cluster.brokers:
            cluster.start(name)
        if brokers:
            await wait_ready(cluster, brokers)
        yield cluster


@asynccontextmanager
async def cluster_of(
    folder: Path, links: Links, site: str
) -> AsyncIterator[tuple[Cluster, Callable[[str, int], Awaitable[None]]]]:
    """Have a cluster without processes yet, and what puts a relay before a port of one.

    All that was started is ended with the block, the brokers first.
    """
    cluster = Cluster(folder=folder, links=links, site=site)
    async with trio.open_nursery() as nursery:
        try:
            yield cluster, partial(_stand_before, cluster, nursery)
        finally:
            with trio.CancelScope(shield=True):
                for name in (*cluster.brokers, *cluster.processes):
                    await cluster.stop(name, signal.SIGKILL)
            nursery.cancel_scope.cancel()


async def _stand_before(cluster: Cluster, nursery: trio.Nursery, name: str, port: int) -> None:
    started = partial(relay, cluster.links, name, ("127.0.0.1", port), bystander=CLIENTS)
    cluster.ports[name] = int(await nursery.start(started))


def _add_zookeeper(cluster: Cluster, port: int, options: Sequence[str]) -> None:
    data = cluster.folder / ZOOKEEPER
    data.mkdir(parents=True)
    cluster.processes[cluster.zookeeper] = Process(
        name=cluster.zookeeper,
        command=[
            *(sys.executable, "-m", "runtime.process.zookeeper_server"),
            *("--data", str(data), "--port", str(port), *options),
        ],
        log=cluster.folder / "zookeeper.log",
    )


def _add_broker(cluster: Cluster, number: int, port: int, more: Mapping[str, str]) -> None:
    protocol, guarded = "PLAINTEXT", dict[str, str]()
    if cluster.doors is not None:
        protocol = LISTENER
        guarded = {**cluster.doors.of_brokers, "inter.broker.listener.name": LISTENER}
    name = f"{cluster.site}broker-{number}"
    folder = cluster.folder / name
    folder.mkdir(parents=True)
    settings = {
        "broker.id": str(number),
        "listeners": f"{protocol}://127.0.0.1:{port}",
        "advertised.listeners": f"{protocol}://127.0.0.1:{cluster.ports[name]}",
        "log.dirs": str(folder / "logs"),
        "zookeeper.connect": f"127.0.0.1:{cluster.ports[cluster.zookeeper]}",
        **brokers_login(cluster.folder / "zookeeper.secret"),
        **guarded,
        **more,
    }
    properties = folder / "server.properties"
    properties.touch(mode=0o600)
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    cluster.processes[name] = Process(
        name=name,
        command=[sys.executable, "-m", "broker.cli", "run", str(properties), "--end-with-stdin"],
        log=cluster.folder / f"{name}.log",
    )


async def _wait_listening(port: int) -> None:
    with trio.move_on_after(READY_S):
        while True:
            try:
                async with await trio.open_tcp_stream("127.0.0.1", port):
                    return
            except OSError:
                await trio.sleep(0.1)
    raise DrillFailed(f"nobody listens on port {port} after {READY_S:g} s")


async def wait_ready(cluster: Cluster, brokers: int) -> None:
    """Wait until that many brokers know each other. Raises DrillFailed."""
    admin = AdminClient({**cluster.client, "log_level": 0})
    with trio.move_on_after(READY_S):
        while len(await _live(admin)) < brokers:
            for name in cluster.died():
                said = cluster.processes[name].log.read_text().strip().splitlines()[-1:]
                raise DrillFailed(f"{name} ended: {said}")
            await trio.sleep(0.1)
        return
    raise DrillFailed(f"the brokers did not find each other within {READY_S:g} s")


async def _live(admin: AdminClient) -> list[int]:
    try:
        metadata = await trio.to_thread.run_sync(partial(admin.list_topics, timeout=2))
    except KafkaException:
        return []
    return list(metadata.brokers) if metadata.controller_id >= 0 else []


async def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int,
    factor: int,
    min_in_sync: int,
    more: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Create the topic that is drilled. Raises DrillFailed."""
    admin = AdminClient({**cluster.client, "log_level": 0})
    topic = NewTopic(
        name, partitions, factor, config={"min.insync.replicas": str(min_in_sync), **more}
    )
    created = admin.create_topics([topic])[name]
    try:
        await trio.to_thread.run_sync(partial(created.result, 20))
    except KafkaException as error:
        raise DrillFailed(f"topic {name}: {error}") from error
