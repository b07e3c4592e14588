"""A planned promotion between two bundled sites that are closed by rights, as Apache Kafka is."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from failover.client.faults import code_of
from failover.journal.steps import StepName
from tests.clusters import RunningCluster
from tests.dc_yaml import dc_yaml, flow
from tests.failover.held import held_promotion
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
from wire.acls import CLUSTER_NAME

pytestmark = pytest.mark.integration

TOPIC: Final = "moving"
GROUP: Final = "movers"
TIMEOUT_S: Final = 60
PATTERNS: Final = [f"{TOPIC}.*", "(yet|another).kind"]
NONE: Final = 0
REFUSED: Final = KafkaError.TOPIC_AUTHORIZATION_FAILED
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
        return {
            (
                entry.principal,
                AclOperation(entry.operation),
                AclPermissionType(entry.permission_type),
            )
            for entry in self.entries(AclPermissionType.ANY)
            if (entry.restype, entry.name) == (ResourceType.TOPIC, TOPIC)
        }

    def entries(self, permission: AclPermissionType = AclPermissionType.DENY) -> list[AclBinding]:
        """Return what is denied, or more."""
        admin = self.admin
        anybody: Any = None  # the types do not know that null matches anything
        every = AclBindingFilter(
            ResourceType.ANY,
            anybody,
            ResourcePatternType.ANY,
            anybody,
            anybody,
            AclOperation.ANY,
            permission,
        )
        return list(admin.describe_acls(every).result(TIMEOUT_S))

    def create(self, topic: str) -> int:
        """Make a topic as an application does; return the error's number."""
        admin = AdminClient(self.secured.client("SASL_PLAINTEXT"))
        try:
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
        except KafkaException as error:
            return code_of(error)
        return NONE

    def create_by_writing(self, topic: str) -> int:
        """Have a topic made by the first record; return the error's number."""
        refused = self.write(b"-1", topic)
        return NONE if refused is None else refused.code()

    def denied_creation(self) -> set[str]:
        """Return the resources on which nobody may create anything, by whichever entry."""
        return {one.name for one in self.entries() if one.operation is AclOperation.CREATE}

    def write(self, value: bytes, topic: str = TOPIC) -> KafkaError | None:
        """Write a record as an application does; return what came of it."""
        outcome: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            outcome.append(error)

        producer = Producer(self.secured.client("SASL_PLAINTEXT", message_timeout_ms=20_000))
        producer.produce(topic, value, b"k", 0, on_delivery=delivered)
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
                flow("dc1", "dc2", PATTERNS, **OFTEN),
                flow("dc2", "dc1", PATTERNS, **OFTEN),
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
        for site in (dc1, dc2):
            site.give(ResourceType.BROKER, CLUSTER_NAME, AclOperation.CREATE)
        with held_promotion("dc2", file, StepName.FENCE) as there:
            assert "1 partitions refuse writes" in there.lines[-1]
            assert dc1.denied_creation() == {TOPIC, "*", CLUSTER_NAME}
            assert [dc1.create(name) for name in ("moving-1", "another.kind", "other")] == (
                [REFUSED] * 3
            )
            assert dc1.create_by_writing("moving-1") == REFUSED
            assert there.end() == 0, there.lines
        assert dc1.denied_creation() == {TOPIC}
        assert not dc2.denied_creation()
        assert dc1.create("other") == NONE
        assert dc2.create("moving-1") == NONE
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
        assert fenced(file)["dc1"] == []
        assert TOPIC in fenced(file)["dc2"]
        assert not dc1.denied_creation()
        assert dc2.denied_creation() == {TOPIC}
        assert dc1.create("moving-2") == NONE
        assert dc1.held() == of_applications
        assert dc1.write(b"502") is None
        refused = dc2.write(b"-1")
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
