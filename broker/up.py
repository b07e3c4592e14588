"""`broker up`: a whole local cluster as children of one process, gone when that is gone.

Each child watches a pipe whose other end this process holds, so it ends with this process however
that ends. A restart on the same data has the same records and the same ports.
"""

import fcntl
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Final

import trio

from broker.parent import cancel_without_parent
from broker.ports import Ports, PortWishes, choose_ports, remember_ports
from broker.zookeeper.login import USERNAME
from runtime.coordination.zookeeper_access import Login, LoginMechanism
from runtime.process.ports import NoFreePort
from runtime.process.signals import cancel_on_signal
from runtime.process.zookeeper_server import ServerDoors, run_zookeeper
from wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from wire.net import NetworkFault
from wire.net.connecting import ConnectionSettings
from wire.net.pool import ConnectionPool
from wire.net.secret_file import BadSecretFile, make_own_secret, read_own_secret
from wire.values import frozen

_LOG = logging.getLogger(__name__)

SECRET: Final = "zookeeper.secret"  # noqa: S105 - the name of a file
"""The brokers' password at their ZooKeeper, made at the first start."""
MEMORY: Final = "cluster.json"
"""The ports of last time."""
READY_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 12.0
POLL_S: Final = 0.05
ANSWER_S: Final = 2.0

KAFKAS_FACTOR: Final = 3
KAFKAS_MIN_ISR: Final = 2
DEFAULTS: Final[Mapping[str, str]] = {
    "zookeeper.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "0",
}
"""Where a local cluster differs from Kafka's defaults; `--override` comes after these."""


class ClusterFailed(RuntimeError):
    """The cluster did not come up; the message says which part, and its own last words."""


@frozen
class UpOptions:
    """The options of `broker up`."""

    name: str
    data: Path
    ports: PortWishes
    ready_file: Path | None
    overrides: Mapping[str, str]
    also: str | None = None
    """The security protocol of a second listener of each broker."""
    zookeeper: str | None = None
    """`host:port[,host:port][/chroot]` of servers that run by themselves; None: one of our own."""
    ends_with_stdin: bool = False
    log_words: tuple[str, ...] = ()
    """What brokers are told about their logs."""


@frozen
class ClusterZooKeeper:
    """Where the brokers find each other; `process` is the server's, where it is our own child."""

    address: str
    process: trio.Process | None = None


@frozen
class Child:
    """One broker process; `output` is the file it writes its log to."""

    broker_id: int
    host: str
    port: int
    also_port: int | None
    metrics_port: int | None
    output: Path
    process: trio.Process

    def last_words(self) -> str:
        """Return the last line that the broker wrote."""
        try:
            lines = self.output.read_text(errors="replace").strip().splitlines()
        except OSError as error:
            return f"({self.output}: {error.strerror})"
        return lines[-1] if lines else "(it said nothing)"


async def bring_up(options: UpOptions) -> None:
    """Run the cluster until a signal. Raises ClusterFailed and what ZooKeeper's start raises."""
    with _held(options.data):
        async with trio.open_nursery() as nursery:
            await nursery.start(cancel_on_signal, nursery.cancel_scope)
            if options.ends_with_stdin:
                nursery.start_soon(cancel_without_parent, nursery.cancel_scope)
            await _run(options, nursery)


async def _run(options: UpOptions, nursery: trio.Nursery) -> None:
    ports = _choose_ports(options)
    async with _open_zookeeper(options, ports) as zookeeper:
        children: list[Child] = []
        try:
            for broker_id in range(options.ports.brokers):
                child = await _start(options, ports, broker_id, zookeeper)
                children.append(child)
            await _wait_ready(children)
            _remember_ports(options, ports)
            _announce(options, zookeeper, children)
            for child in children:
                nursery.start_soon(_report_death, child)
            if zookeeper.process is not None:
                nursery.start_soon(_report_zookeeper_death, zookeeper.process)
            await trio.sleep_forever()
        finally:
            await _stop(children)


@asynccontextmanager
async def _open_zookeeper(options: UpOptions, ports: Ports) -> AsyncIterator[ClusterZooKeeper]:
    """Run a server for the cluster, unless it is to use one that runs by itself."""
    login = _own_login(options)
    if options.zookeeper is not None:
        yield ClusterZooKeeper(address=options.zookeeper)
        return
    async with run_zookeeper(
        options.data / "zookeeper",
        host=options.ports.host,
        port=ports.zookeeper,
        doors=ServerDoors(owner=login.identity.name),
    ) as server:
        yield ClusterZooKeeper(address=server.address, process=server.process)


