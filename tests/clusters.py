"""A running bundled cluster for tests: `broker up` as a child process, gone with its block.

with run_cluster(tmp_path, brokers=3) as cluster:
    Producer({"bootstrap.servers": cluster.bootstrap})
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, Final

from broker.up import SECRET
from tests.forked import Process, call_program, start_program
from tests.readable import is_readable
from tests.zookeeper import USER, address_for_cluster, write_password

READY_TIMEOUT_S: Final = 180
STOP_TIMEOUT_S: Final = 30
UNLESS_OVERRIDDEN: Final = {
    "log.retention.check.interval.ms": str(24 * 3_600_000),
    "zookeeper.username": USER,
}
"""Tests stamp records with times long past, and may run for longer than Kafka's five minutes. Their
brokers have the login of all tests, which so may use a cluster's ZooKeeper as the witness."""


LAST_LINES: Final = 40
_RUNNING: Final[dict[int, "RunningCluster"]] = {}
"""The clusters that this process has started and neither stopped nor killed, by identity."""


class ClusterFailed(RuntimeError):
    """The cluster did not come up or did not go; the message carries what it said."""


@dataclass(slots=True, kw_only=True)
class RunningCluster:
    """One `broker up`; `data` keeps everything over `restart()`, ports included."""

    name: str
    data: Path
    broker_count: int
    overrides: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    """The first broker's; 0 for any free one."""
    properties: Path | None = None
    """Of all brokers: what is secret does not stand in command lines."""
    also: str | None = None
    """The security protocol of each broker's second listener."""
    shares_zookeeper: bool = False
    """Its ZooKeeper is one for many clusters: not for tests that kill it or a whole site."""
    _shared_address: str = ""
    _up: Process | None = None
    _ready: dict[str, Any] = field(default_factory=dict)
    _single_brokers: dict[int, Process] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """Return `host:port,host:port`, as clients want it."""
        return str(self._ready["bootstrap"])

    @property
    def secured_bootstrap(self) -> str:
        """Return the same of the second listeners."""
        served = self._ready["brokers"]
        return ",".join(f"{broker['host']}:{broker['also_port']}" for broker in served)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Return the same as pairs, as `wire.net` wants it."""
        return [(broker["host"], broker["port"]) for broker in self._ready["brokers"]]

    @property
    def zookeeper(self) -> str:
        """Return `host:port` of the cluster's ZooKeeper."""
        return str(self._ready["zookeeper"]["address"])

    @property
    def pids(self) -> dict[int, int]:
        """Return the process id of each broker by broker id."""
        pids = {broker["id"]: int(broker["pid"]) for broker in self._ready["brokers"]}
        return {**pids, **{number: child.pid for number, child in self._single_brokers.items()}}

    @property
    def is_up(self) -> bool:
        """Return whether it was started and neither stopped nor killed since."""
        return self._up is not None

    @property
    def zookeeper_pid(self) -> int:
        """Return the process id of the cluster's ZooKeeper, which it has for itself."""
        return int(self._ready["zookeeper"]["pid"])

    @property
    def log(self) -> str:
        """Return what the cluster has said so far."""
        return self._log_path.read_text(errors="replace")

    @property
    def _log_path(self) -> Path:
        return self.data.parent / f"{self.data.name}.log"

    @property
    def _ready_file(self) -> Path:
        return self.data.parent / f"{self.data.name}.ready.json"

    def start(self) -> None:
        """Start the cluster and wait until it is ready."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the cluster; `wait_ready` comes next."""
        self.data.parent.mkdir(parents=True, exist_ok=True)
        write_password(self.data / SECRET)
        self._ready_file.unlink(missing_ok=True)
        self._ready = {}  # the process ids of an earlier run may be somebody else's by now
        overrides = {**UNLESS_OVERRIDDEN, **self.overrides}
        settings = [f"--override={key}={value}" for key, value in overrides.items()]
        arguments = ["up", "--brokers", str(self.broker_count), "--data", str(self.data)]
        arguments += ["--port", str(self.port), "--metrics-port", "0"]
        if self.shares_zookeeper:
            self._shared_address = self._shared_address or address_for_cluster()
            arguments += ["--zookeeper", self._shared_address]
        arguments += [] if self.properties is None else ["--properties", str(self.properties)]
        arguments += [] if self.also is None else ["--also", self.also]
        arguments += [
            "--end-with-stdin",
            "--cluster-name",
            self.name,
            "--ready-file",
            str(self._ready_file),
            *settings,
        ]
        with self._log_path.open("ab") as log:
            # Its input is a pipe: a test that is killed takes its cluster along.
            self._up = start_program("broker.cli", *arguments, output=log, has_stdin=True)
        _RUNNING[id(self)] = self

    def wait_ready(self) -> None:
        """Wait until the cluster that was launched says where everything is."""
        assert self._up is not None, "it was launched"
        deadline = monotonic() + READY_TIMEOUT_S
        while not self._ready_file.exists():
            if self._up.poll() is not None or monotonic() > deadline:
                self.kill()
                raise ClusterFailed(f"cluster {self.name} did not become ready:\n{self.log}")
            _pause(0.05)
        self._ready = json.loads(self._ready_file.read_text())

    def stop(self) -> None:
        """End the cluster as Ctrl-C does and wait until it is gone."""
        self.interrupt()
        self.wait_stopped()

    def interrupt(self) -> None:
        """Ask the cluster to end; `wait_stopped` comes next."""
        for broker in list(self._single_brokers):
            self._end_single(broker, signal.SIGTERM)
        if self._up is not None:
            self._up.send_signal(signal.SIGINT)

    def wait_stopped(self) -> None:
        """Wait until the cluster that was asked to end is gone."""
        if self._up is None:
            return
        try:
            self._up.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise ClusterFailed(f"cluster {self.name} did not stop:\n{self.log}") from error
        self._forget_up()

    def kill(self) -> None:
        """End every process of the cluster by SIGKILL, its own ZooKeeper included: it is lost."""
        for broker in list(self._single_brokers):
            self._end_single(broker, signal.SIGKILL)
        if self._up is None:
            return
        children = [broker["pid"] for broker in self._ready.get("brokers", ())]
        children += [self.zookeeper_pid] if self._ready and not self.shares_zookeeper else []
        self._up.kill()  # the parent first, so that it reports no dead children
        ours = [pid for pid in children if self._is_ours(pid)]
        for pid in ours:
            _kill_quietly(pid)
        self._up.wait()
        deadline = monotonic() + STOP_TIMEOUT_S
        # Not by the command line: a dying process has lost that before its sockets and files.
        while any(map(is_alive, ours)) and monotonic() < deadline:
            _pause(0.02)
        self._forget_up()

    def _is_ours(self, pid: int) -> bool:
        """Return whether a process still is what we started: its id may have a new owner."""
        try:
            output = Path(f"/proc/{pid}/fd/1").readlink()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return output.is_relative_to(self.data.resolve())

    def kill_parent_only(self) -> None:
        """End `broker up` itself by SIGKILL; its children have to notice by themselves."""
        assert self._up is not None, "it runs"
        self._up.kill()
        self._up.wait()
        self._forget_up()

    def _forget_up(self) -> None:
        assert self._up is not None, "it ran until now"
        _forget(self._up)
        self._up = None
        _RUNNING.pop(id(self), None)

    def restart(self) -> None:
        """Start again on the same data and ports; ends what still runs."""
        self.stop()
        self.start()

    def kill_broker(self, broker: int) -> None:
        """End one broker by SIGKILL; the others go on."""
        if broker in self._single_brokers:
            self._end_single(broker, signal.SIGKILL)
            return
        pid = self.pids[broker]
        os.kill(pid, signal.SIGKILL)
        deadline = monotonic() + STOP_TIMEOUT_S
        while is_alive(pid) and monotonic() < deadline:
            _pause(0.02)

    def start_broker(self, broker: int) -> None:
        """Start a broker that was killed, as a child of the test; does not wait for it."""
        earlier = self._single_brokers.pop(broker, None)
        if earlier is not None:
            earlier.wait(STOP_TIMEOUT_S)  # the test ended it by a signal of its own
            _forget(earlier)
        properties = self.data / f"broker-{broker}" / "server.properties"
        with self._log_path.open("ab") as log:
            self._single_brokers[broker] = start_program(
                "broker.cli", "run", str(properties), "--end-with-stdin", output=log, has_stdin=True
            )

    def last_words(self) -> dict[str, str]:
        """Return the last lines of each log by name, and which brokers of a test's own ended."""
        files = [self._log_path, *sorted(self.data.glob("broker-*/broker.log"))]
        words = {
            str(file.relative_to(self.data.parent)): "\n".join(
                file.read_text(errors="replace").splitlines()[-LAST_LINES:]
            )
            for file in files
            if file.exists()
        }
        for number, child in self._single_brokers.items():
            status = child.poll()
            if status is not None:
                words[f"broker {number} (process {child.pid})"] = f"ended with status {status}"
        return words

    def metrics_url(self, broker: int) -> str:
        """Return where one broker serves its metrics."""
        served = {entry["id"]: entry["metrics_port"] for entry in self._ready["brokers"]}
        return f"http://127.0.0.1:{served[broker]}/metrics"

    def _end_single(self, broker: int, how: signal.Signals) -> None:
        child = self._single_brokers.pop(broker)
        child.send_signal(how)
        try:
            child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        _forget(child)


