"""A standalone Spark: a master and two workers, each with folders that nobody else sees.

A worker has a namespace of mounts of its own, in which the folders of the driver and of the other
worker are empty: what comes back comes over the network.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import run
from typing import Final

import pyspark

from runtime.process.java import JavaMissing, java_command
from runtime.process.ports import free_port
from tests.interop.peers.child import Child, start_child
from tests.interop.peers.faults import PeerUnavailable

HOST: Final = "127.0.0.1"
READY_S: Final = 60
STOP_S: Final = 30
WORKERS: Final = 2
_SPARK: Final = Path(pyspark.__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneSpark:
    """The address of the master, and what each worker has put on its disk."""

    master: str
    disks: Sequence[Path]

    def holds(self, text: str) -> list[Path]:
        """Return the files of workers that hold this text."""
        files = [one for disk in self.disks for one in disk.rglob("*") if one.is_file()]
        return [file for file in files if text.encode() in file.read_bytes()]


@contextmanager
def run_standalone_spark(folder: Path, hidden: Sequence[Path]) -> Iterator[StandaloneSpark]:
    """Run it until the block ends; no worker sees what is in `hidden`. Raises PeerUnavailable."""
    _require_namespaces()
    port = free_port()
    address = f"spark://{HOST}:{port}"
    disks = [folder / f"worker-{number}" for number in range(WORKERS)]
    for disk in disks:
        disk.mkdir(parents=True)
    master = [*_java(), "org.apache.spark.deploy.master.Master", "--host", HOST]
    with ExitStack() as stack:
        running = _started(
            stack, "master", [*master, "--port", str(port), "--webui-port", "0"], folder
        )
        running.wait_until(lambda: "New state: ALIVE" in running.said(), timeout_s=READY_S)
        for disk in disks:
            others = [one for one in disks if one != disk]
            command = _apart(_worker(disk, address), [*hidden, *others])
            _wait_registered(_started(stack, disk.name, command, folder))
        yield StandaloneSpark(master=address, disks=disks)


def _started(stack: ExitStack, name: str, command: Sequence[str], folder: Path) -> Child:
    child = start_child(f"Spark's {name}", command, log=folder / f"{name}.log")
    stack.callback(child.kill)
    return child


def _wait_registered(worker: Child) -> None:
    worker.wait_until(lambda: "Successfully registered" in worker.said(), timeout_s=READY_S)


def _java() -> list[str]:
    try:
        java = java_command()
    except JavaMissing as error:
        raise PeerUnavailable(str(error)) from error
    jars = f"{_SPARK / 'jars'}/*"
    return ["env", "SPARK_SCALA_VERSION=2.13", f"SPARK_HOME={_SPARK}", str(java), "-cp", jars]


def _worker(disk: Path, address: str) -> list[str]:
    work, local = disk / "work", disk / "local"
    *environment, java, flag, jars = _java()
    return [
        *environment,
        f"SPARK_LOCAL_DIRS={local}",
        f"SPARK_WORKER_DIR={work}",
        java,
        f"-Djava.io.tmpdir={disk}",
        flag,
        jars,
        "org.apache.spark.deploy.worker.Worker",
        *("--cores", "1", "--memory", "1g", "--host", HOST, "--webui-port", "0", address),
    ]


def _apart(command: Sequence[str], hidden: Sequence[Path]) -> list[str]:
    """Return the command with nothing in these folders."""
    mounts = [f"mount -t tmpfs none {shlex.quote(str(folder))}" for folder in hidden]
    return ["unshare", "--mount", "sh", "-c", " && ".join([*mounts, f"exec {shlex.join(command)}"])]


def _require_namespaces() -> None:
    try:
        tried = run(["unshare", "--mount", "true"], capture_output=True, check=False, text=True)
    except FileNotFoundError as missing:
        raise PeerUnavailable("unshare is not installed (util-linux)") from missing
    if tried.returncode != 0:
        raise PeerUnavailable(f"no namespaces of mounts here: {tried.stderr.strip()}")
