"""The two sites of a drill of the failover: bundled, bundled over TLS and SASL, or Apache Kafka."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka.admin import AclOperation, ResourceType

from tests.clusters import RunningCluster, run_together
from tests.dc_yaml import dc_yaml, flow
from tests.doubles.certificates import Certificates
from tests.drill.failover.network import Way, run_network
from tests.drill.failover.stage import PATH, Stage, dressed, own_port
from tests.failover.two_sites import TIMEOUTS
from tests.interop.peers import KAFKA_4_KRAFT
from tests.interop.rights import KRAFT_AUTHORIZER, give
from tests.interop.secured import SecuredKafka, run_secured
from tests.secured_cluster import RIGHT, SCRAM_MODULE, USER, Secured
from wire.net.security import Mechanism

HOST: Final = "127.0.0.1"
SITES: Final = ("dc1", "dc2")
PATTERN: Final = "drilled.*"
SESSION_MS: Final = 4_000
MECHANISM: Final = Mechanism.SCRAM_SHA_512


@contextmanager
def bundled(folder: Path, overrides: Mapping[str, str] = MappingProxyType({})) -> Iterator[Stage]:
    """Run two bundled clusters of one broker each."""
    port = own_port()
    ways = {name: Way(own_port(), (HOST, own_port())) for name in SITES}
    pair = {name: _bundled_site(folder, name, way, overrides) for name, way in ways.items()}
    sections = {name: {"bootstrap": f"{HOST}:{way.port}"} for name, way in ways.items()}
    file = _write(folder / "dc.yaml", sections, port)
    clients = {name: {"bootstrap.servers": one["bootstrap"]} for name, one in sections.items()}
    with (
        run_network(ways) as network,  # before the brokers, which find each other through it
        run_together(*pair.values()),
        dressed(folder, pair, network, (file, file), clients, port) as stage,
    ):
        yield stage


def _bundled_site(
    folder: Path, name: str, way: Way, overrides: Mapping[str, str]
) -> RunningCluster:
    """Return a cluster whose clients are told the port of its relay."""
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "500",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{way.port}",
        **overrides,
    }
    return RunningCluster(
        name=name, data=folder / name, broker_count=1, overrides=settings, port=way.server[1]
    )


@contextmanager
def secured(folder: Path) -> Iterator[Stage]:
    """Run two bundled clusters whose programs and applications come over TLS and SASL.

    The relays are before that listener. The drill itself looks at the logs over another one.
    """
    port = own_port()
    ways = {name: Way(own_port(), (HOST, own_port())) for name in SITES}
    guarded = {name: _guarded(folder / f"{name}-pem", way) for name, way in ways.items()}
    pair = {name: _guarded_site(folder, name, ways[name], guarded[name]) for name in SITES}
    sections = {name: one.section("SASL_SSL", MECHANISM) for name, one in guarded.items()}
    file = _write(folder / "dc.yaml", sections, port)
    clients = {name: one.client("SASL_SSL", MECHANISM) for name, one in guarded.items()}
    with (
        run_network(ways) as network,
        run_together(*pair.values()),
        dressed(folder, pair, network, (file, file), clients, port) as stage,
    ):
        yield stage


def _guarded(folder: Path, way: Way) -> Secured:
    folder.mkdir(parents=True)
    return Secured(certificates=Certificates(folder), ports={"SASL_SSL": way.port})


def _guarded_site(folder: Path, name: str, way: Way, guarded: Secured) -> RunningCluster:
    made, own = guarded.certificates, own_port()
    keystore = made.folder / "keystore.pem"
    keystore.write_text(made.key(made.broker).read_text() + made.broker.read_text())
    plain = f"PLAINTEXT://{HOST}:{own}"
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "500",
        "listeners": f"{plain},SASL_SSL://{HOST}:{way.server[1]}",
        "advertised.listeners": f"{plain},SASL_SSL://{HOST}:{way.port}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": MECHANISM.value,
        "sasl.jaas.config": f'{SCRAM_MODULE} required user_{USER}="{RIGHT}";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
    }
    return RunningCluster(
        name=name, data=folder / name, broker_count=1, overrides=settings, port=own
    )


@contextmanager
def apache(folder: Path) -> Iterator[Stage]:
    """Run two sites of Apache Kafka, whose applications are an ordinary user.

    The relays are before the listener that our programs use; applications have another one.
    Raises tests.interop.peers.PeerUnavailable.
    """
    port = own_port()
    ways = {name: Way(own_port(), (HOST, own_port())) for name in SITES}
    with (
        run_network(ways) as network,
        _secured_site(folder, "dc1", ways["dc1"]) as dc1,
        _secured_site(folder, "dc2", ways["dc2"]) as dc2,
    ):
        secured = {"dc1": dc1, "dc2": dc2}
        pair = {name: one.cluster for name, one in secured.items()}
        for site in pair.values():
            give(site, USER, ResourceType.TOPIC, "*", AclOperation.ALL)
            give(site, USER, ResourceType.GROUP, "*", AclOperation.ALL)
        own = {name: {"bootstrap": f"{HOST}:{way.port}"} for name, way in ways.items()}
        file = _write(folder / "dc.yaml", own, port)
        theirs = {name: one.section("SASL_PLAINTEXT") for name, one in secured.items()}
        applications = _write(folder / "applications.yaml", theirs, port)
        clients = {name: one.client("SASL_PLAINTEXT") for name, one in secured.items()}
        with dressed(folder, pair, network, (file, applications), clients, port) as stage:
            yield stage


def _secured_site(folder: Path, name: str, way: Way) -> AbstractContextManager[SecuredKafka]:
    relayed = (way.server[1], way.port)
    return run_secured(folder, KAFKA_4_KRAFT, name, KRAFT_AUTHORIZER, relayed)


def _write(file: Path, sites: Mapping[str, Mapping[str, Any]], port: int) -> Path:
    ways = [("dc1", "dc2"), ("dc2", "dc1")]
    file.write_text(
        dc_yaml(
            *(
                flow(*way, PATTERN, discovery_interval_ms=300, group_offsets_interval_ms=300)
                for way in ways
            ),
            dc1=sites["dc1"],
            dc2=sites["dc2"],
            witness=f"127.0.0.1:{port}",
            path=PATH,
            coordination={"session_timeout_ms": SESSION_MS},
            failover={
                "initial_active": "dc1",
                "orphan_after_ms": 8_000,
                "catch_up_timeout_ms": 10_000,
                "source_lost_after_ms": 2_000,
                **TIMEOUTS,
            },
        )
    )
    return file
