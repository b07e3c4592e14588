"""The local stack: two bundled clusters, the witness and the mirror, as child processes."""

import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trio

from demo.doors import LISTENER, Doors
from runtime.process.child import end_child, kill_child, open_child
from runtime.process.zookeeper_server import UNGUARDED, ZooKeeperServer, run_zookeeper
from wire.net.secret_file import make_own_secret
from wire.values import frozen

_LOG = logging.getLogger(__name__)

TOPIC: Final = "flights"
GROUP: Final = "departure-board"
PARTITIONS: Final = 6
BROKERS: Final = 3
SITES: Final = ("dc1", "dc2")
WITNESS_SECRET: Final = "witness.secret"  # noqa: S105 - the name of a file
REBALANCE_DELAY_MS: Final = 200
"""How long a new group waits for more members; Kafka waits 3 s, its quick start not at all."""
READY_TIMEOUT_S: Final = 40
STOP_PATIENCE_S: Final = 12


class StackFailed(RuntimeError):
    """A part did not start or ended by itself; the message names it and its log."""


@frozen
class Ports:
    """First ports of each part; 0 takes free ones."""

    brokers: Mapping[str, int]
    zookeepers: Mapping[str, int]
    broker_metrics: Mapping[str, int]
    witness: int
    mirror_metrics: int
    failover_metrics: int
    audit_metrics: int


WELL_KNOWN: Final = Ports(
    brokers={"dc1": 19092, "dc2": 29092},
    zookeepers={"dc1": 12181, "dc2": 22181},
    broker_metrics={"dc1": 19401, "dc2": 29401},
    witness=32181,
    mirror_metrics=9401,
    failover_metrics=9402,
    audit_metrics=9403,
)
FREE: Final = Ports(
    brokers={"dc1": 0, "dc2": 0},
    zookeepers={"dc1": 0, "dc2": 0},
    broker_metrics={"dc1": 0, "dc2": 0},
    witness=0,
    mirror_metrics=0,
    failover_metrics=0,
    audit_metrics=0,
)


@dataclass(slots=True)
class LocalSite:
    """One `broker up`; `ready` is what it wrote when it was ready."""

    name: str
    folder: Path
    process: trio.Process
    ready: Mapping[str, Any]
    is_secured: bool = False

    @property
    def bootstrap(self) -> str:
        """Return `host:port,...` of all brokers, where our programs come in."""
        port = "also_port" if self.is_secured else "port"
        return ",".join(f"{broker['host']}:{broker[port]}" for broker in self.ready["brokers"])


