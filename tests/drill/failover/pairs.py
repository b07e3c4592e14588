"""The two sites of a drill of the failover: bundled, bundled over TLS and SASL, or Apache Kafka."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml
from confluent_kafka.admin import AclOperation, ResourceType

from demo.doors import LISTENER, Doors
from tests.clusters import RunningCluster, run_together
from tests.dc_yaml import FREE_PORTS, dc_yaml, flow
from tests.drill.failover.hooked import DrilledHooks
from tests.drill.failover.network import Way, run_network
from tests.drill.failover.planning import ENDPOINTS
from tests.drill.failover.stage import (
    HOOKS,
    PATH,
    Endpoints,
    Stage,
    Witness,
    dressed,
    own_port,
)
from tests.drill.failover.subject import PATTERN_OF_SECOND, SECOND, TOPIC
from tests.failover.two_sites import TIMEOUTS
from tests.interop.peers import KAFKA_4_KRAFT
from tests.interop.rights import KRAFT_AUTHORIZER, give
from tests.interop.secured import SecuredKafka, run_secured
from tests.secured_cluster import USER
from wire.acls import CLUSTER_NAME

HOST: Final = "127.0.0.1"
SITES: Final = ("dc1", "dc2")
PATTERN: Final = f"{TOPIC}.*"
SESSION_MS: Final = 4_000
QUICK: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
}


@contextmanager
def bundled(
    folder: Path, overrides: Mapping[str, str] = MappingProxyType({}), *, has_sets: bool = False
) -> Iterator[Stage]:
    """Run two bundled clusters of one broker each."""
    port = own_port()
    ways = {name: Way(own_port(), (HOST, own_port())) for name in SITES}
    pair = {name: _bundled_site(folder, name, way, overrides) for name, way in ways.items()}
    sections = {name: {"bootstrap": f"{HOST}:{way.port}"} for name, way in ways.items()}
    file = _write(folder / "dc.yaml", sections, port, has_sets=has_sets)
    clients = {name: {"bootstrap.servers": one["bootstrap"]} for name, one in sections.items()}
    with (
        run_network(ways) as network,  # before the brokers, which find each other through it
        run_together(*pair.values()),
        dressed(
            folder,
            pair,
            network,
            (file, file),
            clients,
            Witness(port),
            endpoints=_endpoints(file, {}),
        ) as stage,
    ):
        yield stage


def _bundled_site(
    folder: Path, name: str, way: Way, overrides: Mapping[str, str]
) -> RunningCluster:
    """Return a cluster whose clients are told the port of its relay."""
    settings = {
        **QUICK,
        "advertised.listeners": f"PLAINTEXT://{HOST}:{way.port}",
        **overrides,
    }
    return RunningCluster(
        name=name, data=folder / name, broker_count=1, overrides=settings, port=way.server[1]
    )


@contextmanager
def secured(
    folder: Path, overrides: Mapping[str, str] = MappingProxyType({}), *, has_sets: bool = False
) -> Iterator[Stage]:
    """Run two bundled clusters with TLS and a login at every door, witness and pages included.

    The relays are before the listeners for that. The drill itself looks at the logs over others.
    """
    port, doors = own_port(), Doors(folder / "doors")
    ways = {name: Way(own_port(), (HOST, own_port())) for name in SITES}
    pair = {name: _guarded_site(folder, name, way, overrides) for name, way in ways.items()}
    for site in pair.values():
        site.properties = doors.of_brokers_file
    sections = {name: doors.cluster(f"{HOST}:{way.port}") for name, way in ways.items()}
    file = _write(folder / "dc.yaml", sections, port, doors, has_sets=has_sets)
    clients = {name: doors.client(f"{HOST}:{way.port}") for name, way in ways.items()}
    with (
        run_network(ways) as network,
        run_together(*pair.values()),
        dressed(folder, pair, network, (file, file), clients, Witness(port, doors)) as stage,
    ):
        yield stage


def _guarded_site(
    folder: Path, name: str, way: Way, overrides: Mapping[str, str]
) -> RunningCluster:
    own = own_port()
    plain = f"PLAINTEXT://{HOST}:{own}"
    settings = {
        **QUICK,
        "listeners": f"{plain},{LISTENER}://{HOST}:{way.server[1]}",
        "advertised.listeners": f"{plain},{LISTENER}://{HOST}:{way.port}",
        **overrides,
    }
    return RunningCluster(
        name=name, data=folder / name, broker_count=1, overrides=settings, port=own
    )


@contextmanager
def apache(folder: Path, *, has_sets: bool = False) -> Iterator[Stage]:
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
            # The endpoints are the same user: they look whether a fence stands.
            give(site, USER, ResourceType.BROKER, CLUSTER_NAME, AclOperation.DESCRIBE)
        own = {name: {"bootstrap": f"{HOST}:{way.port}"} for name, way in ways.items()}
        file = _write(folder / "dc.yaml", own, port, has_sets=has_sets)
        theirs = {name: one.section("SASL_PLAINTEXT") for name, one in secured.items()}
        applications = _write(folder / "applications.yaml", theirs, port, has_sets=has_sets)
        clients = {name: one.client("SASL_PLAINTEXT") for name, one in secured.items()}
        login = {key: value for key, value in clients["dc1"].items() if "bootstrap" not in key}
        files, ways_in = (file, applications), _endpoints(applications, login)
        at = Witness(port)
        with dressed(folder, pair, network, files, clients, at, endpoints=ways_in) as stage:
            yield stage


def _secured_site(folder: Path, name: str, way: Way) -> AbstractContextManager[SecuredKafka]:
    relayed = (way.server[1], way.port)
    return run_secured(folder, KAFKA_4_KRAFT, name, KRAFT_AUTHORIZER, relayed)


def _endpoints(file: Path, login: Mapping[str, Any]) -> Endpoints:
    """Write the file of each endpoint; all of them forward to the one broker of the active site."""
    files, addresses = [], []
    for number in range(ENDPOINTS):
        address, port = f"{HOST}:{own_port()}", own_port()
        document = yaml.safe_load(file.read_text())
        forward = {"host": HOST, "ports": f"{port}-{port}"}
        document["failover"]["bootstrap"] = {"listen": address, "forward": forward}
        own = file.with_name(f"endpoint-{number}.yaml")
        own.write_text(yaml.safe_dump(document))
        files.append(own)
        addresses.append(address)
    return Endpoints(files=files, clients={**login, "bootstrap.servers": ",".join(addresses)})


def _write(
    file: Path,
    sites: Mapping[str, Mapping[str, Any]],
    port: int,
    doors: Doors | None = None,
    *,
    has_sets: bool,
) -> Path:
    tls = {} if doors is None else {"tls": doors.at_witness}
    pages = {} if doors is None else doors.at_pages
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
            coordination={"session_timeout_ms": SESSION_MS, **tls},
            metrics={**FREE_PORTS, **pages},
            failover={
                "initial_active": "dc1",
                "orphan_after_ms": 8_000,
                "catch_up_timeout_ms": 10_000,
                "source_lost_after_ms": 2_000,
                "hooks": DrilledHooks(file.with_name(HOOKS)).install(),
                **({"sets": {SECOND: {"topics": [PATTERN_OF_SECOND]}}} if has_sets else {}),
                **TIMEOUTS,
            },
        )
    )
    return file
