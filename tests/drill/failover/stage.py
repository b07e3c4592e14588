"""Two sites, a witness, the mirror and `failover serve` as processes that may be hit."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final, TypeAlias

import trio

from demo.doors import Doors
from failover.sites.fence import Fence, set_fence
from failover.sites.opening import open_site
from runtime.configuration.config import load
from runtime.process.clock import wall_ms
from runtime.process.ports import free_port
from tests.clusters import RunningCluster, is_alive
from tests.drill.failover.hooked import DrilledHooks
from tests.drill.failover.network import Network
from tests.drill.failover.story import Said
from tests.drill.links import children_of
from tests.failover.two_sites import pause
from tests.forked import Process, call_program, start_program
from tests.interop.peers.kafka import KafkaCluster
from tests.zookeeper import look
from wire.net import NetworkFault

Site: TypeAlias = RunningCluster | KafkaCluster
PATH: Final = "/failover-drill"
COMMAND_S: Final = 150
UP_S: Final = 60
OPENED_S: Final = 10
UNANSWERED_S: Final = 2
"""A server that is still starting may take a connection and never answer it."""
OFTEN: Final = {"max_tries": -1, "delay": 0.05, "backoff": 1, "max_jitter": 0.0}
"""kazoo waits ever longer between attempts otherwise."""
CONTROLLER: Final = "tests.drill.failover.controller"
HOOKS: Final = "hooks.sh"


@dataclass(slots=True, kw_only=True)
class Daemon:
    """A program that is to run all the time."""

    module: str
    arguments: tuple[str, ...]
    log: Path
    child: Process | None = None

    def ensure(self) -> None:
        """Start it unless it runs."""
        if self.child is None or self.child.poll() is not None:
            with self.log.open("ab") as log:
                self.child = start_program(self.module, *self.arguments, output=log)

    def send(self, how: signal.Signals) -> None:
        """Send it a signal, if it runs, and the programs that it has started."""
        if self.child is not None and self.child.poll() is None:
            own = children_of(self.child.pid)
            self.child.send_signal(how)
            for pid in own:
                with suppress(ProcessLookupError):  # it ended with its parent
                    os.kill(pid, how)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, the hard way where it takes longer than ten seconds."""
        if self.child is None:
            return
        self.send(signal.SIGCONT)
        self.send(how)
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


@dataclass(frozen=True, slots=True)
class Controller:
    """A promotion or an abort that waits for a line behind each step."""

    process: Process
    input: IO[bytes]
    output: IO[bytes]

    def release(self) -> None:
        """Let it go on with its next step."""
        with suppress(BrokenPipeError):  # it was killed meanwhile
            self.input.write(b"\n")
            self.input.flush()

    def send(self, how: signal.Signals) -> None:
        """Send it a signal, unless it has ended; from any thread."""
        if is_alive(self.process.pid):
            os.kill(self.process.pid, how)

    def end(self) -> int:
        """Make sure that it is gone; return its exit status."""
        self.process.kill()
        status = self.process.wait()
        self.input.close()
        self.output.close()
        return status


@dataclass(frozen=True, slots=True)
class Witness:
    """The port of the witness, and what guards it beside its login."""

    port: int
    doors: Doors | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def options(self) -> list[str]:
        """Return those of the server."""
        return [] if self.doors is None else self.doors.witness_options

    @property
    def client(self) -> dict[str, Any]:
        """Return the settings of kazoo's client."""
        if self.doors is None:
            return {}
        files = self.doors.at_witness
        own = {"certfile": files["certificate"], "keyfile": files["key"]}
        return {"use_ssl": True, "ca": files["ca"], **own}