class Stack:
    """All parts under `folder`: `dc.yaml`, one log file a part, and the sites' data."""

    witness: ZooKeeperServer

    def __init__(self, folder: Path, ports: Ports, doors: Doors | None = None) -> None:
        self.folder = folder
        self.doors = doors
        self.ports = ports
        self.sites: dict[str, LocalSite] = {}
        self.children: dict[str, trio.Process] = {}

    @property
    def configuration(self) -> Path:
        """Return the one YAML file of this stack."""
        return self.folder / "dc.yaml"

    async def start_site(self, name: str) -> None:
        """Start one cluster and wait until it is ready; its data and ports are kept."""
        ready_file = self.folder / f"{name}.ready.json"
        ready_file.unlink(missing_ok=True)
        arguments = ["up", "--cluster-name", name, "--brokers", str(BROKERS)]
        arguments += ["--data", str(self.folder / name), "--ready-file", str(ready_file)]
        arguments += ["--port", str(self.ports.brokers[name])]
        arguments += ["--zookeeper-port", str(self.ports.zookeepers[name])]
        arguments += ["--metrics-port", str(self.ports.broker_metrics[name])]
        arguments += ["--override", f"group.initial.rebalance.delay.ms={REBALANCE_DELAY_MS}"]
        if self.doors is not None:
            arguments += ["--also", LISTENER, "--properties", str(self.doors.of_brokers_file)]
            arguments += ["--override", f"inter.broker.listener.name={LISTENER}"]
        process = await self._start(name, "broker", *arguments)
        with trio.move_on_after(READY_TIMEOUT_S):
            while not ready_file.exists() and process.poll() is None:  # noqa: ASYNC110 - a file
                await trio.sleep(0.02)
        if not ready_file.exists():
            raise StackFailed(f"{name} did not become ready: {self.last_words(name)}")
        ready = json.loads(ready_file.read_text())
        is_secured = self.doors is not None
        self.sites[name] = LocalSite(name, self.folder / name, process, ready, is_secured)

    def client(self, site: str) -> dict[str, Any]:
        """Return the settings of a plain client of a site."""
        bootstrap = self.sites[site].bootstrap
        if self.doors is None:
            return {"bootstrap.servers": bootstrap}
        return self.doors.client(bootstrap)

    async def start_program(self, name: str, program: str, *arguments: str) -> trio.Process:
        """Start one of our programs as part `name`, logging to `name`.log."""
        return await self._start(name, program, *arguments)

    async def run_program(self, name: str, program: str, *arguments: str) -> int:
        """Run one of our programs to its end and return its exit status."""
        process = await self._start(name, program, *arguments)
        try:
            return await process.wait()
        finally:
            await self.end(name)

    async def kill_site(self, name: str) -> None:
        """End every process of a site with SIGKILL, as a fire does."""
        site = self.sites.pop(name)
        pids = [broker["pid"] for broker in site.ready["brokers"]]
        pids.append(site.ready["zookeeper"]["pid"])
        process = self.children.pop(name)
        kill_child(process)
        for pid in pids:
            _kill(pid)
        await end_child(process, patience_s=STOP_PATIENCE_S)

    async def end(self, name: str) -> None:
        """End one part and wait for it."""
        process = self.children.pop(name, None)
        if process is not None:
            await end_child(process, patience_s=STOP_PATIENCE_S)

    async def end_all(self) -> None:
        """End what still runs, applications before the mirror before the sites, sites together."""
        for name in [name for name in reversed(self.children) if name not in SITES]:
            await self.end(name)
        async with trio.open_nursery() as nursery:
            for name in list(self.children):
                nursery.start_soon(self.end, name)

    def last_words(self, name: str) -> str:
        """Return the last line that a part logged, and where its log is."""
        log = self.folder / f"{name}.log"
        lines = log.read_text(errors="replace").strip().splitlines() or ["(it said nothing)"]
        return f"{lines[-1]} (see {log})"

    def write_configuration(self) -> None:
        """Write dc.yaml for the sites as they are, and the secret that it names."""
        make_own_secret(self.folder / WITNESS_SECRET)
        clusters = "".join(f"  {name}: {json.dumps(self._cluster(name))}\n" for name in SITES)
        doors = self.doors
        tls = "" if doors is None else f"  tls: {json.dumps(doors.at_witness)}\n"
        pages = {} if doors is None else doors.at_pages
        guarded = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in pages.items())
        self.configuration.write_text(
            "# The one file that every program reads. Written by the local stack.\n"
            f"clusters:\n{clusters}"
            "flows:\n  - source: dc1\n    target: dc2\n"
            f'    topics: {{include: ["{TOPIC}.*"]}}\n    groups: {{include: [".*"]}}\n'
            f"coordination:\n  zookeeper: {self.witness.address}\n"
            f"  auth: {{username: kafka-dr, password_file: {WITNESS_SECRET}}}\n{tls}"
            "failover:\n  initial_active: dc1\n"
            "audit:\n  output: audit\n"
            f"metrics:\n  mirror_port: {self.ports.mirror_metrics}\n"
            f"  failover_port: {self.ports.failover_metrics}\n"
            f"  audit_port: {self.ports.audit_metrics}\n{guarded}"
        )

    def _cluster(self, name: str) -> dict[str, Any]:
        bootstrap = self.sites[name].bootstrap
        if self.doors is None:
            return {"bootstrap": bootstrap.split(",")}
        return self.doors.cluster(bootstrap)

    async def _start(self, name: str, program: str, *arguments: str) -> trio.Process:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = await open_child([*command(program), *arguments], output=log)
        self.children[name] = process
        return process


def command(program: str) -> list[str]:
    """Return how to start one of our programs, or a module of the demo (`demo.producer`)."""
    if "." in program:
        return [sys.executable, "-m", program]
    return [str(Path(sys.executable).parent / program)]


@asynccontextmanager
async def run_stack(
    folder: Path, ports: Ports, *, is_secured: bool = False
) -> AsyncIterator[Stack]:
    """Run witness and both sites, all started at once; everything is gone after the block.

    The folder exists and is empty. `is_secured`: everything over TLS, with logins.
    """
    async with AsyncExitStack() as at_last:
        doors = Doors(folder / "doors") if is_secured else None
        at_witness = UNGUARDED if doors is None else doors.of_witness
        stack = Stack(folder, ports, doors)
        try:
            async with trio.open_nursery() as nursery:
                for name in SITES:
                    nursery.start_soon(stack.start_site, name)
                stack.witness = await at_last.enter_async_context(
                    run_zookeeper(folder / "witness", port=ports.witness, doors=at_witness)
                )
            stack.write_configuration()
            yield stack
        finally:
            await stack.end_all()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        _LOG.debug("process %s was gone already", pid)
