"""Bundled sites that are closed by rights, as Apache Kafka is: what is done with their topics."""

from dataclasses import dataclass
from typing import Any, Final, cast

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
from tests.clusters import RunningCluster
from tests.failover.two_sites import QUIET
from tests.secured_cluster import USER, SecuredCluster

GROUP: Final = "movers"
TIMEOUT_S: Final = 60
NONE: Final = 0
REFUSED: Final = KafkaError.TOPIC_AUTHORIZATION_FAILED
BY_RIGHTS: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "write.fence.enable": "false",
}
"""Our programs come over the listener without SASL, and applications over one with it."""


@dataclass(frozen=True, slots=True)
class SiteByRights:
    """A bundled site, as our programs and as applications see it, and one topic there."""

    secured: SecuredCluster
    topic: str

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
            if (entry.restype, entry.name) == (ResourceType.TOPIC, self.topic)
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

    def write(self, value: bytes, topic: str | None = None) -> KafkaError | None:
        """Write a record as an application does; return what came of it."""
        outcome: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            outcome.append(error)

        producer = Producer(self.secured.client("SASL_PLAINTEXT", message_timeout_ms=20_000))
        producer.produce(topic or self.topic, value, b"k", 0, on_delivery=delivered)
        producer.flush(TIMEOUT_S)
        return outcome[0]

    def read(self) -> bytes | None:
        """Read the first record as an application does."""
        settings: dict[str, Any] = {"group_id": GROUP, "enable_auto_commit": False}
        reader = Consumer(self.secured.client("SASL_PLAINTEXT", **settings))
        reader.assign([TopicPartition(self.topic, 0, 0)])
        message = reader.poll(TIMEOUT_S)
        reader.close()
        assert message is not None
        assert message.error() is None, message.error()
        return message.value()
