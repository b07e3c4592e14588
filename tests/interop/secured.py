"""Apache Kafka behind TLS and SASL: one broker with a listener for each security protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from runtime.process.ports import free_port
from tests.doubles.certificates import Certificates
from tests.interop.matrix import Peer
from tests.interop.peers import NEWEST_3, NEWEST_4
from tests.interop.peers.broker_settings import HOST, Seat
from tests.interop.peers.kafka import KafkaCluster
from tests.interop.peers.kinds import Kind, Mode
from tests.secured_cluster import (
    PLAIN_MODULE,
    PROTOCOLS,
    RIGHT,
    SCRAM_MODULE,
    USER,
    Secured,
)
from wire.net.security import WITH_PASSWORDS

SESSION_MS: Final = 3_000
"""How long the brokers take a client's word (connections.max.reauth.ms, KIP-368)."""


JAVA: Final = [Peer(name="Java clients", version=version) for version in (NEWEST_3, NEWEST_4)]
"""Whose command line tools are tried at secured brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredKafka(Secured):
    """The running broker; `cluster.addresses` is its listener without security."""

    cluster: KafkaCluster


@contextmanager
def run_secured(
    folder: Path,
    kind: Kind,
    name: str = "dc1",
    more: dict[str, str] | None = None,
    relayed: tuple[int, int] | None = None,
) -> Iterator[SecuredKafka]:
    """Run one broker of that kind with all four listeners.

    `relayed` are the port of the listener without security and the one that its clients are told.
    """
    (folder / name).mkdir(parents=True)
    certificates = Certificates(folder / name)
    ports = {protocol: free_port(HOST) for protocol in PROTOCOLS}
    port, told = relayed or (free_port(HOST), None)
    seat = Seat(number=0, port=port, controller_port=free_port(HOST))
    cluster = KafkaCluster(
        name=name,
        kind=kind,
        data=folder / name / "data",
        broker_count=1,
        overrides=_settings(kind, seat, ports, certificates, told or port) | (more or {}),
        _seats=(seat,),
        _zookeeper_port=free_port(HOST),
    )
    cluster.start()
    try:
        _add_scram_user(cluster)
        yield SecuredKafka(cluster=cluster, certificates=certificates, ports=ports)
    except BaseException:
        cluster.kill()
        raise
    cluster.stop()


def _settings(
    kind: Kind,
    seat: Seat,
    ports: dict[str, int],
    certificates: Certificates,
    told_port: int,
) -> dict[str, str]:
    keystore = certificates.folder / "broker-keystore.pem"
    keystore.write_text(
        certificates.key(certificates.broker).read_text() + certificates.broker.read_text()
    )
    listeners = [f"PLAINTEXT://{HOST}:{seat.port}"]
    listeners += [f"{protocol}://{HOST}:{port}" for protocol, port in ports.items()]
    told = [f"PLAINTEXT://{HOST}:{told_port}", *listeners[1:]]
    settings = {
        "advertised.listeners": ",".join(told),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(one.value for one in WITH_PASSWORDS),
        "connections.max.reauth.ms": str(SESSION_MS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    map_ = [f"{protocol}:{protocol}" for protocol in ("PLAINTEXT", *PROTOCOLS)]
    if kind.mode is Mode.KRAFT:
        listeners.append(f"CONTROLLER://{HOST}:{seat.controller_port}")
        map_.append("CONTROLLER:PLAINTEXT")
    settings["listeners"] = ",".join(listeners)
    settings["listener.security.protocol.map"] = ",".join(map_)
    for protocol in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{protocol}"
        settings[f"{prefix}.plain.sasl.jaas.config"] = (
            f'{PLAIN_MODULE} required user_{USER}="{RIGHT}";'
        )
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{SCRAM_MODULE} required;"
    return settings


def _add_scram_user(cluster: KafkaCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info = ScramCredentialInfo(mechanism, 4096)
        change = UserScramCredentialUpsertion(USER, info, RIGHT.encode())
        admin.alter_user_scram_credentials([change])[USER].result(60)
