"""A running Apache Kafka cluster, with the face of the bundled one in `tests.clusters`.

with run_kafka(tmp_path, KAFKA_4_KRAFT, brokers=3) as cluster:
    Producer({"bootstrap.servers": cluster.bootstrap})
"""

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from runtime.process.ports import free_port
from tests.interop.peers.broker_settings import HOST, Seat, broker_settings
from tests.interop.peers.child import PAUSE_S, Child, pause, start_child
from tests.interop.peers.faults import PeerFailed, PeerLost
from tests.interop.peers.java_program import QUICK_START, JavaProgram
from tests.interop.peers.kinds import Kind, Mode
from tests.interop.peers.resources import require_disk, require_memory

START_TIMEOUT_S: Final = 240
STOP_TIMEOUT_S: Final = 60
QUORUM_PATIENCE_S: Final = 6
ZOOKEEPER_TIMEOUT_S: Final = 60
HEAP_MB: Final = 512
BESIDE_HEAP_MB: Final = 200
"""What one broker may come to beside its heap: code, threads and buffers."""
DISK_MB: Final = 500
BROKER_IDS: Final = "/brokers/ids"
CLUSTER_ID: Final = "aW50ZXJvcC1jbHVzdGVyIQ"
"""Any 16 bytes in unpadded base64: the clusters of one test never meet."""
SETTINGS: Final = "kafka.properties"
"""Not `server.properties`: a data folder may have been the bundled broker's before."""
STARTED: Final = {
    Mode.ZOOKEEPER: "started (kafka.server.KafkaServer)",
    Mode.KRAFT: "Kafka Server started (kafka.server.KafkaRaftServer)",
}


