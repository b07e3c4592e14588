"""Two sites of Apache Kafka with authorizers, of which `failover` closes one or the other."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, ResourceType

from failover.client.faults import code_of
from tests.dc_yaml import Topics, dc_yaml, flow
from tests.interop.peers import Kind
from tests.interop.peers.kinds import Mode
from tests.interop.programs import run_program
from tests.interop.rights import KRAFT_AUTHORIZER, ZOOKEEPER_AUTHORIZER, give
from tests.interop.secured import SecuredKafka, run_secured
from tests.interop.sites import (
    Site,
    create_topic,
)
from tests.secured_cluster import USER
from tests.zookeeper import run_witness

SUBJECT: Final = "Planned promotions away from Apache Kafka"
"""The table of the matrix that shows it."""
of_any_kind = pytest.mark.matrix(subject=SUBJECT, against="Apache Kafka 3.9 to 4.4")

TOPIC: Final = "moving"
GROUP: Final = "movers"
TIMEOUT_S: Final = 60
SESSION_MS: Final = 4_000
OFTEN: Final[dict[str, Any]] = {"discovery_interval_ms": 300, "group_offsets_interval_ms": 300}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Two sites with authorizers and the programs' configuration."""

    dc1: SecuredKafka
    dc2: SecuredKafka
    witness: str
    file: Path
    applications: Path
    """The same, but as an ordinary user."""


@contextmanager
def stage(
    folder: Path,
    source: Kind,
    target: Kind,
    *,
    as_user: bool = False,
    session_ms: int = SESSION_MS,
    topics: Topics = TOPIC,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Stage]:
    """Run both; our programs are dc1's super user, or `as_user` an ordinary one.

    The brokers have `more` settings.
    """
    with (
        run_secured(folder, source, "dc1", {**_authorizer(source), **more}) as dc1,
        run_secured(folder, target, "dc2", {**_authorizer(target), **more}) as dc2,
        run_witness(folder / "witness") as witness,
    ):
        user = [site.section("SASL_PLAINTEXT") for site in (dc1, dc2)]
        own: list[dict[str, object]] = [
            {"bootstrap": site.cluster.bootstrap} for site in (dc1, dc2)
        ]
        files = folder / "dc.yaml", folder / "applications.yaml"
        for file, sections in zip(
            files, ([user[0], own[1]] if as_user else own, user), strict=True
        ):
            file.write_text(
                dc_yaml(
                    flow("dc1", "dc2", topics, **OFTEN),
                    flow("dc2", "dc1", topics, **OFTEN),
                    dc1=sections[0],
                    dc2=sections[1],
                    witness=witness,
                    path="/closing",
                    coordination={"session_timeout_ms": session_ms},
                    failover={
                        "initial_active": "dc1",
                        "drain_timeout_ms": 8_000,
                        "group_drain_timeout_ms": 2_000,
                    },
                )
            )
        create_topic(dc1.cluster, TOPIC, 2)
        yield Stage(dc1=dc1, dc2=dc2, witness=witness, file=files[0], applications=files[1])


def _authorizer(kind: Kind) -> dict[str, str]:
    return ZOOKEEPER_AUTHORIZER if kind.mode is Mode.ZOOKEEPER else KRAFT_AUTHORIZER


def applications_may(site: Site, what: AclOperation) -> None:
    give(site, USER, ResourceType.TOPIC, TOPIC, what)
    give(site, USER, ResourceType.GROUP, "*", AclOperation.ALL)


def let_applications_in(at: Stage) -> None:
    """They may all that a producer needs on both sites."""
    for site in (at.dc1.cluster, at.dc2.cluster):
        applications_may(site, AclOperation.ALL)
        for name in ("dc1.offset-map.internal", "dc2.offset-map.internal"):
            give(site, USER, ResourceType.TOPIC, name, AclOperation.READ)


def create_as_user(site: SecuredKafka, topic: str) -> int:
    """Make a topic as an application does; return the error's number, 0 for none."""
    admin = AdminClient(site.client("SASL_PLAINTEXT"))
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
    except KafkaException as error:
        return code_of(error)
    return 0


def write_as_user(site: SecuredKafka, topic: str = TOPIC) -> KafkaError | None:
    """Write a record as an application does; return what came of it.

    Where brokers make topics by themselves, one that is not there is made.
    """
    outcome: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        outcome.append(error)

    producer = Producer(site.client("SASL_PLAINTEXT", message_timeout_ms=20_000))
    producer.produce(topic, b"by an application", b"k", 0, on_delivery=delivered)
    producer.flush(TIMEOUT_S)
    return outcome[0]


def fenced(file: Path) -> dict[str, list[str]]:
    """Return what `failover status` calls closed, by site."""
    status = run_program("failover.cli", "status", "--json", str(file))
    assert status.returncode == 0, status.stderr
    sites: list[dict[str, Any]] = json.loads(status.stdout)["sites"]
    return {site["name"]: site["fenced_topics"] for site in sites}