@contextmanager
def _held(data: Path) -> Iterator[None]:
    """Keep a second cluster out of the folder, before it overwrites anything of the first."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = (data / ".lock").open("w")
    except OSError as error:
        raise ClusterFailed(f"--data {data}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ClusterFailed(f"--data {data}: another `broker up` runs on it") from error
        yield


def _own_login(options: UpOptions) -> Login:
    """Return who the brokers are to their ZooKeeper, with a new password if there is none.

    A server of our own refuses nothing to this login, so a file that got lost may be made anew:
    the brokers give all nodes to the new password.
    """
    file = options.data / SECRET
    try:
        make_own_secret(file)
        password = read_own_secret(file)
    except OSError as error:
        raise ClusterFailed(f"--data {file}: {error.strerror}") from error
    except BadSecretFile as problem:
        raise ClusterFailed(f"--data {file}: {problem}") from problem
    return Login(
        mechanism=LoginMechanism.DIGEST,
        username=options.overrides.get("zookeeper.username", USERNAME),
        password=password,
    )


def _choose_ports(options: UpOptions) -> Ports:
    try:
        return choose_ports(options.ports, options.data / MEMORY)
    except NoFreePort as error:
        raise ClusterFailed(f"--host {error}") from error
    except OSError as error:
        raise ClusterFailed(f"--data {options.data}: {error.strerror}") from error
    except ValueError as error:
        raise ClusterFailed(f"{options.data / 'cluster.json'}: {error}") from error


def _remember_ports(options: UpOptions, ports: Ports) -> None:
    """Only now: a start that fails must not change what a running cluster, or the next, uses."""
    memory = options.data / MEMORY
    try:
        remember_ports(ports, memory)
    except OSError as error:
        raise ClusterFailed(f"{memory}: {error.strerror}") from error


def _internal_topics(brokers: int) -> Mapping[str, str]:
    """Let the groups outlive a broker where there are others, as Kafka does."""
    factor = str(min(KAFKAS_FACTOR, brokers))
    return {
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": str(min(KAFKAS_MIN_ISR, brokers)),
    }


async def _start(
    options: UpOptions, ports: Ports, broker_id: int, zookeeper: ClusterZooKeeper
) -> Child:
    folder = options.data / f"broker-{broker_id}"
    port = ports.brokers[broker_id]
    metrics_port = ports.metrics[broker_id] if ports.metrics else None
    also_port = ports.also[broker_id] if options.also is not None else None
    listener = f"PLAINTEXT://{options.ports.host}:{port}"
    if also_port is not None:
        listener += f",{options.also}://{options.ports.host}:{also_port}"
    settings = {
        "broker.id": str(broker_id),
        "listeners": listener,
        "log.dirs": str(folder / "logs"),
        "zookeeper.connect": zookeeper.address,
        "zookeeper.password.file": str(options.data / SECRET),
        "zookeeper.set.acl": "true",
        "metrics.host": options.ports.host,
        "metrics.port": str(-1 if metrics_port is None else metrics_port),
        **DEFAULTS,
        **_internal_topics(options.ports.brokers),
        **options.overrides,
    }
    properties = folder / "server.properties"
    output = folder / "broker.log"
    with ExitStack() as opened:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write_settings(properties, settings)
            sink = opened.enter_context(output.open("ab"))
        except OSError as error:
            raise ClusterFailed(f"--data {folder}: {error.strerror}") from error
        process = await open_broker(properties, sink, options.log_words)
    return Child(
        broker_id=broker_id,
        host=options.ports.host,
        port=port,
        also_port=also_port,
        metrics_port=metrics_port,
        output=output,
        process=process,
    )


def _write_settings(file: Path, settings: Mapping[str, str]) -> None:
    """Write them as Java reads them, for our user alone: there may be passwords among them."""
    file.touch(mode=0o600)
    file.chmod(0o600)
    lines = [f"{key}={value}\n" for key, value in settings.items()]
    file.write_text("".join(lines).replace("\\", "\\\\"))


async def open_broker(
    properties: Path, output: IO[bytes], log_words: Sequence[str] = ()
) -> trio.Process:
    """Start `broker run` in a session of its own; it ends when its input, a pipe, does."""
    words = [*log_words, "run", str(properties), "--end-with-stdin"]
    return await trio.lowlevel.open_process(
        [sys.executable, "-m", "broker.cli", *words],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


async def _wait_ready(children: Sequence[Child]) -> None:
    """Wait until every broker knows all of them and the controller."""
    with trio.move_on_after(READY_TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            settings = ConnectionSettings(client_id="broker-up")
            pool = ConnectionPool(nursery, settings)
            for child in children:
                await _wait_knows_all(child, pool, children)
            pool.close("the cluster is ready")
            nursery.cancel_scope.cancel()
        return
    raise ClusterFailed(
        f"not ready within {READY_TIMEOUT_S:.0f} s; "
        + "; ".join(f"broker {child.broker_id}: {child.last_words()}" for child in children)
    )


async def _wait_knows_all(child: Child, pool: ConnectionPool, children: Sequence[Child]) -> None:
    while True:
        for one in children:  # without any of them none will ever know all
            status = one.process.poll()
            if status is not None:
                raise ClusterFailed(
                    f"broker {one.broker_id} ended with status {status}: {one.last_words()}"
                )
        with trio.move_on_after(ANSWER_S):  # it may be a stranger's port, who never answers
            if await _knows_all(child, pool, len(children)):
                return
        await trio.sleep(POLL_S)


async def _knows_all(child: Child, pool: ConnectionPool, brokers: int) -> bool:
    try:
        connection = await pool.connection((child.host, child.port))
        known: DescribeClusterResponse = await connection.request(
            DescribeClusterRequest(include_cluster_authorized_operations=False)
        )
    except NetworkFault as fault:
        _LOG.debug("broker %s: %s", child.broker_id, fault)
        return False
    return len(known.brokers) == brokers and known.controller_id >= 0


def _announce(options: UpOptions, zookeeper: ClusterZooKeeper, children: Sequence[Child]) -> None:
    """Print where everything is, and write the same for programs."""
    bootstrap = ",".join(f"{child.host}:{child.port}" for child in children)
    lines = [
        f"cluster {options.name} is ready",
        f"  bootstrap  {bootstrap}",
        f"  zookeeper  {zookeeper.address}, password in {options.data / SECRET}",
        f"  data       {options.data}",
    ]
    if options.also is not None:
        secured = ",".join(f"{child.host}:{child.also_port}" for child in children)
        lines.insert(2, f"  {options.also:<9}  {secured}")
    if any(child.metrics_port is not None for child in children):
        urls = [f"http://{child.host}:{child.metrics_port}/metrics" for child in children]
        lines.append(f"  metrics    {' '.join(urls)}")
    sys.stdout.write("\n".join(lines) + "\n  Ctrl-C ends it\n")
    sys.stdout.flush()
    if options.ready_file is not None:
        _write_ready_file(options, options.ready_file, zookeeper, children)


def _write_ready_file(
    options: UpOptions, path: Path, zookeeper: ClusterZooKeeper, children: Sequence[Child]
) -> None:
    ready = {
        "name": options.name,
        "pid": os.getpid(),
        "bootstrap": ",".join(f"{child.host}:{child.port}" for child in children),
        "data": str(options.data),
        "zookeeper": {
            "address": zookeeper.address,
            "pid": None if zookeeper.process is None else zookeeper.process.pid,
            "password_file": str(options.data / SECRET),
        },
        "brokers": [
            {
                "id": child.broker_id,
                "pid": child.process.pid,
                "host": child.host,
                "port": child.port,
                "also_port": child.also_port,
                "metrics_port": child.metrics_port,
            }
            for child in children
        ],
    }
    half = path.with_name(path.name + ".part")
    try:
        half.write_text(json.dumps(ready) + "\n")
        half.replace(path)  # who waits for the file never reads half of it
    except OSError as error:
        raise ClusterFailed(f"--ready-file {path}: {error.strerror}") from error


async def _report_death(child: Child) -> None:
    status = await child.process.wait()
    _LOG.error(
        "broker %s (process %s) ended with status %s: %s; the others go on",
        child.broker_id,
        child.process.pid,
        status,
        child.last_words(),
    )


async def _report_zookeeper_death(process: trio.Process) -> None:
    status = await process.wait()
    _LOG.error(
        "ZooKeeper (process %s) ended with status %s; the brokers serve what they lead, but "
        "nothing can change",
        process.pid,
        status,
    )


async def _stop(children: Sequence[Child]) -> None:
    """Ask every broker to end, all at once; kill what has not ended in time."""
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            for child in children:
                nursery.start_soon(_stop_one, child)


async def _stop_one(child: Child) -> None:
    if child.process.poll() is None:
        child.process.terminate()
    with trio.move_on_after(STOP_TIMEOUT_S):
        await child.process.wait()
    if child.process.poll() is None:
        _LOG.error("broker %s did not end in time and is killed", child.broker_id)
        child.process.kill()
        await child.process.wait()
    assert child.process.stdin is not None, "children are started with a pipe"
    await child.process.stdin.aclose()