@dataclass(slots=True, kw_only=True)
class Stage:
    """What is drilled; `clients` are the settings of plain clients for each site."""

    folder: Path
    file: Path
    applications: Path
    sites: Mapping[str, Site]
    network: Network
    clients: Mapping[str, Mapping[str, Any]]
    witness: Daemon
    at_witness: Witness
    mirror: Daemon
    guard: Daemon
    hooks: DrilledHooks
    endpoints: Sequence[Daemon] = ()
    behind_endpoints: Mapping[str, Any] | None = None
    """The settings of clients that come by the endpoints; None where there are none."""
    said: list[Said] = field(default_factory=list)

    def run(self, *command: str, program: str = "failover.cli", file: Path | None = None) -> Said:
        """Run a command to its end and note what it said."""
        began_ms = wall_ms()
        call = call_program(program, *command, file or self.file)
        try:
            ended = call.finish(COMMAND_S)
            status, text = ended.returncode, ended.stdout + ended.stderr
        except subprocess.TimeoutExpired as error:
            call.process.kill()
            call.finish(COMMAND_S)
            status, text = -signal.SIGKILL, f"no end within {error.timeout} s"
        return self.note(began_ms, command, status, text)

    def note(self, began_ms: int, command: Sequence[str], status: int, text: str) -> Said:
        """Keep what a command said."""
        said = Said(
            began_ms=began_ms,
            ended_ms=wall_ms(),
            command=tuple(command),
            status=status,
            text=text,
        )
        self.said.append(said)
        with (self.folder / "said.log").open("a") as log:
            log.write(f"{began_ms} $ {' '.join(command)}\n{text}[{status}]\n")
        return said

    def controller(self, *command: str) -> Controller:
        """Start a command that stands still behind each step until a line is written to it."""
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb") as output:
            words = (CONTROLLER, *command, str(self.file))
            process = start_program(*words, output=output, has_stdin=True)
        assert process.stdin is not None, "it was started with a pipe"
        return Controller(process, process.stdin, os.fdopen(reading, "rb"))

    def signal_site(self, name: str, how: signal.Signals) -> None:
        """Send a signal to each broker of a site, those that are gone left out."""
        for pid in self.sites[name].pids.values():
            if is_alive(pid):
                os.kill(pid, how)

    def bring_back(self, *without: str) -> None:
        """Have everything but these sites run again, whatever was done to it."""
        for daemon in (self.witness, self.mirror, self.guard):
            daemon.send(signal.SIGCONT)
        self.wake_witness()
        for endpoint in self.endpoints:
            endpoint.ensure()
        for name in self.sites:
            if name not in without:
                self.network.heal(name)
                self.bring_site_back(name)
        self.mirror.ensure()
        self.guard.ensure()

    def bring_site_back(self, name: str) -> None:
        """Have a site's brokers run."""
        site = self.sites[name]
        if not (site.is_up if isinstance(site, RunningCluster) else site.pids):
            site.start()
        for number, pid in list(site.pids.items()):
            if is_alive(pid):
                os.kill(pid, signal.SIGCONT)
                pause(0.3)  # one that was sent another signal meanwhile ends now
            if not is_alive(pid):
                if isinstance(site, KafkaCluster):
                    site.kill_broker(number)
                site.start_broker(number)

    def open_by_hand(self, name: str) -> str:
        """Take the fence of a site away, as somebody does who knows no better; return the fault."""
        site, fault = load(self.file).clusters[name], ""

        async def lift() -> None:
            with trio.fail_after(OPENED_S):
                async with open_site(site) as opened:
                    await set_fence(opened.cluster, Fence())

        try:
            trio.run(lift)
        except* (NetworkFault, trio.TooSlowError) as faults:
            fault = str(faults.exceptions)
        return fault

    def wake_witness(self) -> None:
        """Have the witness serve. Its port is free some time after the last one was killed."""
        deadline = monotonic() + UP_S
        while not is_listening(self.at_witness.address):
            assert monotonic() < deadline, "the witness does not start"
            self.witness.ensure()
            pause(0.3)
        wait_witness(self.at_witness)

    def _end_witness(self, how: signal.Signals) -> None:
        self.witness.end(how)
        deadline = monotonic() + UP_S
        while is_listening(self.at_witness.address):
            assert monotonic() < deadline, "the witness does not end"
            pause(0.1)

    def copy_witness(self) -> None:
        """Keep the witness's data as they are now."""
        self._end_witness(signal.SIGTERM)
        copy = self.folder / "old-witness"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder / "witness", copy)
        self.wake_witness()

    def forget_witness(self, *, is_old_copy: bool) -> None:
        """Have the witness lose its data, or get back those that were kept."""
        self._end_witness(signal.SIGKILL)
        shutil.rmtree(self.folder / "witness")
        if is_old_copy:
            shutil.copytree(self.folder / "old-witness", self.folder / "witness")
        self.wake_witness()

    def end(self) -> None:
        """End the programs; the sites are their owner's."""
        for daemon in (*self.endpoints, self.guard, self.mirror, self.witness):
            daemon.end()


def is_listening(address: str) -> bool:
    """Tell whether somebody takes connections there."""
    host, _, port = address.partition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
        return True
    return False


def wait_witness(witness: Witness) -> None:
    """Wait until the witness answers."""
    settings = {"timeout": UNANSWERED_S, "connection_retry": OFTEN, **witness.client}
    client = look(witness.address, **settings)
    client.start(timeout=UP_S)
    client.stop()
    client.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """The files by which endpoints run, and the settings of clients that come by them."""

    files: Sequence[Path]
    clients: Mapping[str, Any]


@contextmanager
def dressed(
    folder: Path,
    sites: Mapping[str, Site],
    network: Network,
    files: tuple[Path, Path],
    clients: Mapping[str, Mapping[str, Any]],
    witness: Witness,
    *,
    endpoints: Endpoints | None = None,
) -> Iterator[Stage]:
    """Run witness, mirror, `failover serve` and endpoints for two sites that run."""

    def daemon(name: str, module: str, *arguments: str) -> Daemon:
        return Daemon(module=module, arguments=arguments, log=folder / f"{name}.log")

    data = str(folder / "witness")
    stage = Stage(
        folder=folder,
        file=files[0],
        applications=files[1],
        sites=sites,
        network=network,
        clients=clients,
        witness=daemon(
            *("zookeeper", "runtime.process.zookeeper_server", "--data", data),
            *("--port", str(witness.port), *witness.options),
        ),
        at_witness=witness,
        mirror=daemon("mirror", "mirror.cli", "run", str(files[0])),
        guard=daemon("serve", "failover.cli", "serve", str(files[0])),
        hooks=DrilledHooks(folder / HOOKS),
        endpoints=[
            daemon(file.stem, "failover.cli", "bootstrap", str(file))
            for file in (() if endpoints is None else endpoints.files)
        ],
        behind_endpoints=None if endpoints is None else endpoints.clients,
    )
    try:
        stage.wake_witness()
        stage.mirror.ensure()
        stage.guard.ensure()
        for endpoint in stage.endpoints:
            endpoint.ensure()
        yield stage
    finally:
        with suppress(ProcessLookupError):
            stage.end()


def own_port() -> int:
    """Return a port that stays its server's own over restarts."""
    return free_port("127.0.0.1")
