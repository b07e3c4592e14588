"""The two sites of a drill of the failover: bundled brokers, or Apache Kafka with an authorizer."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AclOperation, ResourceType

from tests.dc_yaml import dc_yaml, flow
from tests.drill.failover.stage import PATH, Stage, dressed, witness_port
from tests.failover.sites import TIMEOUTS, run_sites
from tests.interop.peers import KAFKA_4_KRAFT
from tests.interop.rights import KRAFT_AUTHORIZER, give
from tests.interop.secured import run_secured
from tests.secured_cluster import USER

PATTERN: Final = "drilled.*"
SESSION_MS: Final = 4_000


@contextmanager
def bundled(folder: Path) -> Iterator[Stage]:
    """Run two bundled clusters of one broker each."""
    port = witness_port()
    with run_sites(folder, f"127.0.0.1:{port}") as sites:
        pair = {"dc1": sites.dc1, "dc2": sites.dc2}
        sections = {name: {"bootstrap": site.bootstrap} for name, site in pair.items()}
        file = _write(folder / "dc.yaml", sections, port)
        clients = {name: {"bootstrap.servers": site.bootstrap} for name, site in pair.items()}
        with dressed(folder, pair, (file, file), clients, port) as stage:
            yield stage


@contextmanager
def apache(folder: Path) -> Iterator[Stage]:
    """Run two sites of Apache Kafka, whose applications are an ordinary user.

    Raises tests.interop.peers.PeerUnavailable.
    """
    port = witness_port()
    with (
        run_secured(folder, KAFKA_4_KRAFT, "dc1", KRAFT_AUTHORIZER) as dc1,
        run_secured(folder, KAFKA_4_KRAFT, "dc2", KRAFT_AUTHORIZER) as dc2,
    ):
        secured = {"dc1": dc1, "dc2": dc2}
        pair = {name: one.cluster for name, one in secured.items()}
        for site in pair.values():
            give(site, USER, ResourceType.TOPIC, "*", AclOperation.ALL)
            give(site, USER, ResourceType.GROUP, "*", AclOperation.ALL)
        own = {name: {"bootstrap": site.bootstrap} for name, site in pair.items()}
        file = _write(folder / "dc.yaml", own, port)
        theirs = {name: one.section("SASL_PLAINTEXT") for name, one in secured.items()}
        applications = _write(folder / "applications.yaml", theirs, port)
        clients = {name: one.client("SASL_PLAINTEXT") for name, one in secured.items()}
        with dressed(folder, pair, (file, applications), clients, port) as stage:
            yield stage


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
                "orphan_after_ms": 15_000,
                "source_lost_after_ms": 2_000,
                **TIMEOUTS,
            },
        )
    )
    return file
