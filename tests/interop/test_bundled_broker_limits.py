"""Rights and quotas of the bundled brokers with clients that are not Java, in their own words."""

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, Message, Producer, libversion
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.commands import run_broker_command
from tests.interop.foreign.clients import ForeignClient, franz_go, kafkajs
from tests.interop.sites import QUIET, by_plaintext, create_topic
from tests.secured_cluster import RIGHT, USER, SecuredCluster, run_secured_cluster

pytestmark = pytest.mark.matrix(subject="Rights and quotas of the bundled broker")

AUTHORIZER: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
PATIENCE_S: Final = 60
RATE: Final = 20_000
"""Bytes a second: 200 kB may come at once, and each record beyond that takes half a second."""
RECORDS: Final = 28
LEAST_S: Final = 3.0
NAMES: Final = {franz_go: "franz-go", kafkajs: "kafkajs"}
LIBRARY: Final = f"librdkafka {libversion()[0]}"


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with run_secured_cluster(tmp_path_factory.mktemp("bundled"), more=AUTHORIZER) as running:
        yield running


@pytest.fixture(params=NAMES, ids=list(NAMES.values()))
def client(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> ForeignClient:
    record_property("against", NAMES[request.param])
    built: ForeignClient = request.param()
    record_property("against", built.name)
    return built


def create_closed_topic(bundled: SecuredCluster, topic: str) -> None:
    """Create a topic into which somebody else may write."""
    create_topic(by_plaintext(bundled), topic)
    who = ("--principal", "User:other", "--operation", "write")
    ended = run_broker_command(
        "acls", "add", "--topic", topic, *who, "--bootstrap", bundled.bootstrap
    )
    assert ended.returncode == 0, ended


def limit(bundled: SecuredCluster, client_id: str) -> None:
    """Give a client id a quota."""
    ended = run_broker_command(
        "quotas", "set", f"producer_byte_rate={RATE}", "--client-id", client_id,
        "--bootstrap", bundled.bootstrap,
    )  # fmt: skip
    assert ended.returncode == 0, ended


def test_a_client_is_refused_gives_itself_the_right_and_takes_it_away(
    bundled: SecuredCluster, client: ForeignClient
) -> None:
    topic = f"rights-{client.name.split()[0]}"
    create_closed_topic(bundled, topic)
    host, port = bundled.address("SASL_PLAINTEXT")
    who = {"SASL_USER": USER, "SASL_PASSWORD": RIGHT}
    told = client.work(f"{host}:{port}", topic, 1, "rights", who)
    assert told == {"refused": 2, "written": 1}


def test_a_client_with_a_quota_is_held_to_it(
    bundled: SecuredCluster, client: ForeignClient
) -> None:
    topic = f"quota-{client.name.split()[0]}"
    create_topic(by_plaintext(bundled), topic)
    limit(bundled, topic)
    told = client.work(bundled.bootstrap, topic, RECORDS, "quota")
    assert told["took_ms"] > LEAST_S * 1_000
    assert told.get("told_ms", told["took_ms"]) > LEAST_S * 1_000, "the client was told to rest"


def outcome(producer: Producer, topic: str, value: bytes) -> KafkaError | None:
    """Write one record, and return what came of it."""
    outcomes: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        outcomes.append(error)

    producer.produce(topic, value, on_delivery=delivered)
    producer.flush(PATIENCE_S)
    return outcomes[0]


def wait_outcome(settings: dict[str, Any], topic: str, code: int | None) -> None:
    """Write until that comes of it: brokers hear of rights one after the other.

    A producer that was refused once refuses by itself, so each time it is another one.
    """
    ends_at = monotonic() + PATIENCE_S
    while monotonic() < ends_at:
        error = outcome(Producer(settings), topic, b"0")
        if (None if error is None else error.code()) == code:
            return
    raise AssertionError(f"{topic}: never {code}")


def test_librdkafka_is_refused_gives_itself_the_right_and_takes_it_away(
    bundled: SecuredCluster, record_property: Callable[[str, object], None]
) -> None:
    record_property("against", LIBRARY)
    create_closed_topic(bundled, "rights-rdkafka")
    settings = bundled.client("SASL_PLAINTEXT")
    admin = AdminClient(settings)
    refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
    wait_outcome(settings, "rights-rdkafka", refused)
    entry: tuple[Any, ...] = (
        ResourceType.TOPIC, "rights-rdkafka", ResourcePatternType.LITERAL, f"User:{USER}", "*",
        AclOperation.WRITE, AclPermissionType.ALLOW,
    )  # fmt: skip
    for made in admin.create_acls([AclBinding(*entry)]).values():
        made.result(PATIENCE_S)
    wait_outcome(settings, "rights-rdkafka", None)
    for gone in admin.delete_acls([AclBindingFilter(*entry)]).values():
        assert len(gone.result(PATIENCE_S)) == 1
    wait_outcome(settings, "rights-rdkafka", refused)


def test_librdkafka_with_a_quota_is_held_to_it(
    bundled: SecuredCluster, record_property: Callable[[str, object], None]
) -> None:
    record_property("against", LIBRARY)
    create_topic(by_plaintext(bundled), "quota-rdkafka")
    limit(bundled, "quota-rdkafka")
    told_s: list[float] = []

    def throttled(event: Any) -> None:
        told_s.append(event.throttle_time)

    settings = {"bootstrap.servers": bundled.bootstrap, "client.id": "quota-rdkafka", **QUIET}
    producer = Producer({**settings, "linger.ms": 0, "throttle_cb": throttled})
    began_s = monotonic()
    for _ in range(RECORDS):
        assert outcome(producer, "quota-rdkafka", bytes(10_000)) is None
    assert monotonic() - began_s > LEAST_S
    assert sum(told_s) > LEAST_S, "the client was told to rest"