@dataclass(slots=True, kw_only=True)
class KafkaCluster:
    """Brokers of one kind, from number 0; `data` and the ports stay over `restart()`.

    `data` is laid out as the bundled cluster does it, so that one can take over from the other.
    """

    name: str
    kind: Kind
    data: Path
    broker_count: int
    overrides: Mapping[str, str] = field(default_factory=dict)
    heap_mb: int = HEAP_MB
    jvm_options: tuple[str, ...] = QUICK_START
    _seats: tuple[Seat, ...] = ()
    _zookeeper_port: int = 0
    _zookeeper: Child | None = None
    _brokers: dict[int, Child] = field(default_factory=dict)
    _has_run: bool = False

    @property
    def bootstrap(self) -> str:
        """Return `host:port,host:port`, as clients want it."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Return the same as pairs, as `wire.net` wants it."""
        return [(HOST, seat.port) for seat in self._seats]

    @property
    def zookeeper(self) -> str:
        """Return `host:port` of the cluster's ZooKeeper; only in that mode there is one."""
        assert self.kind.mode is Mode.ZOOKEEPER
        return f"{HOST}:{self._zookeeper_port}"

    @property
    def pids(self) -> dict[int, int]:
        """Return the process id of each broker by broker id."""
        return {number: child.pid for number, child in self._brokers.items()}

    @property
    def log(self) -> str:
        """Return what the brokers have said since they were started."""
        return "\n".join(child.said() for child in self._brokers.values())

    def log_folder(self, broker: int) -> Path:
        """Return where a broker keeps its partitions."""
        return self.data / f"broker-{broker}" / "logs"

    def start(self) -> None:
        """Start the cluster and wait until it is ready.

        Raises PeerUnavailable or PeerFailed; PeerLost when it has been ready before.
        """
        self.data.mkdir(parents=True, exist_ok=True)
        require_memory((self.heap_mb + BESIDE_HEAP_MB) * self.broker_count)
        require_disk(self.data, DISK_MB)
        if not self._seats:
            self._seats = tuple(
                Seat(number=number, port=free_port(HOST), controller_port=free_port(HOST))
                for number in range(self.broker_count)
            )
            self._zookeeper_port = free_port(HOST)
        try:
            if self.kind.mode is Mode.ZOOKEEPER:
                self._start_zookeeper()
            for seat in self._seats:
                self._prepare(seat)
            for seat in self._seats:
                self.start_broker(seat.number)
            for child in self._brokers.values():
                child.wait_until(partial(self._says_started, child), timeout_s=START_TIMEOUT_S)
                child.wait_until(self._knows_all_brokers, timeout_s=START_TIMEOUT_S)
        except BaseException as fault:
            self.kill()
            if self._has_run and isinstance(fault, PeerFailed):
                raise PeerLost(str(fault)) from fault
            raise
        self._has_run = True

    def stop(self) -> None:
        """End the cluster in order and wait until it is gone; PeerLost if it had to be killed.

        Of several KRaft brokers the last wait for a majority that will not come: they are killed.
        """
        for child in self._brokers.values():
            child.ask_to_stop()
        try:
            for child in self._brokers.values():
                if self.kind.mode is Mode.KRAFT and self.broker_count > 1:
                    child.wait_gone(patience_s=QUORUM_PATIENCE_S)
                else:
                    child.stop(patience_s=STOP_TIMEOUT_S)
            if self._zookeeper is not None:
                self._zookeeper.stop(patience_s=STOP_TIMEOUT_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """End every process of the cluster by SIGKILL, ZooKeeper included: the site is lost.

        ZooKeeper's Java is a child of what is killed, and ends a moment after that.
        """
        for child in self._brokers.values():
            child.kill()
        self._brokers.clear()
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper = None
            self._wait_nobody_serves(self._zookeeper_port)

    def _wait_nobody_serves(self, port: int) -> None:
        deadline = monotonic() + STOP_TIMEOUT_S
        with suppress(ConnectionRefusedError):
            while monotonic() < deadline:
                socket.create_connection((HOST, port), timeout=STOP_TIMEOUT_S).close()
                pause(PAUSE_S)
            raise PeerLost(f"ZooKeeper of {self.name} was killed and serves on port {port}")

    def restart(self) -> None:
        """Start again on the same data and ports; ends what still runs."""
        self.stop()
        self.start()

    def kill_broker(self, broker: int) -> None:
        """End one broker by SIGKILL; the others go on."""
        self._brokers.pop(broker).kill()

    def start_broker(self, broker: int) -> None:
        """Start one broker, for instance one that was killed; does not wait for it."""
        home = self.data / f"broker-{broker}"
        program = self._program("kafka.Kafka", self.heap_mb)
        self._brokers[broker] = start_child(
            f"{self.kind} broker {broker} of {self.name}",
            program.command(home, str(home / SETTINGS)),
            log=home / "broker.out",
        )

    def _start_zookeeper(self) -> None:
        data = self.data / "zookeeper"
        data.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "runtime.process.zookeeper_server", "--data", str(data)]
        self._zookeeper = child = start_child(
            f"ZooKeeper of {self.name}",
            [*command, "--port", str(self._zookeeper_port)],
            log=self.data / "zookeeper.out",
        )
        child.wait_until(lambda: "ZooKeeper serves" in child.said(), timeout_s=ZOOKEEPER_TIMEOUT_S)
        child.wait_until(self._is_nobody_registered, timeout_s=ZOOKEEPER_TIMEOUT_S)

    def _is_nobody_registered(self) -> bool:
        """Say whether the sessions of brokers that were killed are over."""
        client = KazooClient(hosts=self.zookeeper)
        client.start(timeout=ZOOKEEPER_TIMEOUT_S)
        try:
            return not client.exists(BROKER_IDS) or not client.get_children(BROKER_IDS)
        finally:
            client.stop()
            client.close()

    def _prepare(self, seat: Seat) -> None:
        """Write the broker's settings, and format its KRaft log at the first start."""
        home = self.data / f"broker-{seat.number}"
        settings = home / SETTINGS
        if settings.exists():
            return
        home.mkdir(exist_ok=True)
        settings.write_text(
            broker_settings(
                seat,
                mode=self.kind.mode,
                quorum=self._seats,
                zookeeper=f"{HOST}:{self._zookeeper_port}",
                log_folder=self.log_folder(seat.number),
                overrides=self.overrides,
            )
        )
        if self.kind.mode is Mode.KRAFT:
            self._format(home, settings)

    def _format(self, home: Path, settings: Path) -> None:
        command = self._program("kafka.tools.StorageTool", 128).command(
            home, "format", "--cluster-id", CLUSTER_ID, "--config", str(settings), is_quiet=True
        )
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False
        )
        if ended.returncode != 0:
            raise PeerFailed(
                f"{self.kind} did not format {home}: {(ended.stderr + ended.stdout).strip()}"
            )

    def _program(self, main_class: str, heap_mb: int) -> JavaProgram:
        return JavaProgram(
            version=self.kind.version,
            main_class=main_class,
            heap_mb=heap_mb,
            jvm_options=self.jvm_options,
        )

    def _says_started(self, child: Child) -> bool:
        return STARTED[self.kind.mode] in child.said()

    def _knows_all_brokers(self) -> bool:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": "0"})
        try:
            return len(admin.list_topics(timeout=5).brokers) == self.broker_count
        except KafkaException:
            return False


@contextmanager
def run_kafka(
    folder: Path,
    kind: Kind,
    brokers: int = 1,
    name: str = "dc1",
    overrides: Mapping[str, str] | None = None,
) -> Iterator[KafkaCluster]:
    """Run a cluster of that kind on free ports with data in `folder/name`."""
    cluster = KafkaCluster(
        name=name,
        kind=kind,
        data=folder / name,
        broker_count=brokers,
        overrides=dict(overrides or {}),
    )
    cluster.start()
    try:
        yield cluster
    except BaseException:
        cluster.kill()
        raise
    cluster.stop()