def cluster_in(
    folder: Path,
    brokers: int = 1,
    name: str = "dc1",
    overrides: Mapping[str, str] | None = None,
    *,
    shares_zookeeper: bool = False,
) -> RunningCluster:
    """Return a cluster that is yet to be started, with its data in `folder/name`."""
    return RunningCluster(
        name=name,
        data=folder / name,
        broker_count=brokers,
        overrides=dict(overrides or {}),
        shares_zookeeper=shares_zookeeper,
    )


@contextmanager
def run_cluster(
    folder: Path,
    brokers: int = 1,
    name: str = "dc1",
    overrides: Mapping[str, str] | None = None,
    *,
    shares_zookeeper: bool = False,
) -> Iterator[RunningCluster]:
    """Run a bundled cluster on free ports with data in `folder/name`."""
    cluster = cluster_in(folder, brokers, name, overrides, shares_zookeeper=shares_zookeeper)
    with run_together(cluster):
        yield cluster


@contextmanager
def run_together(*clusters: RunningCluster) -> Iterator[None]:
    """Run clusters that start, and at the end stop, all at the same time."""
    try:
        for cluster in clusters:
            cluster.launch()
        for cluster in clusters:
            cluster.wait_ready()
        yield
        for cluster in clusters:
            cluster.interrupt()
        for cluster in clusters:
            cluster.wait_stopped()
    except BaseException:
        for cluster in clusters:
            cluster.kill()
        raise


def run_broker_program(
    arguments: Sequence[str], *, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run the program `broker` until it ends by itself; for start-up errors."""
    return call_program("broker.cli", *arguments).finish(timeout_s)


def words_of_running() -> dict[str, str]:
    """Return the last words of all clusters that this process runs, by cluster and log."""
    return {
        f"{cluster.name}: {name}": said
        for cluster in _RUNNING.values()
        for name, said in cluster.last_words().items()
    }


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not.

    A killed process whose first thread is a zombie already has its ports and locks until the
    last of its threads is gone, which takes a busy machine 0.1 s.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not is_readable(descriptor, 0)
    finally:
        os.close(descriptor)


def _kill_quietly(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended with its parent


def _forget(child: Process) -> None:
    """Close our end of an ended child's pipe."""
    if child.stdin is not None:
        child.stdin.close()


def _pause(seconds: float) -> None:
    Event().wait(seconds)
