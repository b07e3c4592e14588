"""A bundled cluster behind TLS and SASL for tests: `broker run` for each broker, and its ZooKeeper.

Each broker has a listener for each security protocol; brokers come to each other over SASL_SSL, by
SCRAM. With it goes what lets clients in (`Secured`), for Apache Kafka's clusters as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from runtime.configuration.config import ClusterConfig
from runtime.process.ports import free_ports
from tests.doubles.certificates import Certificates
from tests.failover.two_sites import pause
from tests.forked import Process, start_program
from tests.zookeeper import brokers_login, run_witness
from wire.net.security import WITH_PASSWORDS, Mechanism, Sasl, Security, Tls
from wire.net.transport import Address

HOST: Final = "127.0.0.1"
USER: Final = "mirror"
RIGHT, WRONG = "pencil", "eraser"
PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
READY_TIMEOUT_S: Final = 120
STOP_TIMEOUT_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A site's certificates, and the port of each secured listener of its first broker."""

    certificates: Certificates
    ports: Mapping[str, int]

    def address(self, protocol: str) -> Address:
        """Return where the listener of this protocol is."""
        return HOST, self.ports[protocol]

    def tls(self, *, with_certificate: bool) -> Tls:
        """Return what a client needs; the listener SSL wants a certificate of it as well."""
        made = self.certificates
        if not with_certificate:
            return Tls(ca=made.ca)
        return Tls(ca=made.ca, certificate=made.client, key=made.key(made.client))

    def security(self, protocol: str, mechanism: Mechanism = Mechanism.PLAIN) -> Security:
        """Return what lets a client in."""
        return Security(
            tls=self.tls(with_certificate=protocol == "SSL") if protocol[-3:] == "SSL" else None,
            sasl=Sasl(mechanism=mechanism, username=USER, password=RIGHT)
            if protocol.startswith("SASL")
            else None,
        )

    def client(
        self, protocol: str, mechanism: Mechanism = Mechanism.PLAIN, **settings: Any
    ) -> dict[str, Any]:
        """Return the settings of a librdkafka client that is let in."""
        cluster = ClusterConfig(
            name="dc1",
            bootstrap=(self.address(protocol),),
            security=self.security(protocol, mechanism),
        )
        named = {key.replace("_", "."): value for key, value in settings.items()}
        return dict(cluster.client_settings({"log_level": 0, **named}))

    def section(self, protocol: str, mechanism: Mechanism = Mechanism.PLAIN) -> dict[str, object]:
        """Return the cluster's section of our programs' YAML file."""
        host, port = self.address(protocol)
        made = self.certificates
        found: dict[str, object] = {"bootstrap": f"{host}:{port}", "security_protocol": protocol}
        if protocol.endswith("SSL"):
            found["ssl"] = {"ca": str(made.ca)}
        if protocol == "SSL":
            own = {"certificate": str(made.client), "key": str(made.key(made.client))}
            found["ssl"] = {"ca": str(made.ca), **own}
        if protocol.startswith("SASL"):
            found["sasl"] = {"mechanism": mechanism.value, "username": USER, "password": RIGHT}
        return found

    def java_properties(self, protocol: str, mechanism: Mechanism, folder: Path) -> Path:
        """Write a client.properties for Kafka's tools."""
        made = self.certificates
        module = PLAIN_MODULE if mechanism is Mechanism.PLAIN else SCRAM_MODULE
        lines = [f"security.protocol={protocol}"]
        if protocol[-3:] == "SSL":
            lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={made.ca}"]
        if protocol == "SSL":
            keystore = folder / "client-keystore.pem"
            keystore.write_text(made.key(made.client).read_text() + made.client.read_text())
            lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={keystore}"]
        if protocol.startswith("SASL"):
            who = f'{module} required username="{USER}" password="{RIGHT}";'
            lines += [f"sasl.mechanism={mechanism.value}", f"sasl.jaas.config={who}"]
        path = folder / "client.properties"
        path.write_text("\n".join(lines) + "\n")
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredCluster(Secured):
    """The running brokers; `bootstrap` and `addresses` are their listeners without security."""

    addresses: list[Address]
    zookeeper: str
    logs: Sequence[Path]
    of_brokers: Sequence[Mapping[str, int]]
    """The ports of each broker, by listener."""
    pids: Sequence[int]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.addresses)

    def ports_of(self, listener: str) -> list[int]:
        """Return where each broker has this listener."""
        return [ports[listener] for ports in self.of_brokers]

    def log(self, broker: int = 0) -> str:
        """Return what a broker has said so far."""
        return self.logs[broker].read_text(errors="replace")


