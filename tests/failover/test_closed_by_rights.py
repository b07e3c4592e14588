"""A planned promotion between two bundled sites that are closed by rights, as Apache Kafka is."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.clusters import RunningCluster
from tests.dc_yaml import dc_yaml, flow
from tests.failover.promoting import tell
from tests.failover.two_sites import (
    QUIET,
    commit_by_hand,
    committed,
    create_topic,
    produce,
    values_of,
)
from tests.failover.two_sites import read_all as read_as_administrator
from tests.mirror.daemon import run_mirror, wait_until
from tests.secured_cluster import USER, SecuredCluster, run_secured_cluster

pytestmark = pytest.mark.integration

TOPIC: Final = "moving"
GROUP: Final = "movers"
TIMEOUT_S: Final = 60
BY_RIGHTS: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "write.fence.enable": "false",
}
"""Our programs come over the listener without SASL, and applications over one with it."""
OFTEN: Final[dict[str, Any]] = {
    "discovery_interval_ms": 300,
    "group_offsets_interval_ms": 300,
    "acls": "identical",
}


@dataclass(frozen=True, slots=True)
class Site:
    """A bundled site, as our programs and as applications see it."""

    secured: SecuredCluster

    @property
    def cluster(self) -> RunningCluster:
        """Return it for helpers that want its address alone."""
        return cast("RunningCluster", self.secured)

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.secured.bootstrap, **QUIET})

    def give(self, kind: ResourceType, name: str, *what: AclOperation) -> None:
        """Let applications do something."""
        admin = self.admin  # kept until it has answered
        literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
        entries = [AclBinding(kind, name, literal, f"User:{USER}", "*", one, allow) for one in what]
        for given in admin.create_acls(entries).values():
            given.result(TIMEOUT_S)

    def held(self) -> set[tuple[str, AclOperation, AclPermissionType]]:
        """Return who may do what with the topic, and who may not."""
        admin = self.admin
        anybody: Any = None  # the stubs do not know that null matches anything
        found = admin.describe_acls(
            AclBindingFilter(
                ResourceType.TOPIC,
                TOPIC,
                ResourcePatternType.LITERAL,
                anybody,
                anybody,
                AclOperation.ANY,
                AclPermissionType.ANY,
            )
        ).result(TIMEOUT_S)
        return {(entry.principal, entry.operation, entry.permission_type) for entry in found}

    def write(self, value: bytes) -> KafkaError | None:
        """Write a record as an application does; return what came of it."""
        outcome: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            outcome.append(error)

        producer = Producer(self.secured.client("SASL_PLAINTEXT", message_timeout_ms=20_000))
        producer.produce(TOPIC, value, b"k", 0, on_delivery=delivered)
        producer.flush(TIMEOUT_S)
        return outcome[0]

    def read(self) -> bytes | None:
        """Read the first record as an application does."""
        settings: dict[str, Any] = {"group_id": GROUP, "enable_auto_commit": False}
        reader = Consumer(self.secured.client("SASL_PLAINTEXT", **settings))
        reader.assign([TopicPartition(TOPIC, 0, 0)])
        message = reader.poll(TIMEOUT_S)
        reader.close()
        assert message is not None
        assert message.error() is None, message.error()
        return message.value()


@pytest.fixture
def at(tmp_path: Path, witness: str) -> Iterator[tuple[Site, Site, Path]]:
    """Two sites with authorizers, and the programs' configuration."""
    with (
        run_secured_cluster(tmp_path, name="dc1", more=BY_RIGHTS) as dc1,
        run_secured_cluster(tmp_path, name="dc2", more=BY_RIGHTS) as dc2,
    ):
        file = tmp_path / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow("dc1", "dc2", TOPIC, **OFTEN),
                flow("dc2", "dc1", TOPIC, **OFTEN),
                dc1=dc1.bootstrap,
                dc2=dc2.bootstrap,
                witness=witness,
                path="/by-rights",
                coordination={"session_timeout_ms": 4_000},
                failover={
                    "initial_active": "dc1",
                    "drain_timeout_ms": 20_000,
                    "group_drain_timeout_ms": 2_000,
                },
            )
        )
        create_topic(cast("RunningCluster", dc1), TOPIC)
        yield Site(dc1), Site(dc2), file


def fenced(file: Path) -> dict[str, list[str]]:
    """Return what `failover status` calls closed, by site."""
    sites = json.loads(tell("status", "--json", str(file)).output)["sites"]
    return {site["name"]: site["fenced_topics"] for site in sites}


def test_a_planned_promotion_closes_bundled_brokers_by_rights_and_the_way_back_opens_them(
    at: tuple[Site, Site, Path],
) -> None:
    """The rights of applications travel with the topic; those of the fence stay at their site."""
    dc1, dc2, file = at
    refused = dc1.write(b"-1")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    dc1.give(ResourceType.TOPIC, TOPIC, AclOperation.READ, AclOperation.WRITE)
    for site in (dc1, dc2):
        site.give(ResourceType.GROUP, GROUP, AclOperation.ALL)
    of_applications = {
        (f"User:{USER}", one, AclPermissionType.ALLOW)
        for one in (AclOperation.READ, AclOperation.WRITE)
    }
    with run_mirror(file) as mirror:
        produce(dc1.cluster, TOPIC, range(500))
        assert dc1.write(b"500") is None
        commit_by_hand(dc1.cluster, GROUP, TOPIC, 100)
        mirror.wait_mirrored(TOPIC, 501)
        wait_until("the rights travel", lambda: dc2.held() == of_applications)
        there = tell("promote", "dc2", str(file))
        assert there.status == 0, there
        assert "1 partitions refuse writes" in there.output
        assert fenced(file) == {"dc1": [TOPIC], "dc2": []}
        assert committed(dc2.cluster, GROUP, TOPIC) == 100
        refused = dc1.write(b"-1")
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert dc1.read() == b"0"
        assert dc2.write(b"501") is None
        everything = list(range(502))
        wait_until(
            "the way back",
            lambda: values_of(read_as_administrator(dc1.cluster, TOPIC)) == everything,
        )
        assert dc2.held() == of_applications, "no fence travels"
        back = tell("promote", "dc1", str(file))
        assert back.status == 0, back
        assert fenced(file) == {"dc1": [], "dc2": [TOPIC]}
        assert dc1.held() == of_applications
        assert dc1.write(b"502") is None
        refused = dc2.write(b"-1")
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