@contextmanager
def run_secured_cluster(
    folder: Path,
    brokers: int = 1,
    name: str = "dc1",
    more: Mapping[str, str] | None = None,
) -> Iterator[SecuredCluster]:
    """Run it with data in `folder/name` until the block ends."""
    home = folder / name
    home.mkdir(parents=True)
    certificates = Certificates(home)
    with ExitStack() as stack:
        zookeeper = stack.enter_context(run_witness(home / "zookeeper"))
        free = free_ports(HOST)
        ports = [
            {protocol: next(free) for protocol in ("PLAINTEXT", *PROTOCOLS)} for _ in range(brokers)
        ]
        processes: list[Process] = []
        for broker in range(brokers):
            settings = _settings(broker, ports[broker], certificates, zookeeper, brokers)
            settings |= brokers_login(home / "zookeeper.secret") | dict(more or {})
            started = _run_broker(home, broker, settings)
            processes.append(stack.enter_context(started))
        cluster = SecuredCluster(
            certificates=certificates,
            ports=ports[0],
            addresses=[(HOST, one["PLAINTEXT"]) for one in ports],
            zookeeper=zookeeper,
            logs=[home / f"broker-{broker}.log" for broker in range(brokers)],
            of_brokers=ports,
            pids=[process.pid for process in processes],
        )
        _wait_ready(cluster, processes)
        yield cluster


def _settings(
    broker: int,
    ports: Mapping[str, int],
    certificates: Certificates,
    zookeeper: str,
    brokers: int,
) -> dict[str, str]:
    home = certificates.folder
    keystore = home / "broker-keystore.pem"
    keystore.write_text(
        certificates.key(certificates.broker).read_text() + certificates.broker.read_text()
    )
    who = f'required username="broker" password="b" user_broker="b" user_{USER}="{RIGHT}";'
    factor = str(min(brokers, 3))
    return {
        "broker.id": str(broker),
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "inter.broker.listener.name": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.enabled.mechanisms": ",".join(one.value for one in WITH_PASSWORDS),
        "sasl.jaas.config": f"{SCRAM_MODULE} {who}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca),
        "listener.name.ssl.ssl.client.auth": "required",
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": "6000",
        "log.dirs": str(home / f"logs-{broker}"),
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.replication.factor": factor,
        "offsets.topic.num.partitions": "4",
    }


@contextmanager
def _run_broker(home: Path, broker: int, settings: Mapping[str, str]) -> Iterator[Process]:
    properties = home / f"broker-{broker}.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    with (home / f"broker-{broker}.log").open("ab") as log:
        # Its input is a pipe: a test that is killed takes its brokers along.
        process = start_program(
            "broker.cli", "run", str(properties), "--end-with-stdin", output=log, has_stdin=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()


def _wait_ready(cluster: SecuredCluster, processes: Sequence[Process]) -> None:
    """Wait until each broker knows all of them; asked over the listener without security."""
    deadline, brokers = monotonic() + READY_TIMEOUT_S, len(processes)
    for host, port in cluster.addresses:
        admin = AdminClient({"bootstrap.servers": f"{host}:{port}", "log_level": 0})
        while not _knows(admin, brokers):
            logs = "\n".join(map(cluster.log, range(brokers)))
            assert monotonic() < deadline, f"not ready within {READY_TIMEOUT_S} s:\n{logs}"
            assert all(one.poll() is None for one in processes), f"a broker has ended:\n{logs}"
            pause(0.1)


def _knows(admin: AdminClient, brokers: int) -> bool:
    try:
        known = admin.list_topics(timeout=5)
    except KafkaException:
        return False
    return len(known.brokers) == brokers and known.controller_id >= 0
